"""`tidings dissemination simulate`: a table, lines of JSON, a picture, and one sentence for a mistake."""

import json

import pytest

from .conftest import EXAMPLES, tidings

SMALL = """
schemes = ["Rel-Sel", "Ref-SJ-Clu+"]
network.nodes = 10
workload = { subscriptions = 300, r_rows = 100, s_rows = 100, changes = 20 }
sweep."caches.repository" = [0, 20]
"""


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "scenario.toml"
    path.write_text(SMALL)
    return path


def test_a_table_and_a_picture(scenario, tmp_path):
    picture = tmp_path / "network.svg"
    result = tidings("dissemination", "simulate", scenario, "-o", picture)
    assert result.exit_code == 0, result.output
    heading, *lines = result.stdout.splitlines()
    assert heading.split()[:3] == ["scheme", "repository", "traffic"]
    assert [line.split()[:2] for line in lines] == [
        ["Rel-Sel", "0"], ["Ref-SJ-Clu+", "0"], ["Rel-Sel", "20"], ["Ref-SJ-Clu+", "20"],
    ]  # fmt: skip
    assert picture.read_text().startswith("<?xml")


def test_json(scenario):
    result = tidings("dissemination", "simulate", scenario, "--json")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(one["scheme"], one["value"]) for one in found][:2] == [("Rel-Sel", 0), ("Ref-SJ-Clu+", 0)]
    assert all(one["traffic"] > 0 for one in found if one["scheme"] == "Rel-Sel")


def test_mistakes(scenario, tmp_path):
    scenario.write_text("[network]\nknots = 5")
    result = tidings("dissemination", "simulate", scenario)
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: there is no setting 'network.knots'; ")
    result = tidings("dissemination", "simulate", EXAMPLES / "dissemination.toml", "-o", tmp_path / "x.txt")
    assert (
        result.stderr
        == f"Error: {tmp_path / 'x.txt'} is not the name of a picture; end it with .png or .svg\n"
    )
    assert tidings("dissemination", "simulate", tmp_path / "none.toml").exit_code == 2
