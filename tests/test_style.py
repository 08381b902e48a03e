"""The shape of the code: how long functions are, how many parameters they take, how many files lie in one folder."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "tidings"

MAX_LINES, MAX_PARAMETERS = 60, 6
# A compiled loop cannot take an object, and a call may cost more than a step.
MAX_KERNEL_LINES, MAX_KERNEL_PARAMETERS = 90, 12
MAX_MODULES = 20  # of one folder, beside __init__.py
MAX_ENTRIES = 16  # on top, beside __init__.py
MAX_EXCEPTIONS = 10

# path::function -> why it is larger than the limits.
EXCEPTIONS: dict[str, str] = {
    "arrays/hashing.py::find_span": "a compiled loop that kernels call: the span that is looked for and the table are arrays",
    "arrays/spans.py::pick": "a compiled loop: lists, where their items lie, and where they are written are arrays",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions() -> Iterator[tuple[Path, Function]]:
    """Every function of the package, but for migrations of the store and commands, whose parameters are options."""
    for path in sorted(ROOT.rglob("*.py")):
        relative = path.relative_to(ROOT)
        if "migrations" in relative.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, Function) and not is_command(node):
                yield relative, node


def is_command(function: Function) -> bool:
    called = (
        ast.unparse(decorator.func)
        for decorator in function.decorator_list
        if isinstance(decorator, ast.Call)
    )
    return any(name.endswith((".command", ".group")) for name in called)


def lines_of(function: Function) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def parameters_of(function: Function) -> int:
    """The positional ones; `self` and `cls` do not count."""
    names = [parameter.arg for parameter in function.args.posonlyargs + function.args.args]
    return sum(name not in ("self", "cls") for name in names)


def violations(path: Path, function: Function) -> Iterator[str]:
    is_kernel = "kernels" in path.parts
    most_lines = MAX_KERNEL_LINES if is_kernel else MAX_LINES
    most_parameters = MAX_KERNEL_PARAMETERS if is_kernel else MAX_PARAMETERS
    if (lines := lines_of(function)) > most_lines:
        yield f"{path}::{function.name} has {lines} lines, at most {most_lines} are allowed; split it"
    if (parameters := parameters_of(function)) > most_parameters:
        yield (
            f"{path}::{function.name} has {parameters} positional parameters, at most {most_parameters} are allowed;"
            " group them, or make some keyword-only"
        )


def test_functions_are_small() -> None:
    too_large = [
        sentence
        for path, function in functions()
        if f"{path.as_posix()}::{function.name}" not in EXCEPTIONS
        for sentence in violations(path, function)
    ]
    assert too_large == []


def test_every_exception_is_needed() -> None:
    assert len(EXCEPTIONS) <= MAX_EXCEPTIONS
    needed = {f"{path.as_posix()}::{f.name}" for path, f in functions() if any(violations(path, f))}
    assert EXCEPTIONS.keys() - needed == set()
    assert all(EXCEPTIONS.values())


def test_folders_are_small() -> None:
    folders = {path.parent for path in ROOT.rglob("*.py")}
    counts = {
        str(folder.relative_to(ROOT)): sum(path.name != "__init__.py" for path in folder.glob("*.py"))
        for folder in folders
    }
    assert {folder for folder, count in counts.items() if count > MAX_MODULES} == set()


def test_the_top_shows_the_architecture() -> None:
    beside = {"__init__.py", "py.typed", "__pycache__"}
    entries = sorted(path.name for path in ROOT.iterdir() if path.name not in beside)
    assert len(entries) <= MAX_ENTRIES, entries


@pytest.mark.parametrize(
    ("text", "lines", "parameters"),
    [
        ("def f(self, a, b=1, /, c=2, *rest, d, **more):\n    pass", 2, 3),
        ("@decorator\ndef f():\n    pass\n    pass", 3, 0),
    ],
)
def test_what_is_counted(text: str, lines: int, parameters: int) -> None:
    function = ast.parse(text).body[0]
    assert isinstance(function, Function)
    assert (lines_of(function), parameters_of(function)) == (lines, parameters)
