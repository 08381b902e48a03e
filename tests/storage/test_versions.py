"""Versions of an index: a base and a tail, appended to by any process, opened by any other."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tidings import Engine, Event, SubscriptionError
from tidings.errors import IndexFileError, TidingsError
from tidings.kinds.joins.schema.table import Table
from tidings.kinds.networks.network import Network
from tidings.language.parser import parse
from tidings.storage import version_opening, version_writing, versions
from tidings.storage.versions import Change, NetworkChange, Version

EVENT = Event.from_rdf("<urn:tidings:a> <urn:tidings:p> 5 .", "turtle", id="e")
P, Q = "WHERE (?x, p, ?y)", "WHERE (?x, q, ?y)"


def matched(engine: Engine) -> set[str | None]:
    return {n.subscription for n in engine.publish(EVENT)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An index with one base that holds s0 and s1."""
    engine = Engine(prefixes={"my": "urn:tidings:"})
    engine.subscribe("s0", P)
    engine.subscribe("s1", Q)
    assert versions.publish(tmp_path / "index", engine) == Version(1, 0)
    return tmp_path / "index"


def test_versions_are_written_and_read() -> None:
    assert str(Version(3, 1234)) == "v3+1234"
    assert Version.parse(" v3+1234\n") == Version(3, 1234)
    for text in ("", "v3", "3+4", "v3+-1", "v3+4x", "CURRENT"):
        with pytest.raises(IndexFileError, match="names no version"):
            Version.parse(text)


def test_a_tail_is_replayed(root: Path) -> None:
    first = versions.current(root)
    second = versions.append(root, [Change("s2", "WHERE (?x, my:p, ?y)"), Change("s0", None)])
    third = versions.append(root, [Change("s2", Q), Change("s3", P, "2000-01-01")])
    assert first < second < third == versions.current(root)
    assert matched(versions.open(root, first)) == {"s0"}
    assert matched(versions.open(root, second)) == {"s2"}
    assert matched(versions.open(root, third)) == set()  # s3 had ended
    engine = versions.open(root, third)
    assert len(engine) == 3
    assert versions.open(root, third) is engine  # opened once


def test_an_older_pinned_version_stays_what_it_was(root: Path) -> None:
    pinned = versions.append(root, [Change("s2", P)])
    versions.append(root, [Change("s2", None), Change("s4", P)])
    compacted = versions.compact(root)
    assert compacted == Version(2, 0)
    versions.append(root, [Change("s5", P)])
    assert matched(versions.open(root, versions.current(root))) == {"s0", "s4", "s5"}
    assert matched(versions.open(root, pinned)) == {"s0", "s2"}
    assert matched(versions.open(root, compacted)) == {"s0", "s4"}


def test_compact_folds_the_tail_once(root: Path) -> None:
    versions.append(root, [Change(f"more{i}", P) for i in range(10)] + [Change("s0", None)])
    before = matched(versions.open(root, versions.current(root)))
    assert versions.compact(root) == versions.compact(root) == versions.current(root) == Version(2, 0)
    assert matched(versions.open(root, Version(2, 0))) == before
    assert versions.open(root, Version(2, 0)).prefixes == {"my": "urn:tidings:"}


def test_drop_keeps_what_is_current_or_pinned(root: Path) -> None:
    pinned = versions.append(root, [Change("s2", P)])
    versions.compact(root)
    versions.append(root, [Change("s3", P)])
    versions.compact(root)
    assert versions.drop(root, [pinned]) == [2]
    assert matched(versions.open(root, pinned)) == {"s0", "s2"}
    assert versions.drop(root) == [1]
    versions.open(root, versions.current(root))  # the kept one is another now
    with pytest.raises(IndexFileError, match="dropped"):
        versions.open(root, pinned)
    assert versions.drop(root) == []
    assert sorted(path.name for path in root.glob("v*")) == ["v3", "v3.tail"]


