"""`tidings dissemination simulate`: a table, lines of JSON, a picture, and one sentence for a mistake."""

import json
import re

import pytest
from matplotlib import rcParams

from tidings.dissemination.simulator import drawing
from tidings.dissemination.simulator.runs import Result

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


@pytest.mark.parametrize("swept", [None, "workload.subscriptions"])
def test_axes_have_plain_numbers(tmp_path, monkeypatch, swept):
    monkeypatch.setitem(rcParams, "svg.fonttype", "none")  # so that texts are texts
    results = [
        Result(scheme, value, 1, size * 3e4, size / 40, size, size, 3.5, 9.0, 1.0, 0.0)
        for scheme, size in (("Rel-Sel", 1_200.0), ("Ref-SJ", 431_500.0))
        for value in ([None] if swept is None else [1_000, 4_000])
    ]
    drawing.draw(results, "title", swept, tmp_path / "drawn.svg")
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", (tmp_path / "drawn.svg").read_text())
    assert {"1,000", "10k", "100k", "100M"} <= set(texts)
    assert {"12,945,000,000", "431,500"} <= set(texts) if swept is None else "4,000" in texts
    assert not [text for text in texts if re.search(r"\de[+-]?\d|mathdefault|\^", text)]


def test_a_picture_of_events_has_their_forwarding_tables(tmp_path, monkeypatch):
    monkeypatch.setitem(rcParams, "svg.fonttype", "none")
    scenario, picture = tmp_path / "events.toml", tmp_path / "events.svg"
    scenario.write_text(
        'network = { kind = "tree", nodes = 4 }\nevents = { subscriptions = 10, topics = 3, events = 3 }'
    )
    result = tidings("dissemination", "simulate", scenario, "-o", picture)
    assert result.stderr.endswith("events.svg: traffic, packets, forwarding tables by network\n")
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", picture.read_text())
    assert {"traffic of an event, bytes × links", "filters in the forwarding table of a node"} <= set(texts)


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
