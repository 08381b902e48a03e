"""`--patterns eventbridge`: rules as they are, against events as they are."""

import json

import pytest

from .conftest import EXAMPLES, tidings

EVENTS = [
    {"id": "e1", "source": "shop", "detail-type": "Order", "detail": {"total": 120, "country": "NZ"}},
    {"id": "e2", "source": "shop", "detail-type": "Refund", "detail": {"total": 20, "country": "AU"}},
    {"id": 3, "time": 99, "kind": "plain", "detail": {"total": "120"}},
]
RULES = {
    "large": {"detail": {"total": [{"numeric": [">", 100]}]}},
    "abroad": {"source": ["shop"], "detail": {"country": [{"anything-but": "NZ"}]}},
    "plain": {"kind": ["plain"], "id": [3]},
}


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "rules.json"
    path.write_text(
        json.dumps({"Rules": [{"Name": n, "EventPattern": json.dumps(p)} for n, p in RULES.items()]})
    )
    return path


@pytest.fixture
def events(tmp_path):
    path = tmp_path / "events.ndjson"
    path.write_text("\n".join(json.dumps(event) for event in EVENTS))
    return path


def answers(result):
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return sorted((row["subscription"], row["event"]) for row in rows)


MATCHES = [("abroad", "e2"), ("large", "e1"), ("plain", "3")]


def test_rules_are_matched(rules, events):
    assert (
        answers(tidings("match", "--patterns", "eventbridge", "-f", "ndjson", "-s", rules, events)) == MATCHES
    )
    assert answers(tidings("match", "--patterns", "eventbridge", "-f", "ndjson", rules, events)) == MATCHES


def test_without_events_standard_input_is_read(rules, events):
    result = tidings("match", "--patterns", "eventbridge", rules, "-f", "ndjson", stdin=events.read_bytes())
    assert answers(result) == MATCHES


def test_refused_rules_are_sentences_and_the_rest_goes_on(rules, events):
    content = json.loads(rules.read_text())
    content["Rules"] += [
        {"Name": "empty", "EventPattern": '{"detail": {"total": []}}'},
        {"Name": "clock", "ScheduleExpression": "rate(5 minutes)"},
    ]
    rules.write_text(json.dumps(content))
    result = tidings("match", "--patterns", "eventbridge", "-f", "ndjson", rules, events)
    assert answers(result) == MATCHES
    assert f"! {rules}: empty: $.detail.total: an empty list matches nothing" in result.stderr
    assert f"! {rules}: clock: the rule runs by a schedule" in result.stderr


def test_rules_are_explained_and_indexed(rules, events, tmp_path):
    result = tidings("explain", "--patterns", "eventbridge", "-s", rules, "-i", "abroad", events)
    assert result.exit_code == 0
    assert "no match" in result.stdout
    root = tmp_path / "index"
    assert tidings("index", "build", root, "--patterns", "eventbridge", "-s", rules).exit_code == 0
    assert answers(tidings("match", "-s", root, "-f", "ndjson", events)) == MATCHES


def test_the_examples(events):
    folder = EXAMPLES / "rules"
    result = tidings("match", "--patterns", "eventbridge", folder / "rules.json", folder / "events.ndjson")
    assert result.exit_code == 0, result.output
    named = {line.split("  ")[0] for line in result.stdout.splitlines()}
    assert named == set(json.loads((folder / "rules.json").read_text()))
    assert "!" not in result.stderr


def test_mistakes_are_told(rules, events, tmp_path):
    assert "Missing option '--subscriptions'" in tidings("match", events).stderr
    assert "Missing argument 'EVENTS…'" in tidings("match", "-s", rules).stderr
    assert "Missing option" in tidings("match", "--patterns", "eventbridge").stderr
    text = tidings("match", "--patterns", "eventbridge", "-s", "WHERE a = 1", events)
    assert text.exit_code == 1
    assert "'WHERE a = 1' is no file; with --patterns, -s names a file of rules" in " ".join(
        text.stderr.split()
    )
    assert "'regex' is not" in tidings("match", "--patterns", "regex", rules, events).stderr
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    result = tidings("match", "--patterns", "eventbridge", broken, events)
    assert result.exit_code == 1
    assert f"{broken}: not readable as JSON" in result.stderr
    assert "No such file" in tidings("match", "--patterns", "eventbridge", tmp_path / "none", events).stderr
