"""Damage in the files of an index is noticed, and named, whichever byte it is in."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tidings import Engine, Event
from tidings.errors import IndexFileError, TidingsError
from tidings.storage import checksums, versions
from tidings.storage.versions import Change, Version

OIL = "WHERE topic = 'oil'"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    engine = Engine()
    for number in range(20):
        engine.subscribe(f"s{number}", OIL)
    versions.publish(tmp_path / "index", engine)
    return tmp_path / "index"


def flip(path: Path, at: int = -1) -> None:
    """Changes one bit of a file."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.unlink()  # who has it mapped keeps what it was
    path.write_bytes(data)


def reported(root: Path, base: int) -> str:
    """Waits for the check in the background."""
    deadline = time.monotonic() + 20
    while not (found := checksums.damage(root, base)):
        assert time.monotonic() < deadline, "the check takes too long"
        time.sleep(0.005)
    return found


def test_every_file_of_a_base_is_covered(root: Path) -> None:
    files = [path for path in (root / "v1").rglob("*") if path.is_file() and path.stat().st_size]
    assert versions.verify(root, Version(1, 0))
    for path in files:
        data = path.read_bytes()
        for spoilt in (data[:-1], data[:-1] + bytes([data[-1] ^ 4])):
            path.write_bytes(spoilt)
            with pytest.raises(IndexFileError, match=rf"v1.*({path.name}|checksums).*build the index anew"):
                versions.verify(root, Version(1, 0))
        path.write_bytes(data)
    files[0].unlink()
    with pytest.raises(IndexFileError, match="cannot be read"):
        versions.verify(root, Version(1, 0))


def test_a_base_without_checksums_opens(root: Path) -> None:
    (root / "v1" / "checksums.json").unlink()
    assert not versions.verify(root, Version(1, 0))
    assert len(versions.open(root, Version(1, 0))) == 20
    checksums.check(root, 1)
    assert checksums.damage(root, 1) == ""


def test_what_opening_does_not_see_is_found_in_the_background(root: Path) -> None:
    flip(next((root / "v1" / "subscriptions").glob("*blob*.npy")))
    versions.open(root, Version(1, 0))  # texts are read when they are asked for
    assert "is not as it was written" in reported(root, 1)
    with pytest.raises(IndexFileError, match="is not as it was written"):
        versions.open(root, Version(1, 0))


def test_a_base_is_checked_once_on_a_host(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checksums.check(root, 1)
    checked: list[Path] = []
    monkeypatch.setattr(checksums, "verify", lambda folder, part="": checked.append(folder))
    versions.open(root, Version(1, 0))
    time.sleep(0.05)
    assert checked == []


def test_damage_is_not_folded_into_a_new_base(root: Path) -> None:
    versions.append(root, [Change("new", OIL)])
    flip(next((root / "v1" / "subscriptions").glob("*blob*.npy")))
    with pytest.raises(IndexFileError, match="is not as it was written"):
        versions.compact(root)
    assert versions.current(root).base == 1


def test_a_changed_letter_in_a_tail_is_noticed(root: Path) -> None:
    version = versions.append(root, [Change("new", "WHERE topic = 'gas'")])
    tail = root / "v1.tail"
    flip(tail, tail.read_bytes().index(b"gas"))
    with pytest.raises(IndexFileError, match="not as it was written"):
        versions.open(root, version)


def test_a_tail_of_before_there_were_checksums_opens(root: Path) -> None:
    (root / "v1.tail").write_text('{"id": "old", "text": "WHERE topic = \'gas\'", "valid_until": null}\n')
    engine = versions.open(root, versions.current(root))
    assert [n.subscription for n in engine.publish(Event(attributes={"topic": "gas"}))] == ["old"]


@pytest.mark.parametrize("at", [6, 8, 10, 30, 60, 127])
def test_a_wrong_byte_in_the_header_of_an_array_is_one_sentence(root: Path, at: int) -> None:
    for path in [root / "v1" / "operators" / "calls.npy", *(root / "v1").glob("subscriptions/*.npy")]:
        if not path.exists():
            continue
        data = path.read_bytes()
        for bit in (1, 8, 64, 128):
            path.write_bytes(data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :])
            try:
                Engine.load(root / "v1")  # some bytes there mean nothing
                versions.calls(root, Version(1, 0))
            except TidingsError as error:
                assert str(root) in str(error)
        path.write_bytes(data)