def test_a_torn_line_is_not_there(root: Path) -> None:
    good = versions.append(root, [Change("s2", P)])
    with (root / "v1.tail").open("ab") as tail:
        tail.write(b'{"id": "s3", "text": "WHERE (?x, p')
    assert versions.current(root) == good
    after = versions.append(root, [Change("s4", P)])
    assert matched(versions.open(root, after)) == {"s0", "s2", "s4"}
    for line in (root / "v1.tail").read_text().splitlines():
        json.loads(line)


def test_a_long_torn_line_is_not_there(root: Path) -> None:
    good = versions.append(root, [Change("s2", P)])
    with (root / "v1.tail").open("ab") as tail:
        tail.write(b"x" * 200_000)
    assert versions.current(root) == good


@pytest.mark.parametrize(
    "bad",
    [
        Change("s3", "WHERE ((("),
        Change("s3", "WHERE (?x, nowhere:p, ?y)"),
        Change("s3", "WHERE (?x, p, 'abc'^^xsd:integer)"),
        Change("s3", P, "tomorrow"),
        Change("s3", P, "2004-13-01"),
        Change("", P),
        Change("\ud800", P),
    ],
)
def test_one_bad_change_refuses_all_before_anything_is_written(root: Path, bad: Change) -> None:
    before = (root / "v1.tail").read_bytes()
    with pytest.raises(SubscriptionError):
        versions.append(root, [Change("s2", P), bad])
    assert (root / "v1.tail").read_bytes() == before
    assert versions.current(root) == Version(1, 0)


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """A limit of the system, which refuses to write more, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", [0, 1, 150, 250])
def test_a_write_that_fails_appends_nothing(root: Path, room: int) -> None:
    before = versions.append(root, [Change("s2", P)])
    changes = [Change(f"more{number}", P) for number in range(4)]
    with files_of_at_most(before.offset + room), pytest.raises(OSError, match="large"):
        versions.append(root, changes)
    assert versions.current(root) == before
    assert (root / "v1.tail").stat().st_size == before.offset
    assert matched(versions.open(root, versions.append(root, changes))) == {
        "s0",
        "s2",
        *(f"more{number}" for number in range(4)),
    }


def test_a_base_that_cannot_be_written_leaves_nothing(root: Path) -> None:
    engine = Engine()
    engine.subscribe("new", P)
    with files_of_at_most(100), pytest.raises(OSError, match="large|requested"):
        versions.publish(root, engine)
    assert not (root / "publishing").exists()
    assert versions.current(root) == Version(1, 0)
    assert matched(versions.open(root, Version(1, 0))) == {"s0"}


def test_a_base_gets_at_least_the_number_that_is_asked_for(root: Path) -> None:
    assert versions.publish(root, Engine(), at_least=7) == Version(7, 0)
    assert versions.publish(root, Engine(), at_least=3) == Version(8, 0)
    versions.append(root, [Change("a", P)])
    assert versions.compact(root, at_least=20) == Version(20, 0)
    assert versions.last_base(root) == 20


def test_a_damaged_base_is_discarded_once_it_is_replaced(root: Path) -> None:
    version = versions.append(root, [Change("s2", P)])
    assert versions.is_there(root, version)
    assert not versions.is_there(root, Version(1, version.offset - 1))
    assert not versions.is_there(root, Version(1, version.offset + 1))
    versions.discard(root, 1)
    assert versions.is_there(root, version)  # it is the current one
    versions.publish(root, Engine())
    versions.discard(root, 1)
    assert not versions.is_there(root, version)


@pytest.mark.parametrize("spoilt", [b"", b"x", b"\xff", b"9"])
def test_an_index_without_a_current_base_is_built_anew(root: Path, spoilt: bytes) -> None:
    (root / "CURRENT").write_bytes(spoilt)
    with pytest.raises(IndexFileError):
        versions.current(root)
    assert versions.publish(root, Engine()) == Version(2, 0)


def test_ids_and_texts_of_any_kind(root: Path) -> None:
    odd = 'line\nbreak "é" \u2028 \x85'
    version = versions.append(
        root, [Change(odd, "WHERE (?x, p, ?y) AND ?y != 'a\u2028b'"), Change("n", "WHERE\n(?x, p,\n?y)")]
    )
    assert matched(versions.open(root, version)) == {"s0", "n"}
    assert odd in versions.open(root, version)


APPENDER = """
import sys
from tidings.storage.versions import Change, append
for i in range(20):
    append(sys.argv[1], [Change(f"{sys.argv[2]}{i}", "WHERE (?x, p, ?y)"), Change(f"{sys.argv[2]}{i - 1}", None)])
