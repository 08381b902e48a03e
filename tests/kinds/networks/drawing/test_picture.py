"""Drawings: what is drawn, how an event's course is told, and where things come to lie."""

import json
import random
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import EXAMPLES
from tidings.kinds.networks.drawing.excerpt import (
    ASIDE,
    AWAITS,
    PASSED,
    PUBLISHER,
    REACHED,
    REFUSES,
    excerpt,
    trace_event,
)
from tidings.kinds.networks.drawing.layout import layered
from tidings.kinds.networks.drawing.picture import draw
from tidings.kinds.networks.faults import NetworkError
from tidings.kinds.networks.files.sources import read_network
from tidings.kinds.networks.network import Network


@pytest.fixture(scope="module")
def exchange():
    return read_network(EXAMPLES / "exchange")


@pytest.fixture(scope="module")
def event():
    return json.loads((EXAMPLES / "exchange" / "event.json").read_text())


def chain(count):
    network = Network()
    for number in range(count):
        network.add_node(f"n{number}")
        if number:
            network.add_edge(f"n{number - 1}", f"n{number}")
    return network


# -- what is drawn


def test_an_excerpt_is_what_leads_there_and_what_it_leads_to(exchange):
    part = excerpt(exchange, "retail desk", 1)
    assert set(part.nodes) == {"north network", "news network", "retail desk", "beanery", "city tours"}
    assert part.edges["retail desk", "city tours"] == "device.kind != 'tv'"
    assert part.publishers == frozenset()  # others lead to the networks, though they are not drawn
    assert part.subscribers == {"beanery", "city tours"}
    assert set(excerpt(chain(9), "n4", 2).nodes) == {"n2", "n3", "n4", "n5", "n6"}
    assert set(excerpt(chain(9), "n4", 0).nodes) == {"n4"}


def test_what_is_too_large_is_refused():
    with pytest.raises(NetworkError, match="has 201 nodes, too many to be looked at; .*--around NODE"):
        excerpt(chain(201))
    assert len(excerpt(chain(201), "n100", 3).nodes) == 7
    star = chain(1)
    for number in range(300):
        star.add_node(f"leaf {number}")
        star.add_edge("n0", f"leaf {number}")
    with pytest.raises(NetworkError, match="more than 200 nodes are within 1 edges of 'n0'"):
        excerpt(star, "n0", 1)
    assert len(excerpt(star, "leaf 7", 1).nodes) == 2
    with pytest.raises(NetworkError, match="has no node 'n9'"):
        excerpt(star, "n9", 1)


def test_the_course_of_an_event(exchange, event):
    course = trace_event(exchange, excerpt(exchange), "match centre", event)
    by_state = {}
    for name, state in course.nodes.items():
        by_state.setdefault(state, set()).add(name)
    reached = {
        "sport network",
        "open exchange",
        "acme shoes",
        "fit club",
        "green bank",
        "city tours",
        "hello telecom",
    }
    assert by_state == {
        PUBLISHER: {"match centre"},
        REACHED: reached,
        REFUSES: {"night exchange"},
        AWAITS: {"daily news", "city blog", "north network", "retail desk", "beanery"},
        ASIDE: {"news network", "dream hotels"},
    }
    assert course.edges["sport network", "fit club"] == PASSED
    assert course.edges["open exchange", "night exchange"] == PASSED
    assert course.edges["night exchange", "open exchange"] == ASIDE
    older = trace_event(exchange, excerpt(exchange), "match centre", {**event, "age": 64})
    assert older.edges["sport network", "fit club"] == REFUSES
    assert older.nodes["fit club"] == AWAITS


def test_an_excerpt_knows_what_comes_from_outside_it(exchange, event):
    part = excerpt(exchange, "night exchange", 0)
    assert trace_event(exchange, part, "match centre", event).nodes == {"night exchange": REFUSES}


# -- the picture


def test_svg_holds_texts_and_is_the_same_each_time(exchange, event, tmp_path):
    for name in ("one.svg", "two.svg"):
        draw(exchange, tmp_path / name, source="match centre", event=event, title="an event")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    texts = [
        "".join(t.itertext()).strip()
        for t in ElementTree.parse(tmp_path / "one.svg").iter()
        if t.tag.endswith("}text")
    ]
    for text in (
        "open exchange",
        "age < 60",
        "reached (7)",
        "reachable, but refuses the event (1)",
        "an event",
    ):
        assert text in texts
    assert any(text.startswith("topic = 'sport' AND age BETWEEN 18") and text.endswith("…") for text in texts)


def test_png(exchange, tmp_path):
    draw(exchange, tmp_path / "net.PNG", around="open exchange", depth=1)
    assert (tmp_path / "net.PNG").read_bytes().startswith(b"\x89PNG")


def test_every_small_network_can_be_drawn(tmp_path):
    odd = Network()
    with pytest.raises(NetworkError, match="no nodes"):
        draw(odd, tmp_path / "empty.svg")
    odd.add_node("$a_b^c$ <&> é")
    odd.add_edge("$a_b^c$ <&> é", "$a_b^c$ <&> é", "a = '$x$'")
    odd.add_node("far away\nin two lines")
    draw(odd, tmp_path / "odd.svg")
    assert "$a_b^c$ &lt;&amp;&gt; é" in (tmp_path / "odd.svg").read_text()


def test_what_cannot_be_drawn_is_told(exchange, event, tmp_path):
    with pytest.raises(NetworkError, match="name a file .svg or .png"):
        draw(exchange, tmp_path / "net.pdf")
    with pytest.raises(NetworkError, match="an event is published at a node"):
        draw(exchange, tmp_path / "net.svg", event=event)
    with pytest.raises(NetworkError, match="has no node 'nobody'"):
        draw(exchange, tmp_path / "net.svg", event=event, source="nobody")


# -- the layout


@pytest.mark.parametrize("seed", range(30))
def test_boxes_are_apart_and_edges_run_to_the_right(seed):
    chance = random.Random(seed)
    nodes = [f"n{number}" for number in range(chance.randint(1, 40))]
    edges = list({(chance.choice(nodes), chance.choice(nodes)) for _ in range(chance.randint(0, 80))})
    sizes = {name: (chance.uniform(20, 150), chance.choice([22.0, 32.0])) for name in nodes}
    layout = layered(nodes, edges, sizes, dict.fromkeys(edges[::3], 50.0))
    boxes = [(x, y, *sizes[name]) for name, (x, y) in layout.places.items()]
    for position, (x, y, wide, high) in enumerate(boxes):
        for u, v, other_wide, other_high in boxes[:position]:
            apart = (
                abs(x - u) >= (wide + other_wide) / 2 - 1e-6 or abs(y - v) >= (high + other_high) / 2 - 1e-6
            )
            assert apart
    for (source, target), way in layout.ways.items():
        if (source, target) not in layout.back:
            assert layout.places[source][0] < layout.places[target][0]
        # An edge goes up and down only between columns, so it crosses no box.
        for (x0, y0), (x1, y1) in zip(way[1:-1:2], way[2:-1:2], strict=True):
            assert y0 == y1
            low, high_x = min(x0, x1), max(x0, x1)
            for name, (x, y) in layout.places.items():
                if low <= x <= high_x:
                    assert abs(y - y0) >= sizes[name][1] / 2 - 1e-6
    if not layout.back:
        assert all(a != b for a, b in edges)
