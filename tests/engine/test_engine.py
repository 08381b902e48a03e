"""The engine: replace, validity, tables of events, folders that are in use."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tidings import Engine, Event, SubscriptionError, Taxonomy
from tidings.engine.engine import BroadSubscription, end_of_validity
from tidings.errors import EventError, IndexFileError
from tidings.model.event import to_table
from tidings.model.notification import NOTIFICATION_SCHEMA

P = "WHERE (?x, p, ?y)"


def event(text: str = ":a :p 5 .", **envelope: str) -> Event:
    return Event.from_rdf(f"@prefix : <urn:tidings:> . {text}", "turtle", source="here", **envelope)


def subscriptions(engine: Engine, one: Event) -> list[str | None]:
    return sorted(n.subscription or "" for n in engine.publish(one))


def test_the_first_lines_of_the_readme() -> None:
    engine = Engine()
    engine.subscribe("s1", "WHERE topic = 'finance' AND age BETWEEN 20 AND 30")
    engine.subscribe("s2", "SELECT ?t WHERE (?item, rss:title, ?t)")
    (found,) = engine.publish(Event(source="pub1", attributes={"topic": "finance", "age": 25}, id="e1"))
    assert (found.subscription, found.source, found.event, found.verdict) == ("s1", "pub1", "e1", "match")
    (found,) = engine.publish(event("<urn:i> <http://purl.org/rss/1.0/title> 'T' ."))
    assert (found.subscription, found.bindings, found.message) == ("s2", {"t": "T"}, None)


def test_an_id_that_exists_is_replaced() -> None:
    engine = Engine()
    engine.subscribe("s", P)
    assert subscriptions(engine, event()) == ["s"]
    engine.subscribe("s", "WHERE (?x, q, ?y)")
    assert (len(engine), subscriptions(engine, event())) == (1, [])
    assert engine.text("s") == "WHERE (?x, q, ?y)"
    with pytest.raises(SubscriptionError):
        engine.subscribe("s", "WHERE (((")
    assert engine.text("s") == "WHERE (?x, q, ?y)"  # a refused text replaces nothing


def test_an_id_nobody_has() -> None:
    engine = Engine()
    assert not engine.unsubscribe("s")
    for call in (lambda: engine.text("s"), lambda: engine.explain("s", event())):
        with pytest.raises(SubscriptionError, match="no subscription 's'"):
            call()


@pytest.mark.parametrize(
    ("until", "when", "expected"),
    [
        ("2030-01-31T10:00:00Z", "2030-01-31T10:00:00Z", True),
        ("2030-01-31T10:00:00Z", "2030-01-31T10:00:01Z", False),
        ("2030-01-31T10:00:00Z", "2030-01-31T11:00:00+01:00", True),
        ("2030-01-31", "2030-01-30T23:59:59.999Z", True),
        ("2000-01-01", None, False),
        ("2999-01-01", None, True),
        ("2000-01-01", "1999-12-31", True),
        ("2000-01-01", "not a time", False),
    ],
)
def test_validity_is_judged_by_the_time_of_the_event(
    until: str, when: str | None, expected: bool, tmp_path: Path
) -> None:
    engine = Engine()
    engine.subscribe("s", P, valid_until=until)
    engine.subscribe("always", P)
    one = Event.from_rdf("<urn:tidings:a> <urn:tidings:p> 5 .", "turtle", time=when)
    assert ("s" in subscriptions(engine, one)) == expected
    engine.save(tmp_path)
    loaded = Engine.load(tmp_path)
    loaded.subscribe("more", P)
    assert ("s" in subscriptions(loaded, one)) == expected
    assert "always" in subscriptions(loaded, one)


def test_ends_of_validity() -> None:
    assert end_of_validity(None) == float("inf")
    assert end_of_validity("1970-01-02") == end_of_validity(datetime(1970, 1, 2)) == 86400
    assert end_of_validity(datetime(1970, 1, 2, tzinfo=timezone(timedelta(hours=1)))) == 86400 - 3600
    assert end_of_validity(datetime(1970, 1, 2, tzinfo=UTC)) == 86400
    for wrong in ("tomorrow", "2004-13-01", "", 5, b"2004-01-01"):
        with pytest.raises(SubscriptionError, match="valid_until"):
            end_of_validity(wrong)  # type: ignore[arg-type]
    engine = Engine()
    with pytest.raises(SubscriptionError, match="valid_until"):
        engine.subscribe("s", P, valid_until="tomorrow")
    assert "s" not in engine


def test_what_matches_every_event_is_accepted_with_a_warning() -> None:
    engine = Engine()
    for id, text in {"all": "WHERE (?s, ?p, ?o)", "some": "WHERE (?s, p, ?o) OR (?s, ?p, ?o)"}.items():
        with pytest.warns(BroadSubscription, match=id):
            engine.subscribe(id, text)
    assert subscriptions(engine, event()) == ["all", "some"]
    assert engine.publish(Event(attributes={"a": 1})) == []


def test_no_events_and_no_subscriptions() -> None:
    engine = Engine()
    assert engine.publish(event()) == []
    assert engine.publish_many([]).schema == NOTIFICATION_SCHEMA
    engine.subscribe("s", P)
    assert len(engine.publish_many([])) == 0
    batch = to_table([event()]).to_batches()[0]
    assert engine.match(batch).num_rows == 1
    assert engine.match(batch.slice(0, 0)).schema == NOTIFICATION_SCHEMA


def test_the_users_own_table() -> None:
    """Columns outside the envelope are attributes; ids need not be texts."""
    engine = Engine()
    engine.subscribe("s", "WHERE price > 2 AND (?x, p, ?y)")
    table = pa.table(
        {
            "id": [1, 2, 3],
            "price": [1.5, 2.5, 3.5],
            "datacontenttype": pa.array(["text/turtle"] * 3).dictionary_encode(),
            "data": ["<urn:a> <urn:tidings:p> 1 .", "<urn:a> <urn:tidings:p> 2 .", "broken"],
        }
    )
    rows = engine.publish_many(table).to_pylist()
    assert [(r["subscription"], r["source"], r["event"], r["verdict"]) for r in rows] == [
        ("s", None, "2", "match"),
        (None, None, "3", "error"),
    ]


@pytest.mark.parametrize(
    "column", [{"data": [5]}, {"id": [["a"]]}, {"datacontenttype": [{"a": 1}]}, {"time": [[1]]}]
)
def test_a_table_of_other_types_is_refused(column: dict[str, list[object]]) -> None:
    engine = Engine()
    engine.subscribe("s", P)
    with pytest.raises(EventError, match=f"column '{next(iter(column))}'"):
        engine.publish_many(pa.table({"datacontenttype": ["nt"], "data": [b""], **column}))


def test_times_of_other_types() -> None:
    engine = Engine()
    engine.subscribe("s", "WHERE a = 1", valid_until="2004-01-31T10:00:00Z")
    early, late = datetime(2004, 1, 31, 9), datetime(2004, 1, 31, 11)
    for kind in (pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.timestamp("s")):
        table = pa.table({"id": ["early", "late"], "a": [1, 1], "time": pa.array([early, late], kind)})
        assert engine.publish_many(table)["event"].to_pylist() == ["early"]


def test_saving_where_it_was_loaded_from(tmp_path: Path) -> None:
    """In a process of its own: writing into a mapped file would end it."""
    code = f"""
