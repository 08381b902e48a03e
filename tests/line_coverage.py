"""Which lines of the package the tests reach: `pytest --coverage`, which `make test` does.

Slipcover puts probes into the package's own code. A tracer would be called for every function of every library too, and double the
time of the tests. Probes stay where they are: to take out those that were hit costs more. Compiled loops and other processes are not
measured.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import slipcover
from slipcover.importer import SlipcoverMetaPathFinder

FLOOR = 95.5  # percent
SOURCE = Path(__file__).parents[1] / "src" / "tidings"
OMITTED = ["*/arrays/*", "*/kernels/*", "*/migrations/*", "*/spark/*"]


class _PackageFinder(SlipcoverMetaPathFinder):  # type: ignore[misc]
    """Leaves tests to pytest, which rewrites them itself."""

    def find_spec(self, fullname, path, target=None):  # type: ignore[no-untyped-def]
        return super().find_spec(fullname, path, target) if fullname.startswith("tidings.") else None


class Measuring:
    """In a process that runs tests: what it has reached goes to a file."""

    def __init__(self, folder: Path, worker: str) -> None:
        self._file = folder / f"{worker}.json"
        self._probes = slipcover.Slipcover(source=[str(SOURCE)], omit=OMITTED, d_miss_threshold=-1)
        matcher = slipcover.FileMatcher(sources=[SOURCE], omit=OMITTED)
        sys.meta_path.insert(0, _PackageFinder(self._probes, matcher))

    def pytest_sessionfinish(self) -> None:
        self._file.write_text(json.dumps(self._probes.get_coverage()["files"]))


class Reporting:
    """In the process that started the others: their lines together, and whether they are enough."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._lines = folder, ""

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        reached: dict[str, set[int]] = {}
        lines: dict[str, set[int]] = {}
        for file in self._folder.glob("*.json"):
            for name, found in json.loads(file.read_text()).items():
                reached.setdefault(name, set()).update(found["executed_lines"])
                lines.setdefault(name, set()).update(found["executed_lines"], found["missing_lines"])
        missed = sorted(((len(lines[name] - reached[name]), name) for name in lines), reverse=True)
        count = sum(map(len, lines.values()))
        share = 100 * (1 - sum(number for number, _ in missed) / count)
        worst = ", ".join(f"{name} {number}" for number, name in missed[:5])
        self._lines = f"{share:.1f} % of {count:,} lines are reached; most are missed in {worst}"
        if share < FLOOR and not session.exitstatus:
            self._lines += f"; at least {FLOOR} % must be: test what is new"
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("coverage")
        terminalreporter.line(self._lines)
