"""What the command line says to a new user: warnings, names of events, and errors with a next step."""

import socket

import pytest

from tidings import Event, TidingsError
from tidings.cli import events, subscriptions
from tidings.cli.demo import demo_data
from tidings.formats import documents

from .conftest import EXAMPLES, tidings

QUESTIONS = """\
wrong name: topc = 'sport'
no quotes: WHERE topic = sport
a text:
    WHERE topic = 'sport'
      AND price > '20'
a number: topic = 5
sport: topic = 'sport'
cheap: price < 20
"""
EVENTS = """\
{"topic": "sport", "price": 10}
{"id": "e2", "source": "shop", "topic": "sport", "price": 15}
{"source": "shop", "title": "A bicycle", "topic": "sport", "price": 30}
{"source": "shop", "topic": "sport", "price": 31}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "q.txt").write_text(QUESTIONS)
    (tmp_path / "e.ndjson").write_text(EVENTS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def warnings(result):
    return [line for line in result.stderr.splitlines() if line.startswith("!")]


def test_matches_come_in_the_order_of_events_and_of_the_file_and_name_the_event(here):
    assert tidings("match", "-s", "q.txt", "e.ndjson").stdout.splitlines() == [
        "sport  (e.ndjson:1)",
        "cheap  (e.ndjson:1)",
        "sport  (e2, shop)",
        "cheap  (e2, shop)",
        "sport  (A bicycle, shop)",
        "sport  (shop, e.ndjson:4)",
    ]


def test_matches_of_an_index_come_in_the_order_of_ids(here):
    tidings("index", "build", "index", "-s", "q.txt")
    lines = tidings("match", "-s", "index", "e.ndjson").stdout.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["cheap", "sport", "cheap", "sport"]


def test_likely_mistakes_are_warned_of_after_the_last_event(here, monkeypatch):
    result = tidings("match", "-s", "q.txt", "e.ndjson")
    assert warnings(result) == [
        "! q.txt:1:13: wrong name: no event of this run has the attribute topc; did you mean topic?",
        "! q.txt:2:26: no quotes: sport is read as an attribute; for the text write 'sport'",
        "! q.txt:5:19: a text: price has numbers in events of this run, and '20' is a text; write 20 without quotes",
        "! q.txt:6:19: a number: topic has texts in events of this run, and 5 is a number; for the text write '5'",
    ]
    monkeypatch.setattr(subscriptions, "_WARNINGS_SHOWN", 1)
    assert warnings(tidings("match", "-s", "q.txt", "e.ndjson"))[1:] == ["! and 3 more warnings"]


def test_properties_that_no_graph_has_are_warned_of(here):
    (here / "q.txt").write_text(
        "typo: (?x, rss:titel, ?t), (?x, dc:rights, ?r)\nfilter: title CONTAINS 'Storm'\n"
    )
    (here / "g.nt").write_text('<http://x/1> <http://purl.org/rss/1.0/title> "Storm" .\n')
    typo = "! q.txt:1:12: typo: no event of this run has the property rss:titel; did you mean rss:title?"
    lacks = "! q.txt:2:9: filter: no event of this run has the attribute title, but graphs have the property rss:title"
    written = f"{lacks}; write (?item, rss:title, ?title) AND ?title CONTAINS 'Storm'"
    assert warnings(tidings("match", "-s", "q.txt", "g.nt")) == [typo, written]
    assert warnings(tidings("explain", "-s", "q.txt", "--id", "typo", "g.nt")) == [typo]


def test_without_events_classes_nodes_and_missing_quotes_are_warned_of(here):
    (here / "q.txt").write_text(
        "@prefix ex: <http://example.org/>\n"
        "class: (?x, dc:subject, ?s) AND ?s ISA ex:Sprot\n"
        "quotes: topic = sport AND topc = 'a'\n"
        "both: topic = 'a' AND buyer = seller\n"
        "seller: seller = 'b'\n"
        "node: topic = 'a' VIA exchange AT 'acme sheos'\n"
    )
    result = tidings(
        *("index", "build", "index", "-s", "q.txt", "-t", EXAMPLES / "taxonomy.ttl"),
        *("--network", f"exchange={EXAMPLES / 'exchange'}"),
    )
    assert warnings(result) == [
        "! q.txt:6: node: the network 'exchange' has no node 'acme sheos'; did you mean 'acme shoes'?",
        "! q.txt:2:40: class: the taxonomy has no class ex:Sprot; did you mean ex:Sport?",
        "! q.txt:3:17: quotes: sport is read as an attribute; for the text write 'sport'",
    ]
    result = tidings("index", "add", "index", "new", "topic = sport")
    assert warnings(result) == ["! new: sport is read as an attribute; for the text write 'sport' at 1:9"]


def test_a_refused_text_with_the_id_of_another_is_no_reason_for_more_errors(here):
    (here / "q.txt").write_text("a: topic = 'sport'\na: topic ==\n")
    result = tidings("index", "build", "index", "-s", "q.txt")
    assert result.exit_code == 0
    assert [line.partition(";")[0] for line in warnings(result)] == [
        "! q.txt:2: a is there twice",
        "! q.txt:2:10: a: found '=='",
    ]


@pytest.mark.parametrize(
    ("wanted", "number"),
    [("2", 2), ("derby", 1), ("Tennis: sixteen-year-old  Lindqvist beats the second SEED", 3)],
)
def test_explain_says_which_item_it_is_about(wanted, number):
    given = "-s", EXAMPLES / "subscriptions.txt", "-t", EXAMPLES / "taxonomy.ttl", "-i", "football"
    result = tidings("explain", *given, "--event", wanted, EXAMPLES / "feeds" / "sport.rss")
    head, *lines = result.stdout.splitlines()
    assert f"  event {number}: " in head
    title = head.partition(": ")[2]
    assert f"?title = {title}" in lines[1]  # of the item, not of its channel
    assert lines[1].startswith("  ✓ (?item, rss:title, ?title)")
    assert lines[-2:] == [
        "@prefix rss: <http://purl.org/rss/1.0/>",
        "@prefix dc: <http://purl.org/dc/elements/1.1/>",
    ]


def test_explain_prints_while_events_are_read(here, monkeypatch):
    def read(path):
        yield [Event("shop", {"topic": "sport"}, id="e1")]
        raise TidingsError("the rest is not there yet")

    monkeypatch.setattr(events, "read", read)
    result = tidings("explain", "-s", "q.txt", "-i", "sport", "-")
    assert result.stdout.startswith("shop  event 1: e1\nsport: match")


def test_explain_names_the_events_there_are(here):
    (here / "q.txt").write_text("a: topc = 'sport'")
    result = tidings("explain", "-s", "q.txt", "-i", "a", "--event", "e9", "e.ndjson")
    assert "e.ndjson has no event with the id, number or title 'e9'; it has 1 " in result.stderr
    assert "2 'e2', 3 'A bicycle'" in result.stderr
    result = tidings("explain", "-s", "q.txt", "-i", "a", "--event", "e2", "e.ndjson")
    assert result.stdout.startswith("shop  event 2: e2\na: no match")
    assert "no event of this run has the attribute topc" in result.stderr


def test_errors_of_json_have_the_line_of_the_file(here):
    (here / "e.ndjson").write_text('{"a": 1}\n{"a": 1,\n{"a": x}\n')
    (here / "whole.json").write_text('{\n "a": 1,\n "b": x\n}\n')
    assert warnings(tidings("match", "-s", "q.txt", "e.ndjson", "whole.json"))[:3] == [
        "! e.ndjson:2: not readable as JSON: expecting property name enclosed in double quotes at column 9",
        "! e.ndjson:3: not readable as JSON: expecting value at column 7",
        "! whole.json: not readable as JSON: expecting value at 3:7",
    ]


def test_errors_of_csv_have_the_line_of_the_file(here):
    (here / "q.csv").write_text("id,text\ngood,topic = 'a'\nbad,\"topic =\n\n5 AND\"\n")
    assert "! q.csv:3: bad: the text ends at 3:6" in tidings("match", "-s", "q.csv", "e.ndjson").stderr
    (here / "nodes.csv").write_text("id,where\na,\nb,,\n")
    (here / "edges.csv").write_text("source,target\n")
    error = "nodes.csv:3 is not readable as CSV: expected 2 columns, got 3: b,,"
    assert error in tidings("network", "show", ".").stderr


def test_a_file_that_is_too_large_names_the_limit_and_how_to_raise_it(here):
    (here / "large.ttl").write_bytes(b"#" * (documents.MAX_BYTES + 1))
    (said,) = warnings(tidings("match", "-s", "q.txt", "large.ttl"))
    assert f"large.ttl: the document has more than {documents.MAX_BYTES:,} bytes, which is the limit" in said
    assert said.endswith("the environment variable TIDINGS_MAX_BYTES sets a higher one, in bytes")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("index", "build", "q.txt/in", "-s", "q.txt"), "q.txt/in cannot be written (not a directory)"),
        (("run", "c.toml"), "q.txt/in/index cannot be written (not a directory)"),
        (("serve", "--data", "q.txt/in"), "q.txt/in cannot be written (not a directory)"),
        (("demo", "--keep", "q.txt/in"), "q.txt/in cannot be written (not a directory)"),
    ],
)
def test_a_folder_that_cannot_be_written_is_a_sentence(here, command, said):
    (here / "c.toml").write_text("subscriptions = 'q.txt'\ndata = 'q.txt/in'\n")
    result = tidings(*command)
    assert result.exit_code == 1
    assert f"{said}; name another one" in result.stderr.splitlines()[-1]


def test_the_port_of_the_demo_must_be_free(monkeypatch):
    monkeypatch.setattr(demo_data, "folder", lambda: EXAMPLES)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = tidings("demo", "--port", taken.getsockname()[1])
    assert result.exit_code == 1
    assert "cannot be used (address already in use); name another one by --port" in result.stderr