from tidings import Engine, Event
engine = Engine()
for i in range(2000):
    engine.subscribe(f"s{{i}}", f"WHERE (?x, p{{i}}, ?y)")
engine.save({str(tmp_path)!r})
engine = Engine.load({str(tmp_path)!r})
other = Engine.load({str(tmp_path)!r})
for i in range(2000):
    if i % 100:
        engine.unsubscribe(f"s{{i}}")
engine.subscribe("new", "WHERE (?x, p7, ?y)")
engine.save({str(tmp_path)!r})
event = Event.from_rdf("<urn:a> <urn:tidings:p7> 5 .", "turtle")
print([[n.subscription for n in e.publish(event)] for e in (engine, other, Engine.load({str(tmp_path)!r}))])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[['new'], ['s7'], ['new']]"


@pytest.mark.parametrize(
    "path",
    [
        "taxonomy.nt",
        "prefixes.json",
        "patterns/manifest.json",
        "subscriptions/manifest.json",
        "patterns/row_slots.npy",
    ],
)
@pytest.mark.parametrize("content", [None, b"", b"{", b"[5]"])
def test_a_damaged_folder_is_refused(tmp_path: Path, path: str, content: bytes | None) -> None:
    engine = Engine()
    engine.subscribe("s", P)
    engine.save(tmp_path / "index")
    if content is None:
        (tmp_path / "index" / path).unlink()
    else:
        (tmp_path / "index" / path).write_bytes(content)
    if path == "taxonomy.nt" and content is not None:
        return  # an empty taxonomy is one
    with pytest.raises(IndexFileError):
        Engine.load(tmp_path / "index")


