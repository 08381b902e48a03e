"""What is appended is read back, in order, after any crash that left a torn end."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.event import EVENT_SCHEMA, Event
from tidings.storage.event_log import START, EventLog, LogError, Offset


def events(ids):
    return [Event(id=str(i), source="test", data=b"x" * (7 * len(str(i)))) for i in ids]


def ids_of(log, start=None, end=None):
    return [i for batch in log.read(start, end) for i in batch.column("id").to_pylist()]


def last_segment(folder: Path) -> Path:
    return max(folder.glob("*.log"))


sizes = st.lists(st.integers(1, 5), min_size=1, max_size=7)


@settings(max_examples=30)
@given(sizes, st.sampled_from([1, 2_000, 1 << 20]))
def test_reads_back_between_any_two_appends(appends, segment_bytes):
    with TemporaryDirectory() as folder, EventLog(folder, segment_bytes=segment_bytes) as log:
        offsets, expected, number = [log.start()], [[]], 0
        for size in appends:
            new = [str(number + k) for k in range(size)]
            offsets.append(log.append(events(new)))
            expected.append(expected[-1] + new)
            number += size
        assert offsets == sorted(set(offsets))
        assert log.end() == offsets[-1]
        reader = EventLog(folder)
        for low in range(len(offsets)):
            for high in range(low, len(offsets)):
                assert ids_of(reader, offsets[low], offsets[high]) == expected[high][len(expected[low]) :]
        assert sum(frame.rows for frame in reader.frames()) == number


@settings(max_examples=30)
@given(sizes, st.integers(0, 400), st.binary(max_size=64), st.booleans())
def test_a_torn_end_is_cut_off_and_nothing_before_it(appends, cut, garbage, head_is_old):
    with TemporaryDirectory() as name:
        folder = Path(name)
        with EventLog(folder) as log:
            kept = [str(n) for n in range(len(appends))]
            for i in kept[:-1]:
                log.append(events([i]))
            whole = log.end()
            head = (folder / "HEAD").read_bytes() if kept[:-1] else b""
            log.append(events(kept[-1:]))
        frame = last_segment(folder).read_bytes()[whole.byte :]
        torn = frame[: min(cut, len(frame) - 1)]
        with open(last_segment(folder), "r+b") as file:
            file.truncate(whole.byte)
            file.seek(whole.byte)
            file.write(torn + garbage)
        # The crash came before HEAD was written; or a power cut also took HEAD back.
        (folder / "HEAD").write_bytes(b"" if head_is_old else head)

        with EventLog(folder) as log:
            log.append(events(["new"]))
            assert ids_of(log) == [*kept[:-1], "new"]


def test_frames_that_were_written_before_head_are_kept(tmp_path):
    with EventLog(tmp_path, segment_bytes=1) as log:
        for i in range(3):
            log.append(events([i]))
        old = (tmp_path / "HEAD").read_bytes()
        for i in range(3, 6):
            log.append(events([i]))
    (tmp_path / "HEAD").write_bytes(old)
    assert ids_of(EventLog(tmp_path)) == ["0", "1", "2"]
    with EventLog(tmp_path) as log:
        log.append(events([6]))
        assert ids_of(log) == [str(i) for i in range(7)]


@pytest.mark.parametrize("damage", [b"", b"not a head, and too long for one to be so"])
def test_a_lost_head_is_found_again(tmp_path, damage):
    with EventLog(tmp_path, segment_bytes=1) as log:
        for i in range(5):
            log.append(events([i]))
        log.drop_before(Offset(2, START))
    (tmp_path / "HEAD").write_bytes(damage)
    with EventLog(tmp_path) as log:
        log.append(events([5]))
        assert ids_of(log) == ["2", "3", "4", "5"]


def test_damage_in_the_middle_is_an_error_and_not_silence(tmp_path):
    with EventLog(tmp_path) as log:
        log.append(events([1]))
        middle = log.end()
        log.append(events([2]))
        after = log.end()
        log.append(events([3]))
    with open(last_segment(tmp_path), "r+b") as file:
        file.seek(middle.byte + 40)
        file.write(b"\xff\xff")
    with pytest.raises(LogError, match=f"damaged at byte {middle.byte}"):
        ids_of(log)
    assert ids_of(log, after) == ["3"]


@pytest.mark.parametrize("torn", ["cut", "zeros", "garbage", "gone"])
def test_an_end_that_a_disk_has_lost_is_cut_off_and_no_offset_is_given_twice(tmp_path, torn, caplog):
    """HEAD says that the last event is durable, the segment does not have it: whoever has read up to there goes on with
    what comes now, and whoever has not reads what is left."""
    with EventLog(tmp_path) as log:
        log.append(events([1]))
        kept = log.end()
        log.append(events([2]))
        end = log.end()
    path = last_segment(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(
        {
            "cut": whole[: kept.byte + 9],
            "zeros": whole[: kept.byte + 9] + bytes(len(whole) - kept.byte - 9),
            "garbage": whole[: kept.byte] + b"\xff" * (len(whole) - kept.byte),
            "gone": whole,
        }[torn]
    )
    if torn == "gone":
        path.unlink()
    with EventLog(tmp_path) as log:
        first = log.append(events([3]))
        log.append(events([4] * 20))
        assert first > end
        assert ids_of(log, end) == ["3", *["4"] * 20]  # a stream that had read the lost event
        assert ids_of(log, kept, first) == ["3"]
        assert ids_of(log, kept, end) == []  # one that reads it again
        assert ids_of(log) == [*([] if torn == "gone" else ["1"]), "3", *["4"] * 20]
        assert log.has_lost(end)
        assert not log.has_lost(first)
    assert "lost" in caplog.text
    with EventLog(tmp_path) as log:  # and it stays so
        log.append(events([5]))
        assert ids_of(log, end, None)[0] == "3"


def test_damage_in_the_middle_costs_nothing_behind_it_at_a_start(tmp_path):
    with EventLog(tmp_path) as log:
        log.append(events([1]))
        middle = log.end()
        log.append(events([2]))
        after = log.end()
        log.append(events([3]))
    with open(last_segment(tmp_path), "r+b") as file:
        file.seek(middle.byte + 40)
        file.write(b"\xff\xff")
    with EventLog(tmp_path) as log:
        log.append(events([4]))
        assert ids_of(log, after) == ["3", "4"]
        with pytest.raises(LogError, match=f"damaged at byte {middle.byte}"):
            ids_of(log)


@pytest.mark.parametrize(
    "segment_bytes", [1, 40_000]
)  # it is full when a segment begins, or in the midst of one
def test_a_full_disk_refuses_and_has_room_again(tmp_path, segment_bytes):
    """A real one: a file system in memory, of half a megabyte, in a namespace of its own."""
    code = """
