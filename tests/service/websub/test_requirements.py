"""The page about WebSub names a test for each requirement: every one of them exists, and its rows are complete."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "howto" / "websub.md"


def rows() -> list[list[str]]:
    """The cells of every row whose last one names tests."""
    lines = (line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| "))
    cells = ([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines)
    return [row for row in cells if len(row) in (2, 4) and row[-1].startswith("`test_")]


def existing() -> set[str]:
    files = [*(ROOT / "tests" / "service").rglob("test_*.py"), *(ROOT / "tests" / "feeds").rglob("test_*.py")]
    return {
        node.name
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    }


def test_every_requirement_has_a_test_that_exists() -> None:
    found = rows()
    named = {name for row in found for name in re.findall(r"`(test_\w+)`", row[-1])}
    assert named - existing() == set()
    assert all(re.fullmatch(r"`test_\w+`(, `test_\w+`)*", row[-1]) for row in found)


def test_there_are_requirements_for_all_three() -> None:
    required = [row for row in rows() if len(row) == 4]
    assert {row[0] for row in required} == {"publisher", "subscriber", "hub"}
    musts = [row for row in required if "MUST" in row[1]]
    assert len(musts) > 35
    table = PAGE.read_text(encoding="utf-8").partition("| for | required |")[2].partition("\n\n")[0]
    assert len(table.strip().splitlines()) == len(required) + 2, "no row is without a test"
