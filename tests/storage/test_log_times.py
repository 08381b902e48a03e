"""Events found by their arrival, also in a log that an earlier version has written."""

from __future__ import annotations

import math
import os
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tidings.model.event import Event
from tidings.storage.event_log import EventLog
from tidings.storage.log_times import LogTimes

OLD = Path(__file__).parents[1] / "fixtures" / "log-without-arrivals.tar.gz"


@examples(8)
@given(st.lists(st.integers(0, 30), max_size=8), st.sampled_from([1, 1_500, 1 << 20]), st.integers(-1, 400))
def test_the_offset_of_a_time_is_before_the_first_event_that_came_then_or_later(
    steps: list[int], segment_bytes: int, at: int
) -> None:
    with TemporaryDirectory() as folder:
        now, arrivals = 0.0, []
        with EventLog(folder, segment_bytes=segment_bytes, clock=lambda: now) as log:
            for number, step in enumerate(steps):
                now += step
                log.append([Event(source="s", id=f"{number}-{k}") for k in range(1 + number % 3)])
                arrivals += [(f"{number}-{k}", now) for k in range(1 + number % 3)]
            times = LogTimes(EventLog(folder))
            found = [
                (id, arrival)
                for batch, of_rows in times.read(times.offset(at), log.end())
                for id, arrival in zip(batch.column("id").to_pylist(), of_rows.tolist(), strict=True)
            ]
        assert found == [(id, arrival) for id, arrival in arrivals if arrival >= at]
        assert times.known_from(-math.inf, math.inf) == (arrivals[0][1] if arrivals else math.inf)


def test_a_log_without_arrivals_counts_by_when_its_segments_were_written(tmp_path: Path) -> None:
    with tarfile.open(OLD) as archive:
        archive.extractall(tmp_path, filter="data")
    folder = tmp_path / "log-without-arrivals"
    for number, path in enumerate(sorted(folder.glob("*.log"))):
        os.utime(path, (1_000.0 + number, 1_000.0 + number))
    with EventLog(folder, clock=lambda: 2_000.0) as log:
        log.append([Event(source="new", id="new")])
        times = LogTimes(log)
        rows = [
            (id, at)
            for batch, arrivals in times.read(times.offset(1_003.0), log.end())
            for id, at in zip(batch.column("id").to_pylist(), arrivals.tolist(), strict=True)
        ]
    assert rows[:2] == [("old-3", 1_003.0), ("old-4", 1_004.0)]
    assert rows[-1] == ("new", 2_000.0)
    assert [row[0] for row in rows] == ["old-3", "old-4", "old-5", "new"]


def test_the_search_reads_one_frame_of_an_old_segment(tmp_path: Path) -> None:
    now = 0.0
    with EventLog(tmp_path, segment_bytes=1, clock=lambda: now) as log:
        for number in range(40):
            now = float(number)
            log.append([Event(source="s", id=str(number))])
        looked = set()
        log._map, whole = (lambda segment: looked.add(segment) or whole(segment)), log._map  # type: ignore[method-assign, func-returns-value]
        assert LogTimes(log).offset(35.0) > log.start()
        assert len(looked) <= 8