import os, sys
from pathlib import Path
from tidings import Event
from tidings.storage.event_log import EventLog, LogError
root = Path(sys.argv[1])
log, kept = EventLog(root / "log", segment_bytes=int(sys.argv[2])), []
def fill():
    with open(root / "ballast", "ab", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
for round in range(2):
    refused = 0
    for n in range(30):
        id = f"{round}-{n}"
        if n == 10:
            fill()
        try:
            log.append([Event(source="s", id=id, data=b"y" * 1500)])
            kept.append(id)
        except LogError as error:
            assert "No space left" in str(error), error
            refused += 1
    assert refused >= 5, refused
    os.remove(root / "ballast")
    log.append([Event(source="s", id=f"{round}-after")])
    kept.append(f"{round}-after")
    assert [id for part in log.read() for id in part["id"].to_pylist()] == kept
    log.close()
    log.append([])
    assert [id for part in log.read() for id in part["id"].to_pylist()] == kept
print("kept", len(kept))
"""
    mount = 'mount -t tmpfs -o size=512k tidings "$1" && shift && exec "$@"'
    command = ["unshare", "-rm", "sh", "-c", mount, "sh", tmp_path, sys.executable, "-c", code]
    command += [tmp_path, str(segment_bytes)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()[:100]}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("kept")


def test_one_writer_and_any_readers(tmp_path):
    with EventLog(tmp_path) as first:
        first.append(events([1]))
        second = EventLog(tmp_path)
        assert ids_of(second) == ["1"]
        with pytest.raises(LogError, match=f"already has a writer, process {os.getpid()}"):
            second.append(events([2]))
    second.append(events([3]))
    assert ids_of(first) == ["1", "3"]
    second.close()


def test_threads_share_writes_and_each_gets_its_own_offset(tmp_path):
    with EventLog(tmp_path, segment_bytes=20_000) as log:
        ends: dict[str, Offset] = {}

        def publish(name):
            for i in range(20):
                ends[f"{name}{i:02}"] = log.append(events([f"{name}{i:02}"]))

        threads = [threading.Thread(target=publish, args=(name,)) for name in "abcdefgh"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(ids_of(log)) == sorted(ends)
        assert len(set(ends.values())) == len(ends)
        for name, end in ends.items():
            assert ids_of(log, None, end)[-1] == name


def test_retention(tmp_path):
    with EventLog(tmp_path, segment_bytes=1) as log:
        offsets = [log.append(events([i])) for i in range(6)]
        log.drop_before(offsets[3])
        assert log.start() == Offset(offsets[3].segment, START)
        assert ids_of(log) == ["3", "4", "5"]
        with pytest.raises(LogError, match=r"were dropped .* start at 3:16"):
            ids_of(log, offsets[0])
        assert len(list(tmp_path.glob("*.log"))) == 3
        log.drop_before(Offset(99, START))
        assert ids_of(log) == ["5"]


def test_a_log_that_does_not_exist_yet_is_empty(tmp_path):
    log = EventLog(tmp_path / "later")
    assert log.start() == log.end() == Offset(0, START)
    assert ids_of(log) == []
    assert not (tmp_path / "later").exists()


def test_single_events_are_put_together_and_tables_are_cut(tmp_path):
    with EventLog(tmp_path) as log:
        for i in range(30):
            log.append(events([i]))
        assert [batch.num_rows for batch in log.read()] == [30]
        begin = log.end()
        log.append(pa.table({"data": pa.array([b"y" * 10_000] * 3_000, pa.binary())}))
        frames = list(log.frames(begin))
        assert sum(frame.rows for frame in frames) == 3_000
        assert max(frame.end.byte - frame.start.byte for frame in frames) < 1_200_000
        assert all(batch.schema == EVENT_SCHEMA and batch.num_rows <= 10_000 for batch in log.read())


def test_an_empty_append_is_no_event(tmp_path):
    with EventLog(tmp_path) as log:
        end = log.append(events([1]))
        assert log.append([]) == end
