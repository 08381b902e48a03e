"""Operators on the command line: where they come from, what is told of them, and what goes wrong with them."""

import json
import re

import pytest

from tidings.storage import versions

from .conftest import EXAMPLES, tidings

CITY = EXAMPLES / "city"
QUESTIONS = ("-s", CITY / "subscriptions.txt", "--operators", CITY / "operators.py")
EVENTS = CITY / "events.jsonl"


def told(output: str) -> list[str]:
    """Lines without the times."""
    return [re.sub(r", [\d.]+ (s|ms|µs)(?=$| )", "", line) for line in output.splitlines()]


def test_the_five_subscriptions_of_the_city():
    result = tidings("match", *QUESTIONS, EVENTS)
    assert result.exit_code == 0
    assert sorted(line.partition("  ")[0] for line in result.stdout.splitlines()) == [
        "accident without police",
        "chase",
        "full streets",
        "full streets",
        "mob",
        "mob",
        "too few on watch",
    ]
    assert (
        "undecided: trafficPattern failed: ValueError: the picture of camera/columbus-circle" in result.stdout
    )
    events, operators = result.stderr.splitlines()
    assert events == "12 events against 5 subscriptions: 7 notifications"
    assert re.fullmatch(r"operators: \d+ evaluations in .*, \d+ spared that would have taken .*", operators)


def test_an_installed_module_and_several_of_them(tmp_path, monkeypatch):
    (tmp_path / "odd_operators.py").write_text(
        "import tidings\n\n@tidings.operator\ndef odd(event):\n    return event.attributes['n'] % 2 == 1\n"
    )
    (tmp_path / "questions.txt").write_text("odd: WHERE odd()\nbronx: WHERE locIn(Bronx)\n")
    camera = '{"id": "2", "n": 2, "lat": 40.85, "lon": -73.85}'
    (tmp_path / "events.ndjson").write_text(f'{{"id": "1", "n": 1}}\n{camera}\n')
    monkeypatch.syspath_prepend(tmp_path)
    result = tidings(
        "match",
        *(
            "-s",
            tmp_path / "questions.txt",
            "--operators",
            "odd_operators",
            "--operators",
            CITY / "operators.py",
        ),
        *("--operators", "odd_operators", tmp_path / "events.ndjson", "-f", "ndjson"),
    )
    answers = {
        (row["subscription"], row["event"], row["verdict"])
        for row in map(json.loads, result.stdout.splitlines())
    }
    assert answers == {("odd", "1", "match"), ("bronx", "2", "match")}


def test_explanations_say_what_ran_and_what_was_spared():
    result = tidings("explain", *QUESTIONS, "-i", "mob", "--event", "p02", EVENTS)
    assert result.exit_code == 0
    assert told(result.stdout) == [
        "camera/fordham-road  event 2: p02",
        "mob: match",
        "  ✓ locIn('Bronx')   ran: true",
        "  ✓ mobPattern(?people)   ran: ?people = 85 (1 of 2)",
        "  ✓ ?people > 50",
    ]
    result = tidings("explain", *QUESTIONS, "-i", "full streets", EVENTS)
    assert "  · pedestrianCount(?ped)   spared: locWithin('TimesSquare', 5000) is false" in told(
        result.stdout
    )
    assert result.stdout.count("full streets: ") == 12
    result = tidings("explain", *QUESTIONS, "-i", "mob", "--event", "p99", EVENTS)
    assert result.exit_code == 1
    assert (
        f"{EVENTS} has no event with the id, number or title 'p99'; it has 1 'p01', 2 'p02'" in result.stderr
    )


