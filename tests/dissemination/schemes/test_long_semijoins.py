"""Longer semijoins: a row goes to exactly those in whose join of three or more tables it occurs, and leaves exactly these."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dissemination.schemes.worlds import changes, ranges
from tests.examples import examples
from tidings.dissemination import wire
from tidings.dissemination.schemes import Change, Message, Server, Signature, accepts, audience, naive
from tidings.dissemination.schemes.boxes import envelope
from tidings.dissemination.schemes.client import Client
from tidings.dissemination.schemes.joined import joined_with
from tidings.dissemination.schemes.long_semijoins import RefSJFull, RefSJFullPlus
from tidings.dissemination.schemes.message import Remainders
from tidings.dissemination.schemes.signature import Edge, LongSemijoin
from tidings.dissemination.simulator.networks import ForwardingTree
from tidings.kinds.joins.schema.table import Table

TABLES = [Table(name, {"b": "integer", "b2": "integer", "a": "integer"}) for name in "rstu"]
ALL = (2, 2, 2, 2)
CHAIN = Signature(("r", "s", "t"), (Edge(0, 1, (0,), (0,)), Edge(1, 2, (1,), (0,))), ALL[:3])
SHAPES = {
    "chain of 3": CHAIN,
    "chain of 4": Signature(("r", "s", "t", "u"), (*CHAIN.edges, Edge(2, 3, (1,), (0,))), ALL),
    "star": Signature(("s", "r", "t", "u"), tuple(Edge(0, at, (at % 2,), (0,)) for at in (1, 2, 3)), ALL),
    "two columns": Signature(("t", "r", "s"), (Edge(0, 1, (0, 1), (0, 1)), Edge(2, 1, (0,), (0,))), ALL[:3]),
    "triangle": Signature(("r", "s", "t"), (*CHAIN.edges, Edge(0, 2, (1,), (1,))), (2, 2, None)),
    "pair": Signature(("t", "u"), (Edge(0, 1, (0,), (0,)),), (2, 2)),
    "one table": Signature(("r",), (), (2,)),
}
PEOPLE = 12


def a_server(rng: np.random.Generator, *shapes: str) -> Server:
    server = Server(TABLES)
    for signature in (SHAPES[shape] for shape in shapes):
        forms = [next(signature.semijoins(table)) for table in signature.tables if signature.edges]
        limits = [
            ranges(rng, PEOPLE, width=9) if column is not None else (np.zeros(PEOPLE), np.zeros(PEOPLE))
            for column in signature.selections
        ]
        server.subscribe(signature, limits, forms)
    return server


def gains(messages: list[Message], form: LongSemijoin, number: int, server: Server) -> Counter[object]:
    """What a subscription is sent of one table, lost rows counted down; each message has exactly those who accept it."""
    found: Counter[object] = Counter()
    for message in messages:
        is_accepted = accepts(message, server.subscription(number))
        assert is_accepted == (number in audience(message, server))
        if is_accepted and message.form == form:
            found[message.rows[0].row] += 1 if message.sign == "+" else -1
    return found


@pytest.mark.parametrize("kind", [RefSJFull, RefSJFullPlus])
@examples(12)
@given(st.sets(st.sampled_from(sorted(SHAPES)), min_size=1, max_size=2), st.integers(0, 10_000))
def test_exactly_those_affected_are_sent_a_row(kind: type[RefSJFull], shapes: set[str], seed: int) -> None:
    rng = np.random.default_rng(seed)
    server = a_server(rng, *sorted(shapes))
    scheme = kind(server)
    clients = [Client(server.subscription(number)) for number in range(server.count)]
    for change in changes(rng, server, 30, keys=2, rows=5):
        before = {name: list(rows) for name, rows in server.contents().items()}
        messages, after = scheme.messages(change), server.contents()
        assert all(len(audience(message, server)) for message in messages)
        for client in clients:
            subscription = client.subscription
            for slot in range(len(subscription.signature.tables)):
                old, new = (
                    naive.rows_of_join(slot, subscription, server.tables, rows) for rows in (before, after)
                )
                form = LongSemijoin(subscription.signature, slot)
                sent = gains(messages, form, subscription.number, server)
                differs = {row: new[row] - old[row] for row in old | new if new[row] != old[row]}
                assert {row: count for row, count in sent.items() if count} == differs
                # An update may send a row that it takes back only if that row itself has changed.
                assert all(count for row, count in sent.items() if row not in (change.new, change.old))
            for message in messages:
                client.receive(message)
            assert client.result() == naive.join(subscription, server.tables, after)


def test_who_is_gone_is_not_described() -> None:
    rng = np.random.default_rng(3)
    server = a_server(rng, "chain of 3")
    for number in range(PEOPLE):
        server.unsubscribe(number)
    assert not any(RefSJFullPlus(server).messages(change) for change in changes(rng, server, 60, rows=6))


def test_messages_reach_their_audience_in_a_tree() -> None:
    rng = np.random.default_rng(5)
    server = a_server(rng, "chain of 3", "star")
    network, scheme, sent = ForwardingTree(server, 9, 1), RefSJFullPlus(server), 0
    for change in changes(rng, server, 60, rows=6):
        for message in scheme.messages(change):
            (visits,) = network.visits(message)
            assert sorted(visits.subscriptions.tolist()) == audience(message, server).tolist()
            assert len(set(visits.nodes.tolist())) == len(visits.nodes)
            sent += 1
    assert sent


def test_what_messages_say() -> None:
    """The row of an end of the chain is sent with where S and T lie; the middle one with both ends, apart."""
    server = Server(TABLES)
    low, high = np.array([0, 0]), np.array([9, 4])
    server.subscribe(CHAIN, [(low, high)] * 3, [next(CHAIN.semijoins(table)) for table in CHAIN.tables])
    scheme = RefSJFullPlus(server)
    assert scheme.messages(Change("r", new=(1, 0, 3))) == []
    assert scheme.messages(Change("s", new=(1, 1, 7))) == []
    t, r, s = scheme.messages(Change("t", new=(1, 0, 5)))
    assert [message.form.base for message in (t, r, s)] == [2, 0, 1]
    for message, points in ((t, [[[3, 7]]]), (r, [[[7, 5]]]), (s, [[[3]], [[5]]])):
        assert isinstance(message.description, Remainders)
        assert [part.points.tolist() for part in message.description.parts] == points
        assert audience(message, server).tolist() == [0]
        assert message.size == 3 * 4 + 2 * 4
    # A second row of T: both rows before are there already for the first subscription; the other holds no row of S.
    (alone,) = scheme.messages(Change("t", new=(1, 0, 2)))
    assert alone.form == LongSemijoin(CHAIN, 2)
    with pytest.raises(wire.WireError, match="a longer semijoin cannot be written"):
        wire.encode(wire.row_packet(alone, scheme.name, server.tables))


def test_null_joins_nothing_in_a_cycle() -> None:
    server = a_server(np.random.default_rng(1), "triangle")
    server.load("s", [(1, 1, 0)])
    server.load("t", [(1, None, 0)])
    triangle = SHAPES["triangle"]
    assert list(joined_with(server, triangle, server.image("r", (1, None, 0)))) == []


@examples(40)
@given(st.integers(1, 3), st.integers(0, 25), st.integers(0, 10_000))
def test_the_envelope_is_as_defined(width: int, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, centre = rng.integers(0, 6, (count, width)), rng.integers(0, 6, width)
    distinct = sorted({tuple(point) for point in points.tolist()})

    def is_between(other: tuple[int, ...], point: tuple[int, ...]) -> bool:
        return all(min(a, c) <= x <= max(a, c) for x, a, c in zip(other, point, centre.tolist(), strict=True))

    expected = [
        point
        for point in distinct
        if not any(is_between(other, point) for other in distinct if other != point)
    ]
    assert [tuple(point) for point in envelope(points, centre).tolist()] == expected
