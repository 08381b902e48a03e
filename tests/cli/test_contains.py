"""`tidings contains`: answers, exit codes, and mistakes."""

from __future__ import annotations

import pytest

from tests.cli.conftest import EXAMPLES, tidings


def test_yes_shows_the_mapping():
    result = tidings("contains", "(?a, dc:subject, ?s)", "(?i, dc:subject, 'goal'), (?i, rss:title, ?t)")
    assert (result.exit_code, result.stdout.splitlines()) == (
        0,
        [
            "yes: every event that matches B also matches A",
            "  ?a of A is ?i of B",
            "  ?s of A is 'goal' of B",
        ],
    )


def test_each_alternative_has_a_mapping():
    b = "(?i, dc:subject, 'goal') OR (?j, dc:subject, 'cup')"
    result = tidings("contains", "(?a, dc:subject, ?s)", b)
    assert "  alternative 2 of B\n  ?a of A is ?j of B\n" in result.stdout


@pytest.mark.parametrize(
    ("a", "b", "event"),
    [("x > 20", "x > 10", '  {"x": 11}'), ("(?a, rss:title, 'x')", "(?a, rss:title, ?t)", "/title> ")],
)
def test_no_shows_an_event(a, b, event):
    result = tidings("contains", a, b)
    assert result.exit_code == 1
    assert result.stdout.startswith("no: this event matches B and not A\n")
    assert event in result.stdout


def test_not_sure():
    for a, b in (("NOT x >= 5", "NOT x > 4"), ("x = 1 VIA net AT 'n'", "x = 1")):
        result = tidings("contains", a, b)
        assert (result.exit_code, result.stdout[:9]) == (2, "not sure:")


def test_ids_of_a_file_with_its_prefixes_and_a_taxonomy(tmp_path):
    file = tmp_path / "subscriptions.txt"
    file.write_text(
        "@prefix ex: <http://example.org/>\n"
        "wheels: (?i, dc:subject, ?s) AND ?s ISA ex:Sport\n"
        "cycling: (?i, dc:subject, ?s) AND ?s ISA ex:Cycling\n"
    )
    classes = ("-t", EXAMPLES / "taxonomy.ttl")
    assert tidings("contains", "-s", file, *classes, "wheels", "cycling").exit_code == 0
    assert tidings("contains", "-s", file, *classes, "cycling", "wheels").exit_code == 1
    assert tidings("contains", "-s", file, "wheels", "cycling").exit_code == 1
    wrong = tidings("contains", "-s", file, "wheel", "cycling")
    assert wrong.exit_code == 2
    assert "has no subscription 'wheel'; did you mean 'wheels'?" in wrong.stderr


def test_a_mistake_is_one_sentence_that_names_the_subscription():
    result = tidings("contains", "x > 1", "x >")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: the second subscription: ")
    assert "$low has no value" in tidings("contains", "x > $low", "x > 1").stderr
