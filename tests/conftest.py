"""What all tests share: a Hypothesis profile with the same cases on every run, another for `make bench`, a Java that starts
quickly, and a parser that must rest while events are matched."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import settings

from tests.examples import THOROUGH

settings.register_profile("tidings", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("thorough", deadline=None, max_examples=THOROUGH)
settings.load_profile("tidings")

# No JVM lives long enough here to earn the good compiler, or a collector with threads of its own: a third less to pay for each.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--coverage", action="store_true", help="say how many lines of the package are reached")
    parser.addoption("--worlds", type=int, default=2, help="how many random worlds of joins are tried")
    parser.addoption("--rounds", type=int, default=1, help="how often each part of the service is killed")
    parser.addoption("--seed", type=int, default=1, help="of the moments when it is")


@pytest.fixture
def worlds(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--worlds"))


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--rounds"))


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--seed"))


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("--coverage"):
        return
    from tests.line_coverage import Measuring, Reporting

    workerinput = getattr(config, "workerinput", None)
    folder = config.rootpath / "build" / "coverage"
    if workerinput is None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        config.pluginmanager.register(Reporting(folder))
    if workerinput is not None or not config.getoption("numprocesses", None):
        worker = workerinput["workerid"] if workerinput else "only"
        config.pluginmanager.register(Measuring(folder, worker))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts long tests first, so that nobody waits for one of them at the end. Folders named on the command line would do that too, and
    import the package before its lines are counted."""
    first = ("tests/cli", "tests/test_docs.py", "tests/service")
    items.sort(
        key=lambda item: next((n for n, name in enumerate(first) if item.nodeid.startswith(name)), len(first))
    )


class _Matching(threading.local):
    """How many matching calls are under way in a thread."""

    depth = 0


def _counted(method: Callable[..., Any], state: _Matching, step: int) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        before = state.depth
        state.depth = before + step if step else 0
        try:
            return method(*args, **options)
        finally:
            state.depth = before

    return call


@pytest.fixture(scope="session", autouse=True)
def parser_rests_while_events_are_matched() -> Iterator[None]:
    """Every test of matching shows that no text is parsed then. What an operator does by itself, such as subscribing
    elsewhere, is its own affair."""
    from tidings.engine.engine import Engine
    from tidings.language import shapes
    from tidings.language.syntax import grammar, sparql

    state = _Matching()

    def refusing(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            assert not state.depth, "a text is parsed while events are matched"
            return method(*args, **options)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("publish", "publish_many", "match", "correlate"):
            patch.setattr(Engine, name, _counted(getattr(Engine, name), state, 1))
        for name in ("subscribe", "subscribe_table", "why"):
            patch.setattr(Engine, name, _counted(getattr(Engine, name), state, 0))
        patch.setattr(grammar.QueryParser, "query", refusing(grammar.QueryParser.query))
        patch.setattr(sparql, "read_sparql", refusing(sparql.read_sparql))
        patch.setattr(shapes.Shapes, "read", refusing(shapes.Shapes.read))
        yield
