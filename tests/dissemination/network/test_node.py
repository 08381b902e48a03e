"""A node passes on what is wanted behind its links, and a payload over a link once if it may. Select-joins, 5, G and H."""

from __future__ import annotations

import random

import pytest

from tests.dissemination.network.small_networks import Network, Table
from tidings.dissemination.network.node import Node, Waiting
from tidings.dissemination.network.payloads import Directory, Repository
from tidings.dissemination.packet import WireError, event_of, event_packet, payload_id, without_payload
from tidings.model.event import Event

PHOTO = b"p" * 1_000


def event(number: int, data: bytes = PHOTO) -> Event:
    return Event(id=f"e{number}", attributes={"n": number}, data=data)


def packet(number: int, data: bytes = PHOTO):  # type: ignore[no-untyped-def]
    return event_packet(event(number, data), number)


def anything(_: object) -> bool:
    return True


def chain(**settings: object) -> Network:
    """a - b - c, with clients of a and c."""
    network = Network({name: Node(name, Table(), **settings) for name in "abc"})  # type: ignore[arg-type]
    network.connect("b", "a")
    network.connect("c", "b")
    network.subscribe("x", "a", anything)
    network.subscribe("y", "c", anything)
    return network


def test_a_payload_crosses_a_link_once() -> None:
    network = chain()
    network.inject(packet(1))
    network.inject(packet(2))
    assert [one for one in network.carried if one[1] not in "xy"] == [
        ("a", "b", True), ("b", "c", True), ("a", "b", False), ("b", "c", False),
    ]  # fmt: skip
    for client in "xy":
        assert [event_of(one) for one in network.received[client]] == [event(1), event(2)]
    assert network.fetched == []


def test_a_link_that_has_no_bit_gets_the_payload_from_the_repository() -> None:
    network = chain()
    network.inject(packet(1))
    network.nodes["b"].forget("c")
    network.nodes["b"].router.register("c", anything)  # type: ignore[attr-defined]
    network.inject(packet(2))
    assert network.carried[-2:] == [("b", "c", True), ("c", "y", True)]
    assert network.fetched == []
    (payload,) = network.received["y"][-1].payloads
    assert payload.source == "c"


def test_what_was_purged_is_fetched_from_the_source_then_from_the_server() -> None:
    network = chain()
    network.inject(packet(1))
    network.nodes["c"].repository = Repository(0)
    network.inject(packet(2))
    assert network.fetched == [("c", "b")]
    network.nodes["b"].repository = Repository(0)
    network.fetched.clear()
    network.inject(packet(3))
    # b kept nothing and rewrote nothing, so the last node that had it is a.
    assert network.fetched == [("c", "a")]
    network.nodes["a"].repository = Repository(0)
    network.fetched.clear()
    network.inject(packet(4))
    assert network.fetched == [("c", "")]
    assert [event_of(one) for one in network.received["y"]] == [event(n) for n in (1, 2, 3, 4)]


def test_plain_nodes_never_acknowledge_and_always_get_the_payload() -> None:
    network = chain()
    network.nodes["b"].keeps_payloads = False
    network.inject(packet(1))
    network.inject(packet(2))
    assert [carries for _, to, carries in network.carried if to in "bc"] == [True] * 4


def test_a_lost_acknowledgment_costs_a_payload_and_nothing_else() -> None:
    network = chain()
    network.loses = lambda: True
    network.inject(packet(1))
    network.loses = lambda: False
    network.inject(packet(2))
    network.inject(packet(3))
    assert [carries for at, to, carries in network.carried if (at, to) == ("a", "b")] == [True, True, False]


def test_a_content_of_another_hash_is_refused() -> None:
    node: Node[str] = Node("a", Table())
    node.add_client("x")
    light = packet(1)
    found = node.for_link(without_payload(light), "x")
    assert isinstance(found, Waiting)
    with pytest.raises(WireError, match="another hash"):
        node.resume(found, b"poison")
    (sent,) = node.resume(found, light.payloads[0].content).sends
    assert event_of(sent.packet) == event(1)


def test_the_directory_stays_within_its_bytes() -> None:
    directory = Directory(17 * 10)
    for number in range(30):
        directory.set(payload_id(bytes([number])), 3)
    assert len(directory) == 10
    assert directory.bitmap(payload_id(bytes([29]))) == 8
    assert directory.bitmap(payload_id(bytes([0]))) == 0
    directory.unset(3)
    assert directory.bitmap(payload_id(bytes([29]))) == 0


def test_the_repository_lets_go_what_all_links_have_then_the_oldest() -> None:
    repository = Repository(3)
    ids = [payload_id(bytes([number])) for number in range(5)]
    for id in ids[:3]:
        repository.put(id, b"x")
    repository.spare(ids[2])
    repository.put(ids[3], b"x")
    assert [repository.get(id) is None for id in ids] == [False, False, True, False, True]
    repository.get(ids[0])
    repository.put(ids[4], b"x")
    assert [repository.get(id) is None for id in ids] == [False, True, True, False, False]


def test_the_repository_stays_within_its_bytes() -> None:
    repository = Repository(100, max_bytes=50)
    ids = [payload_id(bytes([number])) for number in range(10)]
    for id in ids:
        repository.put(id, bytes(20))
        repository.put(id, bytes(20))
    repository.put(ids[0], bytes(51))
    assert [repository.get(id) is not None for id in ids] == [False] * 8 + [True] * 2


@pytest.mark.parametrize("seed", range(40))
def test_every_client_gets_what_it_wants_once_and_whole(seed: int) -> None:
    """Random trees of nodes with and without payloads, tiny caps, lost acknowledgments, nodes that forget everything."""
    rng = random.Random(seed)
    names = [f"n{number}" for number in range(rng.randint(1, 8))]
    nodes: dict[str, Node[str]] = {
        name: Node(
            name,
            Table(),
            keeps_payloads=rng.random() < 0.7,
            directory=Directory(17 * rng.choice([0, 1, 100])),
            repository=Repository(rng.choice([0, 1, 2, 50])),
        )
        for name in names
    }
    network = Network(nodes)
    for number, name in enumerate(names[1:], start=1):
        network.connect(name, names[rng.randrange(number)])
    wanted = {}
    for number in range(rng.randint(1, 8)):
        remainder, divisor = rng.randrange(3), rng.randint(1, 3)
        wanted[f"client{number}"] = lambda n, r=remainder, d=divisor: n % d == r % d
        network.subscribe(
            f"client{number}",
            rng.choice(names),
            lambda packet, w=wanted[f"client{number}"]: w(packet.sequence),
        )
    network.loses = lambda: rng.random() < 0.3
    events = []
    for number in range(30):
        if rng.random() < 0.1:
            forgetful = nodes[rng.choice(names)]
            forgetful.directory, forgetful.repository = Directory(), Repository(rng.choice([0, 2]))
        events.append(event(number, b"payload %d" % rng.randrange(4) * 100))
        network.inject(event_packet(events[-1], number))
    for client, is_wanted in wanted.items():
        got = [event_of(one) for one in network.received[client]]
        assert got == [one for number, one in enumerate(events) if is_wanted(number)]
