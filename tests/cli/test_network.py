"""`tidings network` and questions with VIA: what is shown, drawn and told."""

import json

import pytest

from .conftest import EXAMPLES, tidings

EXCHANGE = EXAMPLES / "exchange"
EVENT = EXCHANGE / "event.json"


def test_show_tells_how_large_it_is():
    result = tidings("network", "show", EXCHANGE)
    assert result.exit_code == 0
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines == [
        "nodes 16, 13 with an expression",
        "edges 23, 6 with an expression",
        "distinct expressions 19",
        "publishers 3 that no edge leads to",
        "subscribers 7 that no edge leaves",
        "alone 0",
        "components 15 strongly connected, the largest of 2",
        "most edges out 4: open exchange",
        "most edges in 4: open exchange",
    ]


def test_draw_takes_the_events_source(tmp_path):
    picture = tmp_path / "course.svg"
    result = tidings("network", "draw", EXCHANGE, "--event", EVENT, "-o", picture)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{picture}: 16 nodes and 23 edges\n"
    assert "event impression-1 from match centre" in picture.read_text()
    assert "reached (7)" in picture.read_text()
    result = tidings("network", "draw", EXCHANGE, "--event", EVENT, "--from", "daily news", "-o", picture)
    assert "event impression-1 from daily news" in picture.read_text()


def test_draw_around_a_node(tmp_path):
    picture = tmp_path / "near.png"
    result = tidings("network", "draw", EXCHANGE, "--around", "retail desk", "--depth", 1, "-o", picture)
    assert result.stdout == f"{picture}: 5 nodes and 4 edges\n"
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("--around", "nobody"), "the network has no node 'nobody'"),
        (("--from", "daily news"), "give one with --event FILE"),
        (("--event", EVENT, "--from", "nobody"), "the event's source 'nobody' is no node"),
        (("--event", EXCHANGE / "nodes.csv"), "no event could be read from"),
    ],
)
def test_mistakes_are_told(args, sentence, tmp_path):
    result = tidings("network", "draw", EXCHANGE, *args, "-o", tmp_path / "net.svg")
    assert result.exit_code in (1, 2)
    assert sentence in result.stderr
    assert not (tmp_path / "net.svg").exists()


def test_a_network_that_cannot_be_read_is_a_sentence(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target,where\na,b,age >\n")
    result = tidings("network", "show", tmp_path)
    assert result.exit_code == 1
    assert f"Error: {tmp_path}/edges.csv:2: the expression of this row cannot be read" in result.stderr


def test_an_event_without_a_source_needs_one(tmp_path):
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"topic": "sport"}))
    result = tidings("network", "draw", EXCHANGE, "--event", event, "-o", tmp_path / "net.svg")
    assert "has no source; name a node with --from NODE" in result.stderr


def test_questions_at_nodes_are_matched_and_indexed(tmp_path):
    questions = EXCHANGE / "subscriptions.txt"
    result = tidings("match", "-n", f"exchange={EXCHANGE}", "-s", questions, "-f", "ndjson", EVENT)
    assert result.exit_code == 0, result.output
    found = sorted(json.loads(line)["subscription"] for line in result.stdout.splitlines())
    assert found == ["any Canadian", "shoes for runners"]
    root = tmp_path / "index"
    built = tidings("index", "build", root, "-n", f"exchange={EXCHANGE}", "-s", questions)
    assert built.exit_code == 0, built.output
    again = tidings("match", "-s", root, "-f", "ndjson", EVENT)
    assert sorted(json.loads(line)["subscription"] for line in again.stdout.splitlines()) == found


def test_networks_of_questions_are_named():
    questions = EXCHANGE / "subscriptions.txt"
    assert "is not NAME=PATH" in tidings("match", "-n", EXCHANGE, "-s", questions, EVENT).stderr
    missing = tidings("match", "-s", questions, EVENT)
    assert missing.exit_code == 1
    assert "there is no network 'exchange'" in missing.stderr
