"""The index follows the registry, whatever is killed between the two."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tidings import Event
from tidings.engine.engine import Engine
from tidings.errors import SubscriptionError
from tidings.service.matching import compaction
from tidings.service.matching.compaction import Compaction, drop_bases
from tidings.service.matching.index_writer import IndexTimeout, IndexWriter
from tidings.service.model import State, Subscription
from tidings.service.settings import Settings
from tidings.service.store.database import open_registry
from tidings.service.store.registry import Registry
from tidings.storage import versions
from tidings.storage.versions import Change, Version

OIL, GAS = "WHERE topic = 'oil'", "WHERE topic = 'gas'"
TABLES = """
[stocks]
columns = { symbol = "text", per = "number" }
key = ["symbol"]
"""
DEAR = "SELECT * FROM stocks WHERE per > 90"
CHEAP = "SELECT * FROM stocks WHERE per < 9"


def subscription(id: str, text: str = OIL, **rest: object) -> Subscription:
    return replace(Subscription(id, text, id, "", "", f"feed-{id}", 1.0, None), **rest)  # type: ignore[arg-type]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path / "data")


@pytest.fixture
def registry(settings: Settings) -> Iterator[Registry]:
    opened = open_registry(settings)
    yield opened
    opened.close()


@pytest.fixture
def running(settings: Settings, registry: Registry) -> Iterator[IndexWriter]:
    index_writer = IndexWriter(settings, registry)
    assert index_writer.prepare() == []
    index_writer.start()
    yield index_writer
    index_writer.stop()


def asked(root: Path, topic: str = "oil") -> set[str | None]:
    engine = versions.open(root, versions.current(root))
    return {n.subscription for n in engine.publish(Event(attributes={"topic": topic}))}


def eventually(holds: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.005)


def test_an_empty_registry_gives_an_empty_index(settings: Settings, registry: Registry) -> None:
    assert IndexWriter(settings, registry).prepare() == []
    assert asked(settings.data / "index") == set()


def test_what_is_waited_for_is_in_the_index(running: IndexWriter, registry: Registry) -> None:
    running.wait_for(registry.add(subscription("a")))
    running.wait_for(registry.add_many([subscription("b"), subscription("c", GAS)]))
    assert asked(running.root) == {"a", "b"}
    number = registry.update(replace(subscription("a"), state=State.PAUSED))
    assert number is not None
    running.wait_for(number)
    assert asked(running.root) == {"b"}
    eventually(lambda: not registry.changes())


def test_many_at_once_share_a_write(
    running: IndexWriter, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    append = versions.append

    def counted(root: Path, changes: list[Change], **rest: object) -> Version:
        sizes.append(len(changes))
        time.sleep(0.05)  # a slow disk
        return append(root, changes, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(versions, "append", counted)
    threads = [
        threading.Thread(target=lambda n=n: running.wait_for(registry.add(subscription(f"s{n}"))))
        for n in range(40)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sum(sizes) == 40
    assert len(sizes) < 15
    assert len(asked(running.root)) == 40


def test_a_change_that_never_reached_the_tail_does_at_the_next_start(
    settings: Settings, registry: Registry
) -> None:
    IndexWriter(settings, registry).prepare()
    registry.add(subscription("a"))
    number = registry.add(subscription("b"))
    again = IndexWriter(settings, registry)
    assert again.prepare() == []
    assert asked(again.root) == {"a", "b"}
    assert registry.changes() == []
    again.start()
    again.wait_for(number, timeout=0)
    again.stop()


def test_one_wrong_change_keeps_out_no_other(running: IndexWriter, registry: Registry) -> None:
    heard: list[tuple[str, str]] = []
    running.on_refused = lambda refused, number: heard.extend(refused)
    wrong = [7, 23]
    number = registry.add_many([subscription(f"s{n}", "WHERE (((" if n in wrong else OIL) for n in range(30)])
    running.wait_for(number)
    assert asked(running.root) == {f"s{n}" for n in range(30) if n not in wrong}
    eventually(lambda: len(heard) == 2)
    assert [id for id, _ in heard] == ["s7", "s23"]
    with pytest.raises(SubscriptionError, match="expected"):
        running.wait_for(registry.add(subscription("alone", "WHERE (((")))
    running.wait_for(registry.add(subscription("good")))


def test_refused_changes_of_the_outbox_are_told(settings: Settings, registry: Registry) -> None:
    IndexWriter(settings, registry).prepare()
    registry.add_many([subscription("a"), subscription("b", "FROM nowhere JOIN x USING (y)")])
    refused = IndexWriter(settings, registry).prepare()
    assert [id for id, _ in refused] == ["b"]
    assert asked(settings.data / "index") == {"a"}


def test_another_taxonomy_builds_anew_and_the_same_does_not(
    settings: Settings, registry: Registry, tmp_path: Path
) -> None:
    registry.add_many([subscription("a"), subscription("b", state=State.PAUSED), subscription("c", GAS)])
    root = settings.data / "index"
    assert IndexWriter(settings, registry).prepare() == []
    assert IndexWriter(settings, registry).prepare() == []
    assert versions.current(root) == Version(1, 0)
    taxonomy = tmp_path / "classes.ttl"
    taxonomy.write_text("<urn:a> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:b> .")
    changed = replace(settings, taxonomy=taxonomy, prefixes={"ex": "http://example.org/"})
    IndexWriter(changed, registry).prepare()
    assert versions.current(root) == Version(2, 0)
    assert versions.open(root, Version(2, 0)).prefixes == {"ex": "http://example.org/"}
    assert asked(root) == {"a"}
    moved = taxonomy.rename(tmp_path / "moved.ttl")
    IndexWriter(replace(changed, taxonomy=moved), registry).prepare()
    assert versions.current(root) == Version(2, 0)
    moved.write_text(
        moved.read_text() + "<urn:c> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:b> ."
    )
    IndexWriter(replace(changed, taxonomy=moved), registry).prepare()
    assert versions.current(root) == Version(3, 0)


def test_what_new_settings_refuse_is_told_and_stays_in_the_registry(
    settings: Settings, registry: Registry
) -> None:
    with_prefix = replace(settings, prefixes={"ex": "http://example.org/"})
    registry.add_many([subscription("a"), subscription("b", "WHERE (?x, ex:p, ?y)")])
    assert IndexWriter(with_prefix, registry).prepare() == []
    refused = IndexWriter(settings, registry).prepare()
    assert [id for id, _ in refused] == ["b"]
    assert "ex" in refused[0][1]
    found = registry.find("b")
    assert found is not None
    assert found.state is State.ACTIVE
    assert IndexWriter(with_prefix, registry).prepare() == []
    assert len(versions.open(settings.data / "index", versions.current(settings.data / "index"))) == 2


def test_a_damaged_index_is_built_anew(settings: Settings, registry: Registry) -> None:
    registry.add(subscription("a"))
    IndexWriter(settings, registry).prepare()
    (settings.data / "index" / "v1" / "prefixes.json").unlink()
    IndexWriter(settings, registry).prepare()
    assert versions.current(settings.data / "index") == Version(2, 0)
    assert asked(settings.data / "index") == {"a"}


def test_any_damage_is_mended_at_the_start(settings: Settings, registry: Registry) -> None:
    """One index after the other is damaged in another way; each start builds the next one."""
    root = settings.data / "index"
    registry.add(subscription("a"))
    IndexWriter(settings, registry).prepare()

    def base() -> Path:
        return root / f"v{versions.current(root).base}"

    def spoil(path: Path, at: int, byte: bytes) -> None:
        data = path.read_bytes()
        path.write_bytes(data[:at] + byte + data[at + 1 :])

    array = "subscriptions/id_blob.npy"
    assert (base() / array).exists()
    damages: list[Callable[[], object]] = [
        lambda: spoil(base() / array, 20, b"("),  # the header is no expression any more
        lambda: spoil(base() / array, 8, b"\xff"),  # its length
        lambda: (base() / array).write_bytes((base() / array).read_bytes()[:-1]),
        lambda: (base() / "taxonomy.nt").unlink(),
        lambda: (base() / "joins" / "tables.json").write_bytes(b"[]"),
        lambda: base().with_suffix(".tail").write_bytes(b'{"id": 1}\n'),
        lambda: (root / "CURRENT").write_bytes(b"\xff"),
        lambda: shutil.rmtree(root),
    ]
    rebuilt: list[int] = []
    for number, damage in enumerate(damages, start=2):
        damage()
        writer = IndexWriter(settings, registry, on_rebuilt=lambda: rebuilt.append(1))
        assert writer.prepare() == []
        assert versions.current(root) == Version(number, 0)
        assert asked(root) == {"a"}
    assert len(rebuilt) == len(damages)
    (root / "FINGERPRINT").write_bytes(b"\xff")
    assert IndexWriter(settings, registry).prepare() == []


def test_a_lost_index_gives_no_number_again(settings: Settings, registry: Registry) -> None:
    root = settings.data / "index"
    registry.add(subscription("a"))
    for number in (1, 2, 3):
        IndexWriter(settings, registry).prepare()
        assert versions.current(root) == Version(number, 0)
        shutil.rmtree(root)
    pins = settings.data / "checkpoint" / "pins"
    pins.mkdir(parents=True)
    (pins / "5").write_text("v17+40")  # the registry is older than the checkpoint
    (pins / "6").write_bytes(b"\xff")
    IndexWriter(settings, registry).prepare()
    assert versions.current(root) == Version(18, 0)
    assert compaction.next_base(settings.data, registry) == 19


def test_damage_that_is_found_while_it_runs_is_mended(
    settings: Settings, registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    registry.add(subscription("a"))
    rebuilt = threading.Event()
    running = IndexWriter(settings, registry, on_rebuilt=rebuilt.set)
    running.prepare()
    texts = running.root / "v1" / "subscriptions" / "text_blob.npy"
    data = texts.read_bytes()
    texts.write_bytes(data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])
    running.start()
    try:
        assert rebuilt.wait(20)
        assert "is not as it was written" in caplog.text
        assert asked(running.root) == {"a"}
        assert not (running.root / "v1").exists()
        running.wait_for(registry.add(subscription("b")))
        assert asked(running.root) == {"a", "b"}
        running.root.rename(
            settings.data / "gone"
        )  # and the whole folder, at once: files may be written meanwhile
        running.wait_for(registry.add(subscription("c")))
        assert asked(running.root) == {"a", "b", "c"}
        assert versions.current(running.root).base == 3
    finally:
        running.stop()


def test_a_question_over_tables_that_is_there_is_not_subscribed_again(
    settings: Settings, registry: Registry, tmp_path: Path
) -> None:
    (tmp_path / "tables.toml").write_text(TABLES)
    settings = replace(settings, tables=tmp_path / "tables.toml")
    root = settings.data / "index"
    IndexWriter(settings, registry).prepare()
    registry.add_many([subscription("a", DEAR), subscription("b", DEAR), subscription("c", OIL)])
    registry.update(replace(subscription("b", DEAR), text=CHEAP))
    # What a kill leaves between the append and the note that it is done.
    versions.append(root, [Change("a", DEAR), Change("b", DEAR), Change("c", OIL)])
    before = versions.joins(root, versions.current(root)).subscriptions.find("a")
    IndexWriter(settings, registry).prepare()
    joins = versions.joins(root, versions.current(root))
    assert joins.subscriptions.find("a") == before
    assert joins.source("b") == (CHEAP, None)
    assert joins.subscriptions.find("b") > before + 1
    assert asked(root) == {"c"}


def test_a_disk_that_is_full_delays_and_loses_nothing(
    running: IndexWriter, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = versions.append

    def full(*_: object, **__: object) -> Version:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(versions, "append", full)
    number = registry.add(subscription("a"))
    with pytest.raises(IndexTimeout, match="No space left"):
        running.wait_for(number, timeout=0.3)
    assert len(registry.changes()) == 1
    monkeypatch.setattr(versions, "append", append)
    running.wait_for(number)
    assert asked(running.root) == {"a"}


def test_what_waits_at_the_end_is_still_done(settings: Settings, registry: Registry) -> None:
    index_writer = IndexWriter(settings, registry)
    index_writer.prepare()
    index_writer.start()
    registry.add(subscription("a"))
    index_writer.stop()
    assert asked(index_writer.root) == {"a"}
    assert registry.changes() == []
    with pytest.raises(IndexTimeout, match="the service ends"):
        index_writer.wait_for(registry.add(subscription("b")))


def test_a_long_tail_is_folded_by_another_process(
    settings: Settings, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "AT_LEAST", 10)
    index_writer = IndexWriter(settings, registry)
    index_writer.prepare()
    index_writer.start()
    n = 0
    while versions.current(index_writer.root).base == 1:
        index_writer.wait_for(registry.add(subscription(f"s{n}")))  # nobody waits for the other process
        n += 1
    index_writer.wait_for(registry.add(subscription("last")))
    index_writer.stop()
    assert n > 10
    assert asked(index_writer.root) == {"last", *(f"s{i}" for i in range(n))}


def test_a_compaction_that_fails_is_told(
    settings: Settings, registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    IndexWriter(settings, registry).prepare()
    folding = Compaction(replace(settings, operators=("no.such.module",)), registry)
    folding.start()
    folding.appended(2_000)
    eventually(lambda: "there is no module 'no.such.module'" in caplog.text)
    folding.stop()


def test_bases_that_may_be_needed_stay(settings: Settings, registry: Registry) -> None:
    IndexWriter(settings, registry).prepare()
    root, pins = settings.data / "index", settings.data / "checkpoint" / "joins" / "pins"
    for n in range(3):
        versions.append(root, [Change(f"s{n}", OIL)])
        versions.compact(root)
    pins.mkdir(parents=True)
    (pins / "17").write_text("v2+0")
    later = time.time() + 3600
    assert drop_bases(settings.data) == []  # a micro-batch may be about to pin the last one
    assert sorted(drop_bases(settings.data, lambda: later)) == [1, 3]
    assert drop_bases(settings.data, lambda: later) == []
    assert drop_bases(settings.data / "nowhere") == []


def test_an_index_with_other_definitions_is_built_while_the_one_before_goes_on(
    running: IndexWriter, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go_on = threading.Event(), threading.Event()
    write = versions.write_aside

    def slow(root: Path, engine: Engine) -> Path:
        began.set()
        assert go_on.wait(20)
        return write(root, engine)

    monkeypatch.setattr(versions, "write_aside", slow)
    heard: list[tuple[str, str]] = []
    running.on_refused = lambda refused, number: heard.extend(refused)
    go_on.set()
    running.define(Engine(prefixes={"old": "http://example.org/"}), lambda: "first")
    old = "WHERE (?x, old:topic, 'oil')"
    running.wait_for(registry.add_many([subscription("a"), subscription("gone", old)]))
    base = versions.current(running.root).base
    began.clear()
    go_on.clear()
    defining = threading.Thread(target=lambda: running.define(Engine(), lambda: "second"))
    defining.start()
    assert began.wait(20)
    running.wait_for(registry.add_many([subscription("b"), subscription("late", old)]))
    number = registry.update(replace(subscription("a"), state=State.PAUSED))
    assert number is not None
    running.wait_for(number)
    assert asked(running.root) == {"b"}
    assert versions.current(running.root).base == base
    go_on.set()
    defining.join(20)
    assert versions.current(running.root).base > base
    assert asked(running.root) == {"b"}
    eventually(lambda: len(heard) == 2)
    assert sorted(id for id, _ in heard) == ["gone", "late"]
    assert (running.root / "FINGERPRINT").read_text() == "second"
    eventually(lambda: not registry.changes())
    running.wait_for(registry.add(subscription("c")))
    assert asked(running.root) == {"b", "c"}


def test_definitions_are_used_in_the_end_though_the_disk_was_full(
    running: IndexWriter, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.wait_for(registry.add(subscription("a")))

    def full(root: Path, engine: Engine, **rest: object) -> Version:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(versions, "write_aside", full)
        patched.setattr(versions, "publish", full)
        with pytest.raises(OSError, match="No space"):
            running.define(Engine(prefixes={"new": "http://example.org/"}), lambda: "new")
        assert asked(running.root) == {"a"}
    eventually(lambda: (running.root / "FINGERPRINT").read_text() == "new")
    running.wait_for(registry.add(subscription("b", "WHERE (?x, new:topic, 'oil')")))
    assert asked(running.root) == {"a"}
