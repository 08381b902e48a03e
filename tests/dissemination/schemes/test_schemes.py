"""Every scheme tells every subscription exactly what it gains and loses."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.dissemination.schemes.worlds import BINARY, STAR, R, S, binary_server, changes, ranges, star
from tidings.dissemination.schemes import (
    SCHEMES,
    Change,
    Message,
    RelSel,
    Scheme,
    Server,
    Side,
    accepts,
    audience,
    binary,
    naive,
)
from tidings.dissemination.schemes.client import Client
from tidings.dissemination.schemes.signature import Signature
from tidings.errors import EventError, SubscriptionError

TABLES = {"r": R, "s": S}
PEOPLE = 25


def run(scheme: Scheme, seed: int, count: int, check):
    server = scheme.server
    rng = np.random.default_rng(seed)
    for change in changes(rng, server, count):
        before = {name: list(rows) for name, rows in server.contents().items()}
        check(before, scheme.messages(change), server.contents(), change)


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("seed", range(2))
def test_clients_hold_the_result(name: str, seed: int) -> None:
    scheme = SCHEMES[name](binary_server(seed, PEOPLE))
    clients = [Client(scheme.server.subscription(number)) for number in range(PEOPLE)]

    def check(before, messages, after, change):
        for client in clients:
            for message in messages:
                client.receive(message)
            assert client.result() == naive.join(client.subscription, TABLES, after)

    run(scheme, seed, 80, check)


@pytest.mark.parametrize("name", ["Enum-SJ", "Ref-SJ-Sub", "Ref-SJ-Tup", "Ref-SJ-Clu", "Ref-SJ-Clu+"])
@pytest.mark.parametrize("seed", range(2))
def test_semijoin_filters_accept_exactly_what_changes(name: str, seed: int) -> None:
    scheme = SCHEMES[name](binary_server(seed + 10, PEOPLE))
    people = [scheme.server.subscription(number) for number in range(PEOPLE)]
    held = {(person.number, form): Counter() for person in people for form in person.semijoins}

    def check(before, messages, after, change):
        for person in people:
            mine = [message for message in messages if accepts(message, person)]
            for form in person.semijoins:
                bag = held[person.number, form]
                now = naive.semijoin(form, person, TABLES, after)
                told = Counter()
                for message in mine:
                    if message.form == form:
                        told[message.rows[0].row] += 1 if message.sign == "+" else -1
                assert {row: n for row, n in told.items() if n} == {
                    row: now[row] - bag[row] for row in now.keys() | bag.keys() if now[row] != bag[row]
                }
                held[person.number, form] = now
                # Minimal: an update tells nobody of a row that it would take back.
                assert all(n for row, n in told.items() if row not in (change.new, change.old))

    run(scheme, seed, 80, check)


@pytest.mark.parametrize("name", ["Enum-J", "Ref-J", "Ref-J+"])
def test_join_filters_accept_exactly_what_changes(name: str) -> None:
    scheme = SCHEMES[name](binary_server(5, PEOPLE))
    people = [scheme.server.subscription(number) for number in range(PEOPLE)]

    def check(before, messages, after, change):
        for person in people:
            told = Counter()
            for message in messages:
                if accepts(message, person):
                    told[tuple(image.row for image in message.rows)] += 1 if message.sign == "+" else -1
            old, new = (naive.join(person, TABLES, rows) for rows in (before, after))
            assert {row: n for row, n in told.items() if n} == {
                row: new[row] - old[row] for row in new.keys() | old.keys() if new[row] != old[row]
            }

    run(scheme, 5, 80, check)


def test_an_insert_or_delete_tells_nobody_anything_twice() -> None:
    scheme = SCHEMES["Ref-SJ-Clu+"](binary_server(3, PEOPLE))
    rng = np.random.default_rng(3)
    for change in changes(rng, scheme.server, 150):
        messages = scheme.messages(change)
        if change.new is None or change.old is None:
            people = [scheme.server.subscription(number) for number in range(PEOPLE)]
            before = Counter()
            for person in people:
                for message in messages:
                    if accepts(message, person):
                        before[person.number, message.form, id(message.rows[0])] += 1
            assert not before or max(before.values()) == 1


def test_rel_sel_tells_everybody_who_selects_the_row() -> None:
    server = binary_server(1, PEOPLE)
    row = (4, 1, "x")
    (message,) = RelSel(server).messages(Change("r", new=row))
    for number in range(PEOPLE):
        low, high = server.subscription(number).ranges[0]
        assert accepts(message, server.subscription(number)) == (low <= 4 <= high)


@pytest.mark.parametrize("name", SCHEMES)
def test_the_audience_is_whoever_accepts(name: str) -> None:
    scheme = SCHEMES[name](binary_server(8, PEOPLE))
    rng = np.random.default_rng(8)
    for change in changes(rng, scheme.server, 60):
        for message in scheme.messages(change):
            accepting = [n for n in range(PEOPLE) if accepts(message, scheme.server.subscription(n))]
            assert audience(message, scheme.server).tolist() == accepting


@pytest.mark.parametrize("name", ["Enum-J", "Ref-J+", "Enum-SJ", "Ref-SJ-Sub", "Ref-SJ-Clu+"])
def test_messages_have_an_audience(name: str) -> None:
    """Ref-J, Rel-Sel and the skylines of plain rows and clusters may speak to nobody; these do not."""
    scheme = SCHEMES[name](binary_server(9, 10))
    for change in changes(np.random.default_rng(9), scheme.server, 100):
        for message in scheme.messages(change):
            assert len(audience(message, scheme.server))


def test_ref_j_plus_looks_at_those_of_the_signature_alone() -> None:
    """Others of the same group, whose joins have a table more, make no joined row of two tables wanted."""
    server = Server(STAR)
    rng = np.random.default_rng(6)
    server.subscribe(star("r"), [ranges(rng, 5), ranges(rng, 5)])
    three = star("r", "t")
    forms = [next(three.semijoins(table)) for table in three.tables]
    server.subscribe(three, [ranges(rng, 50) for _ in range(3)], forms)
    scheme = SCHEMES["Ref-J+"](server)
    sent = 0
    for change in changes(rng, server, 150):
        for message in scheme.messages(change):
            sent += message.form == star("r")
            assert len(audience(message, server))
    assert sent


def test_subscriptions_that_come_and_go() -> None:
    """The tail of the index and those who left: answers are those of a server that never had them."""
    rng = np.random.default_rng(4)
    for name in SCHEMES:
        scheme = SCHEMES[name](binary_server(4, PEOPLE))
        server = scheme.server
        clients = {n: Client(server.subscription(n)) for n in range(PEOPLE)}
        for place, change in enumerate(changes(rng, server, 60)):
            messages = scheme.messages(change)
            for number, client in clients.items():
                for message in messages:
                    client.receive(message)
                if number not in server.gone:
                    assert client.result() == naive.join(client.subscription, TABLES, server.contents())
            if place == 0:
                # Newcomers whose result is still empty: rows there are of one table at most.
                for new in server.subscribe(BINARY, [ranges(rng, 300, False), ranges(rng, 300, False)])[:20]:
                    clients[new] = Client(server.subscription(new))
                    for table in TABLES.values():
                        if name == "Rel-Sel":
                            held = naive.selected(table, clients[new].subscription, server.contents())
                            clients[new].rows[table.name].update(held)
            if place == 20:
                for number in (1, 3, PEOPLE + 2):
                    server.unsubscribe(number)
                    del clients[number]


def test_sizes() -> None:
    server = Server([R, S])
    server.subscribe(BINARY, [(np.array([0, 0]), np.array([9, 9])), (np.array([0, 5]), np.array([9, 7]))])
    server.load("s", [(1, 3, "s" * 100), (1, 6, "s" * 100)])
    change, undo = Change("r", new=(5, 1, "r" * 100)), Change("r", old=(5, 1, "r" * 100))

    def sent(name: str) -> list[Message]:
        scheme = SCHEMES[name](server)
        messages = scheme.messages(change)
        assert [message.bytes for message in scheme.messages(undo)] == [m.bytes for m in messages]
        return messages

    assert [m.size for m in sent("Rel-Sel")] == [108]
    assert [m.size for m in sent("Ref-J")] == [212, 212]  # the join value once
    assert sum(m.bytes for m in sent("Enum-J")) == 3 * 212  # two rows for one, one for the other
    assert sum(m.bytes for m in sent("Enum-SJ")) == 2 * 108 + 3 * 108
    tup, clu = sent("Ref-SJ-Tup"), sent("Ref-SJ-Clu+")
    assert [m.size for m in tup] == [108 + 8, 108 + 12, 108 + 12]
    assert [m.size for m in clu] == [108 + 4, 108 + 12, 108 + 12]  # both ranges share one anchor
    assert all(isinstance(m.form, Signature) for m in sent("Ref-J+"))


def test_a_row_that_is_not_there_cannot_leave() -> None:
    server = binary_server(1, 3)
    with pytest.raises(EventError, match="has no row"):
        SCHEMES["Ref-SJ-Clu+"](server).messages(Change("r", new=(1, 1, "x"), old=(2, 2, "y")))
    assert server.contents() == {"r": [], "s": []}
    with pytest.raises(EventError, match="no table 'q'"):
        SCHEMES["Ref-J"](server).messages(Change("q", new=(1,)))


def test_what_cannot_be_subscribed() -> None:
    server = Server([R, S])
    one = (np.array([0]), np.array([1]))
    with pytest.raises(SubscriptionError, match="no table 't'"):
        server.subscribe(binary(Side("r", (1,), 0), Side("t", (0,), 1)), [one, one])
    with pytest.raises(SubscriptionError, match="r.payload, a text"):
        server.subscribe(binary(Side("r", (1,), 2), Side("s", (0,), 1)), [one, one])
    with pytest.raises(SubscriptionError, match="table 's' of .* has 2 neighbours"):
        Server(STAR).subscribe(star("r", "t"), [one, one, one])
    with pytest.raises(SubscriptionError, match="no subscription 5"):
        server.unsubscribe(5)
    with pytest.raises(SubscriptionError, match="no subscription 5"):
        server.subscription(5)
    assert list(server.subscribe(BINARY, [(np.array([]), np.array([]))] * 2)) == []


@pytest.mark.parametrize(
    ("table", "row", "words"),
    [
        ("nothing", (1,), "there is no table 'nothing'; the tables are "),
        (None, (), "is no row of table"),
        (None, ("x", "y", "z", "u"), "is no row of table"),
    ],
)
def test_a_row_that_is_none_is_refused(table: str | None, row: tuple[object, ...], words: str) -> None:
    server = binary_server(1, 3)
    with pytest.raises(EventError, match=words):
        server.load(table or next(iter(server.tables)), [row])