@pytest.mark.parametrize("part", ["arrays", "facts"])
def test_a_manifest_that_lacks_something(tmp_path: Path, part: str) -> None:
    engine = Engine()
    engine.subscribe("s", P)
    engine.save(tmp_path / "index")
    manifest = json.loads((tmp_path / "index/patterns/manifest.json").read_text())
    for name in manifest[part]:
        shutil.copytree(tmp_path / "index", tmp_path / name)
        less = {**manifest, part: {k: v for k, v in manifest[part].items() if k != name}}
        (tmp_path / name / "patterns/manifest.json").write_text(json.dumps(less))
        try:
            loaded = Engine.load(tmp_path / name)
        except IndexFileError:
            continue
        assert name not in ("row_slots", "tests")
        assert len(loaded) == 1


def test_a_taxonomy_and_prefixes_are_saved_too(tmp_path: Path) -> None:
    taxonomy = Taxonomy()
    taxonomy.add_property("urn:tidings:q", ["urn:tidings:p"])  # no class at all
    engine = Engine(taxonomy=taxonomy, prefixes={"my": "urn:tidings:"})
    engine.subscribe("s", "WHERE (?x, my:p, ?y)")
    assert subscriptions(engine, event(":a :q 5 .")) == ["s"]
    engine.save(tmp_path)
    loaded = Engine.load(tmp_path)
    loaded.subscribe("t", "WHERE (?x, my:p, ?y) AND ?y > 4")
    assert subscriptions(loaded, event(":a :q 5 .")) == ["s", "t"]


def test_subscribe_many_tells_who_was_refused() -> None:
    engine = Engine()
    refused = engine.subscribe_many([("a", P), ("b", "WHERE (?x, dcc:title, ?t)"), ("c", P), ("", P)])
    assert [id for id, _ in refused] == ["b", ""]
    assert str(refused[0][1]) == "unknown prefix 'dcc' at 1:12; did you mean 'dc'?"
    assert subscriptions(engine, event()) == ["a", "c"]


def test_ids_are_found_in_an_index_that_was_loaded(tmp_path):
    engine = Engine()
    ids = [" ", *(f"s{number} é" for number in range(50))]
    for id in ids:
        engine.subscribe(id, "WHERE price > 5")
    engine.save(tmp_path)
    loaded = Engine.load(tmp_path)
    assert all(id in loaded for id in ids)
    assert not any(id in loaded for id in ("", "s50 é", "s1", "\ud801"))
    loaded.subscribe("s1 é", "WHERE price > 50")  # behind the one of the folder, which ends
    assert loaded.unsubscribe("s2 é")
    assert not loaded.unsubscribe("s2 é")
    assert "s1 é" in loaded
    assert len(loaded) == 50
    found = loaded.publish_many([Event(attributes={"price": 6})])["subscription"].to_pylist()
    assert sorted(found) == sorted(set(ids) - {"s1 é", "s2 é"})
    slots = tmp_path / "subscriptions" / "id_slots.npy"
    slots.write_bytes(slots.read_bytes()[:-4] + np.int32(60).tobytes())
    with pytest.raises(IndexFileError, match="id_slots.npy has values that cannot be right"):
        Engine.load(tmp_path)