"""


def test_two_processes_append(root: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", APPENDER, str(root), name]) for name in "ab"]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert len((root / "v1.tail").read_text().splitlines()) == 80
    assert matched(versions.open(root, versions.current(root))) == {"s0", "a19", "b19"}


def test_changes_appended_while_a_tail_is_folded(root: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", APPENDER, str(root), name]) for name in "ab"]
    folds = 0
    while any(writer.poll() is None for writer in writers):
        folds += versions.compact(root).base > folds
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert folds > 1
    assert matched(versions.open(root, versions.current(root))) == {"s0", "a19", "b19"}
    assert matched(versions.open(root, versions.compact(root))) == {"s0", "a19", "b19"}


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """What is done once, after a new base was written aside and before it is the current one."""
    to_do: list[Callable[[], object]] = []
    write = version_writing._write

    def and_then(*args: Any) -> None:
        write(*args)
        while to_do:
            to_do.pop()()

    monkeypatch.setattr(version_writing, "_write", and_then)
    return to_do


def test_the_tail_of_a_new_base_begins_with_what_it_does_not_hold(
    root: Path, meanwhile: list[Callable[[], object]]
) -> None:
    folded = versions.append(root, [Change("s2", P)])
    pinned: list[Version] = []
    meanwhile.append(lambda: pinned.append(versions.append(root, [Change("s3", P), Change("s0", None)])))
    compacted = versions.compact(root)
    assert compacted == versions.current(root) == Version(2, pinned[0].offset - folded.offset)
    assert matched(versions.open(root, Version(2, 0))) == matched(versions.open(root, folded)) == {"s0", "s2"}
    assert matched(versions.open(root, compacted)) == matched(versions.open(root, pinned[0])) == {"s2", "s3"}
    versions.append(root, [Change("s4", P)])
    assert versions.compact(root) == Version(3, 0)
    assert matched(versions.open(root, Version(3, 0))) == {"s2", "s3", "s4"}
    assert not (root / "compacting").exists()


def test_a_base_that_is_published_while_a_tail_is_folded_stays(
    root: Path, meanwhile: list[Callable[[], object]]
) -> None:
    versions.append(root, [Change("s2", P)])
    engine = Engine()
    engine.subscribe("new", P)
    meanwhile.append(lambda: versions.publish(root, engine))
    assert versions.compact(root) == versions.current(root) == Version(2, 0)
    assert matched(versions.open(root, Version(2, 0))) == {"new"}
    assert not (root / "compacting").exists()


def test_what_is_no_index(tmp_path: Path, root: Path) -> None:
    for call in (versions.current, versions.compact, versions.drop, lambda path: versions.append(path, [])):
        for place in (tmp_path / "nowhere", tmp_path):
            with pytest.raises(IndexFileError, match="holds no index"):
                call(place)
    with pytest.raises(IndexFileError, match="holds no version v9"):
        versions.open(root, Version(9, 0))


def test_a_version_that_was_never_written(root: Path) -> None:
    version = versions.append(root, [Change("s2", P)])
    assert matched(versions.open(root, Version(1, 0))) == {"s0"}
    for offset in (5, version.offset - 1, version.offset + 1):
        with pytest.raises(IndexFileError, match="cannot be read as far as"):
            versions.open(root, Version(1, offset))
    assert matched(versions.open(root, Version(1, 0))) == {"s0"}
    assert matched(versions.open(root, version)) == {"s0", "s2"}


def test_a_damaged_tail_changes_no_version_before_it(root: Path) -> None:
    version = versions.append(root, [Change("s2", P)])
    with (root / "v1.tail").open("ab") as tail:
        tail.write(b'{"id": "s3", "text": "WHERE (?x, p, ?y)"}\n{"id": "s4", "text": "WHERE ((("}\n')
    versions.open(root, version)
    for _ in range(2):
        with pytest.raises(SubscriptionError):
            versions.open(root, versions.current(root))
        assert matched(versions.open(root, version)) == {"s0", "s2"}
    (root / "v1.tail").unlink()
    with pytest.raises(IndexFileError, match="missing"):
        versions.current(root)


def test_an_unfinished_base_is_no_version(root: Path) -> None:
    (root / "publishing").mkdir()
    (root / "publishing" / "junk").write_text("x")
    assert versions.current(root) == Version(1, 0)
    engine = Engine()
    engine.subscribe("new", P)
    assert versions.publish(root, engine) == Version(2, 0)
    assert matched(versions.open(root, Version(2, 0))) == {"new"}
    assert not (root / "publishing").exists()
    assert not (root / "v2" / "junk").exists()


# ---------------------------------------------------------------------- networks

AT_ACME = "WHERE topic = 'oil' VIA exchange AT 'acme'"


def exchange() -> Network:
    """desk -> hub -> acme; the hub takes what is not dear. An event does not reach the node it comes from."""
    network = Network()
    for node, where in (("desk", None), ("hub", "price < 100"), ("acme", None)):
        network.add_node(node, where)
    network.add_edge("desk", "hub")
    network.add_edge("hub", "acme", "EXISTS topic")
    return network


@pytest.fixture
def places(tmp_path: Path) -> Path:
    engine = Engine(networks={"exchange": exchange()})
    engine.subscribe("acme", AT_ACME)
    versions.publish(tmp_path / "places", engine)
    return tmp_path / "places"


def reached(root: Path, version: Version, *, source: str = "desk", **attributes: object) -> set[str | None]:
    event = Event(source=source, attributes={"topic": "oil", "price": 20, **attributes})
    return {n.subscription for n in versions.open(root, version).publish(event)}


def test_changes_of_a_network_are_replayed_in_order_with_subscriptions(places: Path) -> None:
    first = versions.current(places)
    second = versions.append(
        places,
        [
            NetworkChange("exchange", "add_node", ("bolt", parse("WHERE price > 10").where, 2.5)),
            Change("bolt", "WHERE topic = 'oil' VIA exchange AT 'bolt'"),
            NetworkChange("exchange", "add_edge", ("desk", "bolt")),
        ],
    )
    third = versions.append(
        places,
        [
            NetworkChange("exchange", "set_where", ("bolt", None)),
            NetworkChange("exchange", "set_where", (("hub", "acme"), "price > 50")),
        ],
    )
    fourth = versions.append(
        places,
        [
            NetworkChange("exchange", "remove_edge", ("hub", "acme")),
            NetworkChange("exchange", "remove_node", ("bolt",)),
        ],
    )
    fifth = versions.append(
        places,
        [
            NetworkChange("exchange", "add_node", ("bolt",)),
            NetworkChange("exchange", "add_edge", ("acme", "bolt")),
        ],
    )
    compacted = versions.compact(places)
    for version, answers in (
        (first, [{"acme"}, {"acme"}, set()]),
        (second, [{"acme", "bolt"}, {"acme"}, {"bolt"}]),
        (third, [{"bolt"}, {"bolt"}, {"bolt"}]),
        (fourth, [set(), set(), set()]),
        (fifth, [set(), set(), set()]),
        (compacted, [set(), set(), set()]),
        (second, [{"acme", "bolt"}, {"acme"}, {"bolt"}]),
    ):
        assert [reached(places, version, price=price) for price in (20, 5, 200)] == answers, version
    assert reached(places, fifth, source="acme") == reached(places, compacted, source="acme") == {"bolt"}


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (Change("x", "WHERE topic = 'oil' VIA exchange AT 'nobody'"), "has no node 'nobody'"),
        (Change("x", "WHERE topic = 'oil' VIA market AT 'acme'"), "there is no network 'market'"),
        (NetworkChange("market", "remove_node", ("acme",)), "there is no network 'market' .* only: exchange"),
        (
            NetworkChange("exchange", "rename", ("acme",)),
            "'rename' is no change of a network; there are add_node",
        ),
        (
            NetworkChange("exchange", "add_edge", ("acme",)),
            "add_edge takes source, target, where, cost; it was given 1 ",
        ),
        (NetworkChange("exchange", "add_node", ("acme",)), "is there already"),
        (NetworkChange("exchange", "add_node", ("z", "price <")), "expression of node 'z' cannot be read"),
        (NetworkChange("exchange", "add_node", ("z", None, -1)), "cost of node 'z' is -1"),
        (NetworkChange("exchange", "add_node", ("z", b"price < 1")), "cannot be written"),
        (NetworkChange("exchange", "add_node", ("\ud800",)), "cannot be written"),
        (NetworkChange("exchange", "set_where", (("acme",), None)), "set_where cannot have"),
        (NetworkChange("exchange", "add_edge", ("acme", "later")), "no node 'later'"),
        (NetworkChange("exchange", "remove_edge", ("acme", "hub")), "no edge 'acme' -> 'hub'"),
    ],
)
def test_one_bad_change_of_a_network_refuses_all(
    places: Path, bad: Change | NetworkChange, told: str
) -> None:
    good = NetworkChange("exchange", "add_node", ("y",))
    for _ in range(2):  # what was tried in vain leaves nothing behind
        with pytest.raises(TidingsError, match=told):
            versions.append(places, [good, bad, NetworkChange("exchange", "add_node", ("later",))])
    assert versions.current(places) == Version(1, 0)
    versions.append(places, [good, NetworkChange("exchange", "add_edge", ("acme", "y"))])
    versions.append(places, [Change("y", "WHERE topic = 'oil' VIA exchange AT 'y'")])
    assert reached(places, versions.current(places)) == {"acme", "y"}


def test_changes_that_others_appended_count_when_the_next_ones_are_tried(places: Path) -> None:
    versions.append(places, [NetworkChange("exchange", "add_node", ("a",))])
    script = """
