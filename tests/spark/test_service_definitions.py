"""Taxonomy and networks are changed while events flow through Spark: one version for each event, and none is lost."""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.spark.test_service_whole import Serving
from tidings.client import Client

EX = "http://example.org/"
RATE, ROUNDS = 200, 6


def taxonomy(parent: str) -> str:
    return f"<{EX}Thing> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <{EX}{parent}> ."


def network(target: str) -> dict[str, list[dict[str, str]]]:
    nodes = [{"id": name} for name in ("publisher", "left", "right")]
    return {"nodes": nodes, "edges": [{"source": "publisher", "target": target}]}


class Flow(threading.Thread):
    """Publishes events at a steady rate until it is stopped."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self.address, self.accepted, self.stopping = address, 0, threading.Event()

    def run(self) -> None:
        with Client(self.address) as client:
            while not self.stopping.is_set():
                began = time.monotonic()
                first = self.accepted
                self.accepted += client.publish([self.event(first + n) for n in range(RATE // 10)]).accepted
                self.stopping.wait(max(0.0, began + 0.1 - time.monotonic()))

    @staticmethod
    def event(number: int) -> dict[str, str]:
        data = f"<urn:n{number}> a <{EX}Thing> ."
        kind = "text/turtle"
        return {
            "specversion": "1.0", "id": str(number), "source": "publisher", "type": "t", "datacontenttype": kind, "data": data,
        }  # fmt: skip


@pytest.mark.slow
def test_definitions_change_while_events_flow(tmp_path: Path) -> None:
    serving = Serving(tmp_path)
    serving.start()
    try:
        with Client(serving.address) as client:
            deadline = time.monotonic() + 180
            while True:
                try:
                    if client.status().ready:
                        break
                except Exception:
                    assert time.monotonic() < deadline, (tmp_path / "said").read_text()
                time.sleep(0.2)
            check(client, serving.address)
    finally:
        serving.end()


def check(client: Client, address: str) -> None:
    client.set_taxonomy(taxonomy("A"), format="nt")
    client.set_network("exchange", network("left"))
    texts = {
        "all": f"WHERE (?x, rdf:type, <{EX}Thing>)",
        "a": f"WHERE (?x, rdf:type, ?t) AND ?t ISA <{EX}A>",
        "b": f"WHERE (?x, rdf:type, ?t) AND ?t ISA <{EX}B>",
        "left": "WHERE (?x, rdf:type, ?t) VIA exchange AT 'left'",
        "right": "WHERE (?x, rdf:type, ?t) VIA exchange AT 'right'",
    }
    made = {name: client.subscribe(text) for name, text in texts.items()}
    flow = Flow(address)
    flow.start()
    for n in range(ROUNDS):
        time.sleep(1.0)
        client.set_taxonomy(taxonomy("AB"[(n + 1) % 2]), format="nt")
        time.sleep(0.5)
        client.set_network("exchange", network(("right", "left")[n % 2]))
        client.change_network("exchange", [("add_node", [f"new {n}"])])
    flow.stopping.set()
    flow.join(60)
    count = flow.accepted
    assert count > RATE * ROUNDS / 2
    deadline = time.monotonic() + 120
    while sum(1 for _ in client.notifications(made["all"], page=200)) < count:
        assert time.monotonic() < deadline, "not all events are answered"
        time.sleep(1.0)
    found = {name: ids(client, made[name].id) for name in texts}
    everything = Counter({str(n): 1 for n in range(count)})
    assert found["all"] == everything
    assert found["a"] + found["b"] == everything  # by one version of the taxonomy each
    assert found["left"] + found["right"] == everything  # and of the network
    assert all(len(found[name]) > 0 for name in texts)
    versions = {item.kind: item.version for item in client.definitions()}
    assert versions == {"taxonomy": 1 + ROUNDS, "network": 1 + 2 * ROUNDS}


def ids(client: Client, id: str) -> Counter[str]:
    return Counter(each.event["id"] for each in client.notifications(id, page=200) if each.event is not None)
