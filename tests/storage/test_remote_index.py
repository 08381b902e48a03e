"""An index at an address: fetched once to this host, by whichever process comes first, and never half."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import pytest
from click.testing import CliRunner

from tests.storage.caches import own_cache
from tests.storage.http_store import fetched, served
from tidings import Engine, Event
from tidings.cli import main
from tidings.cli.stream_config import StreamConfig
from tidings.errors import IndexFileError, TidingsError
from tidings.storage import remote_index, versions
from tidings.storage.divided_index import DividedIndex
from tidings.storage.versions import Change, Placement, Version

EVENTS = [Event(id=str(n), source="test", attributes={"topic": f"t{n % 4}", "n": n}) for n in range(12)]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder of this host."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(own_cache(tmp_path / "cache")))
    return tmp_path / "cache" / "tidings" / "indexes"


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    return tmp_path / "counts"


@pytest.fixture
def store(tmp_path: Path, counts: Path) -> Iterator[str]:
    """The address of a folder that a real server serves, by a protocol without ranges."""
    (tmp_path / "store").mkdir()
    with served(tmp_path / "store", counts) as address:
        yield address


def engine(more: int = 0) -> Engine:
    made = Engine()
    for topic in range(4):
        made.subscribe(f"t{topic}", f"WHERE topic = 't{topic}'")
        for n in range(8):
            made.subscribe(f"t{topic} over {n}", f"WHERE topic = 't{topic}' AND n > {n}")
    for number in range(more):
        made.subscribe(f"more {number}", f"WHERE n = {number}")
    return made


def answers(index: Engine) -> list[tuple[str, str]]:
    found = index.publish_many(EVENTS)
    return sorted(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))


def opened(address: str, version: Version | None = None) -> Engine:
    return versions.open(address, version or versions.current(address))


@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_an_index_is_published_and_opened_at_an_address(scheme: str, tmp_path: Path) -> None:
    address = f"file://{tmp_path}/far/index" if scheme == "file" else "memory://bucket/index"
    if scheme == "memory":
        fsspec.filesystem("memory").store.clear()
    with pytest.raises(IndexFileError, match=f"holds no such index .* 'tidings index build {address}'"):
        versions.current(address)
    assert not remote_index.has_index(address)
    first = versions.publish(address, engine(), placement=Placement("split", 2))
    assert first == Version(1, 0) == versions.current(address)
    assert answers(opened(address)) == answers(engine())
    # The next one is divided as this one is, and has the next number; the first one can be opened still.
    second = versions.publish(address, engine(more=3))
    assert second == Version(2, 0)
    division = versions.division(address, second)
    assert division is not None
    assert division.placement == Placement("split", 2)
    assert answers(opened(address)) == answers(engine(more=3))
    assert answers(opened(address, first)) == answers(engine())
    assert versions.verify(address, second)
    assert versions.is_there(address, first)
    assert not versions.is_there(address, Version(3, 0))
    assert not versions.is_there(address, Version(2, 10))


@pytest.mark.slow
def test_a_second_process_fetches_nothing(tmp_path: Path, store: str, counts: Path, cache: Path) -> None:
    versions.publish(tmp_path / "store" / "index", engine(), placement=Placement("contain", 2))
    exact = remote_index.exact(f"{store}/index", 1)
    code = (
        "import sys; from tidings.storage import versions; from tests.storage.test_remote_index import answers\n"
        "print(answers(versions.open(sys.argv[1], versions.Version(1, 0))))"
    )
    command, folder = [sys.executable, "-c", code, exact], Path(__file__).parents[2]
    other = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=folder, check=True)
    assert other.stdout.strip() == str(answers(engine()))
    before = fetched(counts)
    assert any("/part-1/" in path for _, path in before)
    assert {count for (_, path), count in before.items() if path.endswith(".npy")} == {1}
    assert answers(versions.open(exact, Version(1, 0))) == answers(engine())
    assert fetched(counts) == before  # a second process of this host has fetched nothing
    assert cache.stat().st_mode & 0o777 == 0o700


def test_a_process_fetches_the_parts_that_it_opens(tmp_path: Path, store: str, counts: Path) -> None:
    versions.publish(tmp_path / "store" / "index", engine(), placement=Placement("split", 3))
    index = opened(f"{store}/index")
    assert isinstance(index, DividedIndex)
    assert not any("/part-" in path for _, path in fetched(counts))
    index.part(2)
    parts = {path.split("/")[3] for _, path in fetched(counts) if "/part-" in path}
    assert parts == {"part-2"}
    assert index.text(next(id for id in engine_ids() if index.part_with(id) == 2))
    assert answers(index) == answers(engine())


def engine_ids() -> list[str]:
    return [f"t{topic} over {n}" for topic in range(4) for n in range(8)]


def test_of_a_tail_only_what_is_new_is_read(tmp_path: Path, store: str, counts: Path, cache: Path) -> None:
    far, address = tmp_path / "store" / "index", f"{store}/index"
    versions.publish(far, engine(), placement=Placement("split", 2))
    first = versions.append(far, [Change("n3", "WHERE n = 3"), Change("t1 over 2", None)])
    assert versions.current(address) == first
    opened(address)
    with (far / "v1.tail").open("ab") as tail:
        tail.write(b'{"id": "half')  # a line that is being written
    assert versions.current(address) == first
    asked = fetched(counts)["127.0.0.1", "/index/v1.tail"]
    assert answers(opened(address, first)) == answers(versions.open(far, first))
    assert fetched(counts)["127.0.0.1", "/index/v1.tail"] == asked
    second = versions.append(far, [Change("n4", "WHERE n = 4")])
    assert answers(opened(address)) == answers(versions.open(far, second))
    (root,) = (path for path in cache.iterdir() if (path / "v1.tail").exists())
    assert (root / "v1.tail").read_bytes() == (far / "v1.tail").read_bytes()
    with pytest.raises(IndexFileError, match="cannot be read as far as v1"):
        opened(address, Version(1, second.offset + 5))


def test_another_index_under_the_same_number_is_seen(tmp_path: Path) -> None:
    """A folder that was removed and built anew begins with v1 again."""
    far = tmp_path / "far"
    address = f"file://{far}"
    versions.publish(far, engine())
    exact = remote_index.exact(address, 1)
    assert answers(opened(address)) == answers(engine())
    (far / "CURRENT").unlink()
    (far / "v1").rename(tmp_path / "old")
    versions.publish(far, engine(more=5))
    assert versions.current(address) == Version(1, 0)
    assert answers(opened(address)) == answers(engine(more=5))
    # Who was given the base by its checksums gets it, or none.
    assert answers(versions.open(exact, Version(1, 0))) == answers(engine())
    for root in remote_index.cache_folder().iterdir():
        root.rename(tmp_path / root.name)
    with pytest.raises(IndexFileError, match="base v1 at .* was replaced by another one"):
        versions.open(exact, Version(1, 0))


def test_what_is_damaged_on_its_way_is_not_kept(tmp_path: Path) -> None:
    far = tmp_path / "far"
    address = f"file://{far}"
    versions.publish(far, engine(), placement=Placement("split", 2))
    front, part = far / "v1" / "front" / "prefixes.json", next((far / "v1" / "part-1").rglob("*.npy"))
    whole = {path: path.read_bytes() for path in (front, part)}
    for path, data in whole.items():
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    for path, data in whole.items():
        with pytest.raises(
            IndexFileError, match=rf"{path.name} is not as it was written; build the index anew"
        ):
            answers(opened(address))
        path.write_bytes(data)
    assert answers(opened(address)) == answers(engine())


def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    far = tmp_path / "far"
    versions.publish(far, engine())
    (tmp_path / "secret").write_bytes(b"")
    (far / "v1" / "checksums.json").write_text('{"../../secret": [0, 0]}')
    with pytest.raises(IndexFileError, match="names a file '../../secret' of v1"):
        versions.current(f"file://{far}")


def test_what_nobody_used_for_a_day_is_removed(tmp_path: Path, cache: Path) -> None:
    for name in ("one", "two"):
        versions.publish(tmp_path / name, engine())
    opened(f"file://{tmp_path}/one")
    (old,) = cache.iterdir()
    os.utime(old, (time.time() - 90_000,) * 2)
    opened(f"file://{tmp_path}/one")
    opened(f"file://{tmp_path}/two")
    assert old.exists()  # it was used again
    os.utime(old, (time.time() - 90_000,) * 2)
    versions.publish(tmp_path / "three", engine())
    opened(f"file://{tmp_path}/three")
    assert not old.exists()
    assert len(list(cache.iterdir())) == 2


def test_threads_take_turns(tmp_path: Path, store: str, counts: Path) -> None:
    versions.publish(tmp_path / "store" / "index", engine())
    with ThreadPoolExecutor(4) as pool:
        roots = set(pool.map(lambda _: remote_index.local_root(f"{store}/index", 1), range(4)))
    assert len(roots) == 1
    data = [count for (_, path), count in fetched(counts).items() if path.endswith(".npy")]
    assert set(data) == {1}


def test_what_cannot_be_done_is_said_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"file://{tmp_path}/far"
    versions.publish(address, engine())
    for change in (
        lambda: versions.append(address, [Change("a", "WHERE n = 1")]),
        lambda: versions.compact(address),
        lambda: versions.drop(address),
    ):
        with pytest.raises(IndexFileError, match=f"nothing can be locked at an address; .*build {address}'"):
            change()
    with pytest.raises(TidingsError, match="nowhere://there cannot be read .*Protocol not known"):
        versions.current("nowhere://there")
    (tmp_path / "far" / "CURRENT").write_text("none")
    with pytest.raises(IndexFileError, match="CURRENT names no base"):
        versions.current(address)
    with pytest.raises(
        TidingsError, match="http://127.0.0.1:9/index cannot be read .* reached from this host"
    ):
        versions.current("http://127.0.0.1:9/index")
    with pytest.raises(
        TidingsError, match="cannot be read"
    ):  # it may be there: a stream must not go on without it
        versions.is_there("http://127.0.0.1:9/index", Version(1, 0))
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    (tmp_path / "far" / "CURRENT").write_text("1")
    with pytest.raises(TidingsError, match="set XDG_CACHE_HOME to a folder that can be written"):
        versions.current(address)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/local,/elsewhere")
    assert remote_index.local_root(address).is_relative_to(tmp_path / "local")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(TidingsError, match="needs fsspec; install Tidings with the extra 'remote'"):
        versions.current(address)


def test_commands_take_addresses(tmp_path: Path) -> None:
    address, texts = f"file://{tmp_path}/far", tmp_path / "subscriptions.txt"
    texts.write_text("dear: WHERE price > 10\nCA: WHERE country = 'CA'\n")
    events = tmp_path / "events.ndjson"
    events.write_text('{"price": 12, "country": "CA"}\n')

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(main, arguments)
        return done.output

    built = run("index", "build", address, "-s", str(texts), "--parts", "2", "--place", "split")
    assert f"{address} is now v1+0: 2 subscriptions" in built
    assert "0 in the front and 2 in 2 parts, place split" in built
    shown = run("index", "show", address)
    assert "as they were written" in shown
    assert "part 1" in shown
    assert "1 event against 2 subscriptions: 2 notifications" in run("match", "-s", address, str(events))
    assert "is an index, with its own taxonomy" in run("match", "-s", address, "-p", "a=b:c", str(events))
    assert "nothing can be locked at an address" in run("index", "add", address, "a", "WHERE n = 1")
    assert "holds no such index" in run("match", "-s", f"{address}/none", str(events))
    (tmp_path / "stream.toml").write_text(f'index = "{address}"\n')
    assert StreamConfig.read(tmp_path / "stream.toml").index == address