import sys
from tidings.storage.versions import NetworkChange, append
append(sys.argv[1], [NetworkChange("exchange", "add_node", ("b",)), NetworkChange("exchange", "remove_node", ("a",))])
"""
    subprocess.run([sys.executable, "-c", script, str(places)], check=True)
    versions.append(places, [NetworkChange("exchange", "add_edge", ("desk", "b"))])
    with pytest.raises(TidingsError, match="no node 'a'"):
        versions.append(places, [NetworkChange("exchange", "add_edge", ("desk", "a"))])


def test_a_network_by_labels_is_changed(tmp_path: Path) -> None:
    network = Network(match="subset")
    network.add_node("desk")
    network.add_node("acme", ["oil"])
    network.add_edge("desk", "acme")
    engine = Engine(networks={"exchange": network})
    engine.subscribe("acme", AT_ACME)
    versions.publish(tmp_path, engine)
    version = versions.append(tmp_path, [NetworkChange("exchange", "set_where", ("acme", {"gas", "oil"}))])
    assert reached(tmp_path, Version(1, 0), labels=["oil"]) == {"acme"}
    assert reached(tmp_path, version, labels=["oil"]) == set()
    assert reached(tmp_path, version, labels=["oil", "gas"]) == {"acme"}


def test_a_whole_network_is_put_in_the_place_of_another(places: Path) -> None:
    versions.append(places, [Change("more", AT_ACME)])
    network = Network()
    network.add_node("acme")
    network.add_node("elsewhere")
    network.add_edge("elsewhere", "acme")
    version = versions.set_network(places, "exchange", network)
    assert version == versions.current(places) == Version(2, 0)
    assert reached(places, version) == set()
    assert reached(places, version, source="elsewhere") == {"acme", "more"}
    versions.set_network(places, "market", exchange())
    versions.append(places, [Change("market", "WHERE topic = 'oil' VIA market AT 'acme'")])
    assert reached(places, versions.current(places)) == {"market"}


TABLES = [
    Table("stocks", {"symbol": "text", "per": "number"}, key=["symbol"]),
    Table("reviews", {"symbol": "text", "rating": "number"}),
]
LIKED = "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE per > 50 AND rating >= 6"
DEAR = "SELECT * FROM stocks WHERE per > 90"


def over_tables(**texts: str) -> Engine:
    engine = Engine(tables=TABLES)
    for id, text in texts.items():
        engine.subscribe(id, text)
    return engine


def numbers(engine: Engine) -> dict[str, int]:
    return {id: engine.joins.subscriptions.find(id) for id in ("a", "b", "c", "d") if id in engine.joins}


def heard(engine: Engine, per: float) -> set[str | None]:
    engine.publish(Event.insert("reviews", {"symbol": f"{per}", "rating": 7}))
    return {n.subscription for n in engine.publish(Event.insert("stocks", {"symbol": f"{per}", "per": per}))}


def test_joins_are_added_and_removed_behind_a_base(tmp_path: Path) -> None:
    first = versions.publish(tmp_path, over_tables(a=LIKED, b=DEAR))
    second = versions.append(tmp_path, [Change("c", DEAR), Change("a", None), Change("f", "WHERE x = 1")])
    assert heard(versions.open(tmp_path, first), 95) == {"a", "b"}
    # It goes on with the rows that were published, and the other version begins without any.
    assert heard(versions.open(tmp_path, second), 96) == {"b", "c"}
    assert versions.calls(tmp_path, second) == []
    versions.check_operators(tmp_path, second, [])
    third = versions.compact(tmp_path)
    assert heard(versions.open(tmp_path, third), 95) == {"b", "c"}
    assert {n.subscription for n in versions.open(tmp_path, third).publish(Event(attributes={"x": 1}))} == {
        "f"
    }


def test_a_refused_join_changes_nothing(tmp_path: Path) -> None:
    before = versions.publish(tmp_path, over_tables(a=LIKED))
    for text, told in (
        ("SELECT * FROM stocks JOIN review USING (symbol)", "did you mean 'reviews'"),
        ("SELECT * FROM stocks WHERE per = 'x'", "it needs a number"),
        ("SELECT * FROM stocks JOIN reviews ON stocks.per = 3", "3"),
    ):
        with pytest.raises(TidingsError, match=told):
            versions.append(tmp_path, [Change("b", DEAR), Change("c", text)])
    assert versions.current(tmp_path) == before


def test_numbers_of_joins_are_never_given_again(tmp_path: Path) -> None:
    """Streams count what they have told by number."""
    versions.publish(tmp_path, over_tables(a=LIKED, b=DEAR))
    after = versions.append(tmp_path, [Change("a", None), Change("c", LIKED), Change("b", LIKED)])
    assert numbers(versions.open(tmp_path, after)) == {"c": 2, "b": 3}
    compacted = versions.compact(tmp_path)
    assert numbers(versions.open(tmp_path, compacted)) == {"c": 2, "b": 3}
    after = versions.append(tmp_path, [Change("a", LIKED), Change("c", None)])
    assert numbers(versions.open(tmp_path, after)) == {"a": 4, "b": 3}
    assert numbers(versions.open(tmp_path, versions.compact(tmp_path))) == {"a": 4, "b": 3}


def test_joins_that_come_while_a_tail_is_folded_have_one_number(
    tmp_path: Path, meanwhile: list[Callable[[], object]]
) -> None:
    versions.publish(tmp_path, over_tables(a=LIKED, b=DEAR))
    versions.append(tmp_path, [Change("a", None)])
    before: list[Version] = []
    changes = [Change("c", LIKED), Change("b", None), Change("d", DEAR)]
    meanwhile.append(lambda: before.append(versions.append(tmp_path, changes)))
    after = versions.compact(tmp_path)
    assert after.base == 2
    assert numbers(versions.open(tmp_path, before[0])) == {"c": 2, "d": 3}
    assert numbers(versions.open(tmp_path, after)) == {"c": 2, "d": 3}


def test_a_base_that_is_built_anew_goes_on_with_the_numbers(tmp_path: Path) -> None:
    versions.publish(tmp_path, over_tables(a=LIKED, b=DEAR, c=LIKED))
    versions.append(tmp_path, [Change("d", DEAR), Change("c", "WHERE x = 1"), Change("e", P)])
    engine = over_tables(c=LIKED, d=DEAR, b=LIKED, a=LIKED)
    built = versions.publish(tmp_path, engine)
    loaded = versions.open(tmp_path, built)
    assert numbers(loaded) == {"a": 0, "d": 3, "c": 4, "b": 5}
    assert numbers(engine) == numbers(loaded)
    assert len(loaded) == 4
    assert heard(loaded, 60) == {"a", "b", "c"}
    assert heard(loaded, 95) == {"a", "b", "c", "d"}
    # The engine itself may be written again: it has these numbers already.
    engine.unsubscribe("a")
    assert numbers(versions.open(tmp_path, versions.publish(tmp_path, engine))) == {"d": 3, "c": 4, "b": 5}


def test_templates_rows_and_validity_go_on_too(tmp_path: Path) -> None:
    template = "SELECT * FROM stocks WHERE per > $least"

    def filled(ids: list[str], least: list[float]) -> Engine:
        engine = Engine(tables=TABLES)
        engine.subscribe_table(template, pa.table({"id": ids, "least": least}))
        engine.subscribe("d", DEAR, valid_until="2001-01-01")
        return engine

    versions.publish(tmp_path, filled(["a", "b"], [10, 20]))
    engine = filled(["b", "c", "a"], [20, 30, 15])
    engine.publish(Event.insert("stocks", {"symbol": "GOOG", "per": 25}, source="s", sequence=7))
    loaded = versions.open(tmp_path, versions.publish(tmp_path, engine))
    assert numbers(loaded) == {"b": 1, "d": 2, "c": 3, "a": 4}
    told = loaded.publish(Event.update("stocks", {"symbol": "GOOG", "per": 99}, source="s", sequence=8))
    assert {n.subscription: n.sequence for n in told} == {"a": 2, "b": 2, "c": 1}
    assert (
        loaded.publish(Event.delete("stocks", {"symbol": "GOOG"}, source="s", sequence=8))[0].verdict
        == "error"
    )


def test_other_tables_begin_anew(tmp_path: Path) -> None:
    versions.publish(tmp_path, over_tables(a=LIKED, b=DEAR))
    engine = Engine(tables=TABLES[:1])
    engine.subscribe("b", DEAR)
    assert numbers(versions.open(tmp_path, versions.publish(tmp_path, engine))) == {"b": 0}


def test_what_is_broken_can_be_built_anew(tmp_path: Path) -> None:
    versions.publish(tmp_path, over_tables(a=LIKED))
    (tmp_path / "v1" / "joins" / "tables.json").unlink()
    with pytest.raises(IndexFileError, match="build it anew"):
        versions.append(tmp_path, [Change("b", DEAR)])
    assert numbers(versions.open(tmp_path, versions.publish(tmp_path, over_tables(b=DEAR)))) == {"b": 0}


def test_a_new_numbering_of_joins_has_a_new_name(tmp_path: Path) -> None:
    def numbering() -> str:
        return versions.joins(tmp_path, versions.current(tmp_path)).numbering

    versions.publish(tmp_path, over_tables(a=LIKED))
    first = numbering()
    assert first
    versions.append(tmp_path, [Change("b", DEAR)])
    versions.compact(tmp_path)
    versions.publish(tmp_path, over_tables(b=DEAR, c=DEAR))
    assert numbering() == first
    (tmp_path / "v3" / "joins" / "tables.json").write_text("{}")
    versions.publish(tmp_path, over_tables(b=DEAR))
    assert numbering() != first


def test_an_index_whose_folder_is_gone_is_not_kept_open(tmp_path: Path) -> None:
    for name in ("gone", "there"):
        engine = Engine()
        engine.subscribe("s", "WHERE a = 1")
        version = versions.publish(tmp_path / name, engine)
        versions.open(tmp_path / name, version)
        if name == "gone":
            shutil.rmtree(tmp_path / name, ignore_errors=True)  # its checksums may be looked at meanwhile
    kept = {root.name for root in version_opening._opened if root.parent == tmp_path.resolve()}
    assert kept == {"there"}
