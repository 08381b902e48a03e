"""A real browser before a real service. Chromium is the system's; where there is none these tests are skipped."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.service.conftest import Running, Served

EXAMPLES = Path(__file__).parents[4] / "examples"
FLAGS = [
    "--no-sandbox",
    "--headless=new",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

OPERATORS = '''import tidings

@tidings.operator(cost=0.02, timeout=1.5)
def often(event, place: str) -> bool:
    """Whether it happens
    often there."""
    return True
'''


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Open, with the taxonomy of the examples."""
    with Running(
        data=tmp_path_factory.mktemp("pages"),
        taxonomy=EXAMPLES / "taxonomy.ttl",
        prefixes={"ex": "http://example.org/"},
    ) as served:
        yield served


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Open, on loopback inside and out, with a table, a network and an operator."""
    folder = tmp_path_factory.mktemp("house")
    (folder / "tables.toml").write_text(
        '[stocks]\ncolumns = { symbol = "text", per = "number" }\nkey = ["symbol"]\n'
    )
    (folder / "operators.py").write_text(OPERATORS)
    with Running(
        data=folder / "data",
        allowed=("127.0.0.0/8",),
        tables=folder / "tables.toml",
        operators=(str(folder / "operators.py"),),
        networks={"exchange": EXAMPLES / "exchange"},
        taxonomy=EXAMPLES / "taxonomy.ttl",
    ) as served:
        yield served


@contextmanager
def running_chromium() -> Iterator[Any]:
    """Skips the test where there is none."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no Chromium is installed on this machine; install the package chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with playwright.sync_playwright() as p:
        try:
            browser = p.chromium.launch(executable_path=found, args=FLAGS)
        except playwright.Error as error:
            pytest.skip(f"Chromium does not start on this machine: {str(error).splitlines()[0]}")
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def chromium() -> Iterator[Any]:
    """Not for the whole session: Playwright keeps an event loop in this thread, where others start theirs."""
    with running_chromium() as browser:
        yield browser


@dataclass
class Window:
    """A visitor's browser. What its console said, and what its policy refused, is in `complaints`."""

    page: Any
    url: str
    complaints: list[str] = field(default_factory=list)

    def go(self, path: str) -> None:
        self.page.goto(self.url + path)

    def wait_for(self, path: str) -> None:
        self.page.wait_for_url(re.compile(re.escape(self.url) + path))


@pytest.fixture
def open_window(chromium: Any) -> Iterator[Any]:
    contexts = []

    def make(served: Served, **settings: Any) -> Window:
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        contexts.append(context)
        context.set_default_timeout(10_000)
        page = context.new_page()
        window = Window(page, served.url)
        page.on("pageerror", lambda error: window.complaints.append(f"error: {error}"))
        page.on("console", lambda said: said.type == "error" and window.complaints.append(said.text))
        # A dialog is somebody's script, or ours that asks whether one is sure.
        page.on("dialog", lambda dialog: dialog.accept())
        return window

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def window(open_window: Any, service: Served) -> Iterator[Window]:
    """Whoever uses this one sees to it that nothing was complained about."""
    opened = open_window(service)
    yield opened
    assert opened.complaints == []
