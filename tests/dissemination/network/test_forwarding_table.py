"""Forwarding tables in a tree: every client gets what its own subscription matches, over tables that stay small."""

from __future__ import annotations

import random

import pytest

from tests.dissemination.network.small_networks import Network
from tests.examples import seeds
from tidings import Engine
from tidings.dissemination.network.covering import Changed
from tidings.dissemination.network.forwarding_table import ForwardingTable
from tidings.dissemination.network.node import Node
from tidings.dissemination.network.payloads import Repository
from tidings.dissemination.packet import event_of, event_packet
from tidings.errors import SubscriptionError
from tidings.model.event import Event

TEXTS = [
    "WHERE topic = 'sport'",
    "WHERE topic = 'sport' AND age > 20",
    "WHERE topic = 'sport' AND age > 30",
    "WHERE age BETWEEN 10 AND 25",
    "WHERE age > 5",
    "WHERE topic IN ('sport', 'finance')",
    "SELECT ?t WHERE (?x, <urn:title>, ?t)",
    "SELECT ?t WHERE (?x, <urn:title>, ?t) AND ?t CONTAINS 'a'",
]


class Tree:
    """Nodes that register towards the root what their own tables tell them to."""

    def __init__(self, rng: random.Random) -> None:
        self.names = [f"n{number}" for number in range(rng.randint(1, 5))]
        self.network = Network({})
        for number, name in enumerate(self.names):
            if number:
                self.network.connect(name, self.names[rng.randrange(number)])
            node: Node[str] = Node(
                name, ForwardingTable(self.upwards(name)), repository=Repository(rng.choice([0, 1, 50]))
            )
            self.network.nodes[name] = node

    def table(self, name: str) -> ForwardingTable:
        table = self.network.nodes[name].router
        assert isinstance(table, ForwardingTable)
        return table

    def upwards(self, name: str):  # type: ignore[no-untyped-def]
        def tell(changed: Changed) -> None:
            if name in self.network.parent:
                above = self.table(self.network.parent[name])
                above.update(*([(name, text) for text in texts] for texts in changed))

        return tell


def some_event(rng: random.Random, number: int) -> Event:
    if rng.random() < 0.4:
        text = f'<urn:x> <urn:title> "{rng.choice("abc") * 600}" .'
        return Event.from_rdf(text, "turtle", id=f"e{number}")
    attributes = {
        "topic": rng.choice(["sport", "finance", "art"]),
        "age": rng.randrange(40),
        "long": "z" * 600,
    }
    return Event(id=f"e{number}", attributes=attributes)


@pytest.mark.parametrize("seed", seeds(2, 10))
def test_clients_get_what_they_match(seed: int) -> None:
    rng = random.Random(seed)
    tree, naive = Tree(rng), Engine()
    live: dict[str, tuple[str, str]] = {}
    expected: dict[str, list[Event]] = {}
    for number in range(40):
        client = f"client{number}"
        if rng.random() < 0.5:
            at, text = rng.choice(tree.names), rng.choice(TEXTS)
            tree.network.nodes[at].add_client(client)
            tree.table(at).update([(client, text)], ())
            naive.subscribe(client, text)
            live[client] = at, text
        elif live:
            client = rng.choice(sorted(live))
            at, text = live.pop(client)
            tree.table(at).update((), [(client, text)])
            naive.unsubscribe(client)
        event = some_event(rng, number)
        for one in naive.publish(event):
            if event not in expected.setdefault(str(one.subscription), []):
                expected[str(one.subscription)].append(event)
        tree.network.inject(event_packet(event, number))
    assert expected
    assert {
        client: [event_of(one) for one in got] for client, got in tree.network.received.items()
    } == expected
    for client, (at, text) in live.items():
        tree.table(at).update((), [(client, text)])
    assert not any(len(tree.table(name)) for name in tree.names)


def test_little_is_registered_upwards() -> None:
    sent: list[Changed] = []
    table = ForwardingTable(sent.append)
    for text in TEXTS[:3]:
        table.update([("below", text)], ())
    table.update([("other", TEXTS[2])], ())
    assert (len(table), table.filters("below"), table.filters("other")) == (4, 3, 1)
    assert [changed.register for changed in sent] == [[TEXTS[0]]]
    table.update((), [("below", TEXTS[0])])
    assert sent[-1] == Changed([TEXTS[1]], [TEXTS[0]])
    table.update([("below", TEXTS[1])], ())
    table.update((), [("below", TEXTS[1])])
    assert len(table) == 3
    table.update([("below", TEXTS[4]), ("below", TEXTS[0])], [("below", TEXTS[1]), ("below", TEXTS[0])])
    assert sent[-1] == Changed([TEXTS[4]], [TEXTS[1]])
    assert len(table) == 3


def test_what_cannot_be_registered_changes_nothing() -> None:
    sent: list[Changed] = []
    table = ForwardingTable(sent.append)
    table.update([("below", TEXTS[1])], ())
    with pytest.raises(SubscriptionError, match="nothing on the link 'below' asks for"):
        table.update([("below", TEXTS[2])], [("below", TEXTS[0])])
    with pytest.raises(SubscriptionError):
        table.update([("below", "WHERE (")], ())
    with pytest.raises(SubscriptionError):
        table.update([("below", TEXTS[0]), ("below", "WHERE unknown(?x) AND ?x > 1")], ())
    assert (len(table), len(sent)) == (1, 1)
    assert table.matches(event_packet(Event(id="1", attributes={"topic": "sport", "age": 1})), None) == []
    table.update((), [("below", TEXTS[1])])
    assert (len(table), sent[-1].withdraw) == (0, [TEXTS[1]])