@pytest.mark.parametrize("suffix", ["png", "svg", "txt", "csv", "json"])
def test_statistics_go_to_a_file(suffix, tmp_path):
    path = tmp_path / f"stats.{suffix}"
    assert tidings("match", *QUESTIONS, "--stats", path, EVENTS).exit_code == 0
    content = path.read_bytes()
    begins = {
        "png": b"\x89PNG",
        "svg": b"<?xml",
        "txt": b"predicate ",
        "csv": b'"predicate","operator"',
        "json": b"[",
    }
    assert content.startswith(begins[suffix])
    if suffix == "json":
        rows = {row["predicate"]: row for row in json.loads(content)}
        assert rows["locIn('Bronx')"]["evaluations"] == 12
        assert rows["locIn('Bronx')"]["hits"] == 6


def test_statistics_of_another_kind_are_refused_before_any_work(tmp_path):
    result = tidings("match", *QUESTIONS, "--stats", tmp_path / "stats.doc", EVENTS)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "name a file .png, .svg, .txt, .csv, .json" in result.stderr


def test_a_subscription_that_calls_what_is_not_there_is_left_out(tmp_path):
    (tmp_path / "questions.txt").write_text(
        "good: {locIn(Bronx)}\n"
        "misspelt: {locln(Bronx)}\n"
        "too much: {locIn(Bronx, 3)}\n"
        "unbound: {locIn(?where)}\n"
        "plain: WHERE speed > 20\n"
    )
    result = tidings(
        "match",
        "-s",
        tmp_path / "questions.txt",
        "--operators",
        CITY / "operators.py",
        EVENTS,
        "-f",
        "ndjson",
    )
    assert result.exit_code == 0
    assert {json.loads(line)["subscription"] for line in result.stdout.splitlines()} == {"good", "plain"}
    remarks = result.stderr.splitlines()[:3]
    assert "questions.txt:2: misspelt: unknown operator 'locln'; did you mean 'locIn'?" in remarks[0]
    assert "questions.txt:3: too much: locIn has 1 argument, not 2" in remarks[1]
    assert "questions.txt:4: unbound: ?where is an input of locIn" in remarks[2]


def test_questions_without_their_operators():
    result = tidings("match", "-s", CITY / "subscriptions.txt", EVENTS)
    assert result.exit_code == 1
    assert "chase: unknown operator 'locIn'" in result.stderr
    assert "--operators" in result.stderr


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "there is no file"),
        ("x = 1\n", "has no operators; decorate its functions with @tidings.operator"),
        ("raise RuntimeError('no model')\n", "cannot be loaded: RuntimeError: no model"),
        ("def f(:\n", "cannot be loaded: SyntaxError"),
    ],
)
def test_a_file_without_operators(content, sentence, tmp_path):
    if content is not None:
        (tmp_path / "operators.py").write_text(content)
    result = tidings(
        "match", "-s", CITY / "subscriptions.txt", "--operators", tmp_path / "operators.py", EVENTS
    )
    assert result.exit_code == 1
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_module_that_is_not_installed():
    result = tidings("match", "-s", CITY / "subscriptions.txt", "--operators", "no.such.module", EVENTS)
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "there is no module 'no.such.module'" in result.stderr


def test_an_index_with_operators(tmp_path):
    root = tmp_path / "index"
    operators = ("--operators", CITY / "operators.py")
    assert tidings("index", "build", root, *QUESTIONS).exit_code == 0
    result = tidings("index", "add", root, "crowd", "{pedestrianCount(?ped), (?ped>400)}")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "--operators" in result.stderr
    assert (
        tidings("index", "add", root, "crowd", "{pedestrianCount(?ped), (?ped>400)}", *operators).exit_code
        == 0
    )
    shown = " ".join(tidings("index", "show", root, *operators).stdout.split())
    assert "locIn, chasePattern, " in shown
    assert ": 12 predicates" in shown
    result = tidings("match", "-s", root, *operators, EVENTS)
    assert "crowd                    ?ped 412" in result.stdout
    assert tidings("index", "compact", root, *operators).exit_code == 0
    assert tidings("index", "remove", root, "crowd", *operators).exit_code == 0
    assert "crowd" not in versions.open(root, versions.current(root))
