"""The documents say what is: examples run, help texts are as printed, names and links exist.

`TIDINGS_WRITE_DOCS=1 pytest tests/test_docs.py` writes docs/commands.md anew.
"""

import ast
import doctest
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.service.conftest import Running
from tidings import Engine, Event, Table, Taxonomy, read_network
from tidings.cli import main
from tidings.cli.subscriptions import SubscriptionFile
from tidings.kinds.joins.naive import Naive
from tidings.language.parser import parse
from tidings.language.syntax.prefixes import WELL_KNOWN
from tidings.model.notification import Notification

ROOT = Path(__file__).parents[1]
# Pages whose examples need no service, and those that one service runs, in this order: later pages use what earlier
# ones have subscribed to.
RUN = (
    "README.md",
    "docs/tutorial.md",
    "docs/kinds.md",
    "docs/operators.md",
    "docs/joins.md",
    *(
        f"docs/howto/{name}.md"
        for name in (
            "library command-line containment networks eventbridge dissemination simulate-a-network large-index"
        ).split()
    ),
)
SERVED = (
    "docs/howto/definitions.md",  # first: the stream of the tests forgets rows when the index is built anew
    "docs/service.md",
    *(
        f"docs/howto/{name}.md"
        for name in "follow-feeds deliveries websub python-client backtest replica tokens monitor backup".split()
    ),
)
PAGES = sorted(str(path.relative_to(ROOT)) for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CHECK = doctest.OutputChecker()


def blocks(page):
    """(what stands behind the fence, content) of every code block."""
    return BLOCK.findall((ROOT / page).read_text())


@pytest.fixture
def examples(tmp_path, monkeypatch):
    """A copy of the examples as the current folder."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path / "examples")


def test_every_page_with_examples_is_run():
    shown = {page for page in PAGES if re.search(r"^(>>>|\$) ", (ROOT / page).read_text(), re.MULTILINE)}
    assert shown == {*RUN, *SERVED}


@pytest.mark.parametrize("page", RUN)
def test_python_examples_give_what_they_show(page, examples):
    names = {}
    found = [content for kind, content in blocks(page) if kind == "python"]
    for number, content in enumerate(found):
        if ">>>" not in content:
            compile(content, page, "exec")
            continue
        _doctest(content, names, f"{page} {number}", page)


@pytest.mark.parametrize("page", RUN)
def test_commands_print_what_they_show(page, examples):
    for kind, content in blocks(page):
        if kind.startswith("text "):
            Path(kind.removeprefix("text ")).write_text(content)
        for command, wanted in re.findall(r"^\$ tidings (.*)\n((?:(?!\$ ).*\n)*)", content, re.MULTILINE):
            assert kind == "console"
            got = CliRunner().invoke(main, shlex.split(command)).output
            assert CHECK.check_output(wanted, got, doctest.ELLIPSIS), f"{command}\n{got}"


@pytest.mark.timeout(120)
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_guides_of_the_service_run_from_start_to_end(examples, tmp_path):
    """Against a real service that listens elsewhere. Answers come a moment after events: a command that shows something
    else is run again for a while."""
    names, known = {"__name__": "guides"}, dict(os.environ)
    tables = tmp_path / "examples" / "stocks" / "tables.toml"
    with Running(
        data=tmp_path / "examples" / "tidings-data", allowed=("127.0.0.0/8",), tables=tables
    ) as served:
        for page, kind, content in ((guide, *block) for guide in SERVED for block in blocks(guide)):
            content = content.replace("localhost:8750", f"127.0.0.1:{served.service.settings.port}")
            if kind.startswith("text "):
                Path(kind.removeprefix("text ")).write_text(content)
            elif kind == "python":
                _doctest(content, names, page, page)
            for command, wanted in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", content, re.MULTILINE):
                assert kind == "console"
                got, until = _said(command, known), time.monotonic() + 10
                while not CHECK.check_output(wanted, got, doctest.ELLIPSIS) and time.monotonic() < until:
                    time.sleep(0.1)
                    got = _said(command, known)
                assert CHECK.check_output(wanted, got, doctest.ELLIPSIS), f"{command}\n{got}"
                if (
                    got.startswith('{"id"') and '"ticket"' in got
                ):  # "say that $ID and $TICKET are those of the answer"
                    known |= {"ID": json.loads(got)["id"], "TICKET": json.loads(got)["ticket"]}
    assert "TICKET" in known
    assert "server" in names


def _said(command, known):
    if command.startswith("tidings "):
        return CliRunner().invoke(main, shlex.split(command)[1:]).output
    # Notifications of curl's own, such as that its time is over, are on standard error.
    done = subprocess.run(["bash", "-c", command], env=known, capture_output=True, text=True, timeout=60)
    return done.stdout if not done.stdout or done.stdout.endswith("\n") else done.stdout + "\n"


def _doctest(content, names, title, page):
    """Runs a block, with the names that blocks before it have given."""
    test = doctest.DocTestParser().get_doctest(content, {}, title, page, 0)
    test.globs = names  # not a copy: what is defined here sees what comes later
    failures = []
    doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(
        test, out=failures.append, clear_globs=False
    )
    assert not failures, "".join(failures)


def test_the_events_of_the_kinds_match_their_subscriptions(tmp_path):
    page = "docs/kinds.md"
    kinds = dict(reversed(blocks(page)))
    prefixes = {**WELL_KNOWN, "ex": "http://example.org/"}
    declared = "".join(f"@prefix {name}: <{iri}> .\n" for name, iri in prefixes.items() if name)
    events = (
        Event.from_rdf(declared + kinds["turtle"], "turtle"),
        Event.from_cloudevent(json.loads(kinds["json"])),
    )
    taxonomy = Taxonomy.from_rdf((ROOT / "examples/taxonomy.ttl").read_bytes(), "turtle")
    networks = {"exchange": read_network(ROOT / "examples/exchange")}
    engine = Engine(taxonomy=taxonomy, prefixes=prefixes, networks=networks)
    shown = []
    for content in (content for kind, content in blocks(page) if not kind):
        (tmp_path / "subscriptions.txt").write_text(content)
        entries = SubscriptionFile.read(tmp_path / "subscriptions.txt").entries
        shown.append({entry.id for entry in entries})
        for entry in entries:
            engine.subscribe(entry.id, entry.text)
    assert [len(ids) for ids in shown] == [5, 5]
    for event, ids in zip(events, shown, strict=True):
        assert {n.subscription for n in engine.publish(event)} == ids


def cells(text):
    """The tables of a text, each a list of rows without its head."""
    tables = re.findall(r"^\|.*\|\n\|[-|]+\|\n((?:\|.*\|\n)+)", text, re.MULTILINE)
    return [
        [[cell.strip() for cell in line[1:-1].split("|")] for line in found.splitlines()] for found in tables
    ]


def test_joins_of_the_language_are_told_what_its_guide_says():
    section = (ROOT / "LANGUAGE.md").read_text().split("\n## Joins of tables\n")[1].split("\n## ")[0]
    declared, changes = cells(section)
    tables = [
        Table(name.strip("`"), dict(column.split() for column in columns.split(", ")), key.split())
        for name, columns, key in declared
    ]
    engine, naive = Engine(tables=tables), Naive(tables)
    questions = [content for kind, content in BLOCK.findall(section) if kind == "tidings"]
    assert len(questions) == 4
    for number, question in enumerate(questions):
        engine.subscribe(str(number), question)
        naive.subscribe(str(number), parse(question))
    for written, wanted in changes:
        found = {
            n.subscription: n.changes
            for n in Notification.from_table(engine.publish_lines(written.strip("`")))
        }
        told = [" ".join(map(str, [one.change, one.table, *one.row.values()])) for one in found.get("0", ())]
        assert ", ".join(sorted(told)) == wanted, written
        change = json.loads(written.strip("`"))
        op = next(iter(change))
        assert naive.apply(op, change[op], change["row"]).keys() == found.keys()


def help_texts():
    """docs/commands.md: what `--help` says, command by command."""
    parts = ["# Commands\n", "What `--help` says of each command. Written by the tests; do not edit.\n"]

    def add(command, words):
        text = CliRunner().invoke(main, [*words, "--help"], terminal_width=96, prog_name="tidings").output
        parts.append(f"## {' '.join(['tidings', *words])}\n\n```text\n{text.rstrip()}\n```\n")
        if isinstance(command, click.Group):
            for name in command.list_commands(None):
                add(command.get_command(None, name), [*words, name])

    add(main, [])
    return "\n".join(parts)


def test_the_help_texts_in_the_docs_are_those_of_the_commands():
    page = ROOT / "docs" / "commands.md"
    if os.environ.get("TIDINGS_WRITE_DOCS"):
        page.write_text(help_texts())
    assert page.read_text() == help_texts(), "run: TIDINGS_WRITE_DOCS=1 pytest tests/test_docs.py"


def anchors(page):
    """The anchors of a page's headings, as GitHub and the site make them."""
    found = []
    for heading in re.findall(r"^#+ (.*)$", BLOCK.sub("", (ROOT / page).read_text()), re.MULTILINE):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.append(re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = BLOCK.sub("", (ROOT / page).read_text())
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text):
        if "://" in target:
            continue
        path = Path(os.path.normpath((ROOT / page).parent / target)) if target else ROOT / page
        assert path.is_file(), f"{page} links to {target}"
        if anchor:
            assert anchor in anchors(path), f"{page} links to {target}#{anchor}"


def test_the_reference_has_every_public_name():
    import tidings.spark

    pages = [(ROOT / page).read_text() for page in PAGES if page.startswith("docs/api/")]
    shown = set(re.findall(r"^::: tidings\.([\w.]+)$", "\n".join(pages), re.MULTILINE))
    assert shown >= {*tidings.__all__, *(f"spark.{name}" for name in tidings.spark.__all__)}


def test_the_site_has_every_page():
    nav = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    hooks = ast.parse(
        (ROOT / "scripts" / "docs_site.py").read_text()
    )  # mkdocs, which it imports, need not be here
    (moved,) = (
        ast.literal_eval(node.value)
        for node in hooks.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PAGES"
    )
    for page in PAGES:
        uri = page.removeprefix("docs/") if "/" in page else moved[page]
        assert re.search(rf"[ ]{re.escape(uri)}$", nav, re.MULTILINE), f"mkdocs.yml does not name {uri}"


@pytest.mark.slow
def test_the_site_is_built_without_warnings_and_needs_no_other_host(tmp_path):
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(tmp_path / "site"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    for page in (tmp_path / "site").rglob("*.html"):
        loaded = re.findall(
            r"<(?:script|img|iframe|link)\b[^>]*(?:src|href)=[\"']?https?://[^>]*>", page.read_text()
        )
        assert not loaded, f"{page.name} loads {loaded}"
    assert (tmp_path / "site" / "search" / "search_index.json").stat().st_size > 100_000


def test_the_architecture_names_every_folder_and_where_to_start():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    table = {
        cells[1].strip(): cells[3]
        for line in text.splitlines()
        if (cells := line.split("|"))[0] == "" and len(cells) > 4
    }
    package = ROOT / "src" / "tidings"
    named = {name.strip("`").rstrip("/"): starts for name, starts in table.items() if name.startswith("`")}
    inner = {"kinds", "service"}  # whose parts are named
    there = {path.name for path in package.iterdir() if not path.name.startswith(("__", "py."))} - {"kinds"}
    for folder in inner:
        there |= {f"{folder}/{path.name}" for path in (package / folder).iterdir() if path.is_dir()}
    assert {name for name in there if not name.endswith("__pycache__")} == set(named)
    for name, starts in named.items():
        for file in re.findall(r"`([\w/]+\.py)`", starts):
            assert (package / name / file).is_file(), f"{name} has no {file}"
    for path in re.findall(r"`((?:src|tests|docs|engine|language|model|storage)/[\w/]+\.(?:py|md))`", text):
        assert (ROOT / path).is_file() or (package / path).is_file(), path


def imports_of(code):
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tidings":
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names if alias.name.split(".")[0] == "tidings")


def published_code():
    """The Python of pages and examples."""
    for page in PAGES:
        for block in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S):
            if ">>>" in block:
                lines = [line[4:] for line in block.splitlines() if line.startswith((">>> ", "... "))]
                yield page, "\n".join(lines)
            else:
                yield page, block
    for path in (ROOT / "examples").rglob("*.py"):
        yield str(path.relative_to(ROOT)), path.read_text()


def test_pages_and_examples_import_the_public_names_alone():
    import tidings.spark

    public = {"tidings": tidings.__all__, "tidings.spark": tidings.spark.__all__}
    seen = 0
    for page, code in published_code():
        for module, name in imports_of(code):
            seen += 1
            assert module in public, f"{page} imports {module}"
            assert name is None or name in public[module] or f"tidings.{name}" in public, (
                f"{page} imports {name}"
            )
    assert seen > 30
