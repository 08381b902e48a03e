"""The log as a data source: offsets, cuts, and the same events as the log itself reads."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from tidings.errors import TidingsError
from tidings.model.event import EVENT_SCHEMA, Event, to_table
from tidings.spark.source import LogSource, LogStreamReader, split
from tidings.storage.event_log import EventLog

from .conftest import words


def big(number: int) -> Event:
    return Event(id=str(number), source="test", data=b"x" * 100_000)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    with EventLog(tmp_path_factory.mktemp("log"), segment_bytes=1 << 20) as log:
        for number in range(30):
            log.append([big(number)])
        yield log


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 12))
def test_a_split_covers_its_range_once(log, low, high, most):
    edges = [log.start(), *(frame.end for frame in log.frames())]
    start, end = edges[min(low, high)], edges[max(low, high)]
    stretches = split(log, start, end, most)
    assert len(stretches) <= most
    ids = [i for s in stretches for batch in log.read(s.start, s.end) for i in batch.column("id").to_pylist()]
    assert ids == [str(number) for number in range(min(low, high), max(low, high))]
    if high - low == 30:
        assert len(stretches) == min(most, 3_000_000 // (256 << 10))


def test_a_small_read_is_one_task(tmp_path):
    with EventLog(tmp_path) as log:
        for number in range(20):
            log.append(words(number, 1))
        assert len(split(log, log.start(), log.end(), 8)) == 1
        assert split(log, log.end(), log.end(), 8) == []


def test_a_stream_takes_at_most_so_many_events_but_always_goes_on(log):
    reader = LogStreamReader(str(log.folder), 4, 7)
    assert reader.getDefaultReadLimit() == ReadMaxRows(7)
    offset, rounds = reader.initialOffset(), 0
    while (latest := reader.latestOffset(offset, ReadMaxRows(7))) != offset:
        offset, rounds = latest, rounds + 1
    assert rounds == 5
    assert (
        reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
        == offset
        == reader.reportLatestOffset()
    )
    one = reader.latestOffset(reader.initialOffset(), ReadMaxRows(0))
    assert one != reader.initialOffset()


def test_a_stream_until_now_does_not_see_later_events(tmp_path):
    with EventLog(tmp_path) as log:
        log.append(words(0, 3))
        reader = LogStreamReader(str(tmp_path), 4, 0)
        reader.prepareForTriggerAvailableNow()
        log.append(words(3, 3))
        first = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
        assert reader.latestOffset(first, ReadAllAvailable()) == first
        assert first != reader.reportLatestOffset()


def test_a_new_stream_starts_where_it_is_told(tmp_path):
    with EventLog(tmp_path) as log:
        _, second, end = (log.append(words(3 * number, 3)) for number in range(3))

    def reader(**options):
        source = LogSource({"path": str(tmp_path), **options})
        return source.streamReader(source.schema())

    def ends(stream):
        offset, found = stream.initialOffset(), []
        while (latest := stream.latestOffset(offset, ReadAllAvailable())) != offset:
            found.append((latest["segment"], latest["byte"]))
            offset = latest
        return found

    assert reader(start=str(second)).initialOffset() == {"segment": second.segment, "byte": second.byte}
    assert ends(reader(start=str(second))) == [end]
    for nowhere in ("", "7:16"):  # an offset of another log
        assert reader(start=nowhere).initialOffset() == reader().initialOffset()


STOCKS = json.dumps([{"name": "stocks", "columns": {"symbol": "text"}, "key": ["symbol"], "payload": []}])


def changed(symbol):
    return [Event.insert("stocks", {"symbol": symbol})]


@pytest.mark.parametrize("segment_bytes", [1, 64 << 20])
def test_micro_batches_of_tables_begin_when_one_changes(tmp_path, monkeypatch, segment_bytes):
    with EventLog(tmp_path, segment_bytes=segment_bytes) as log:
        ends = [
            log.append(events)
            for events in (words(0, 3), changed("A"), words(3, 3), changed("B"), words(6, 3))
        ]
        source = LogSource({"path": str(tmp_path), "tables": STOCKS})
        stream = source.streamReader(source.schema())
        first = stream.latestOffset(stream.initialOffset(), ReadMaxRows(5))
        assert tuple(first.values()) == ends[1]
        second = stream.latestOffset(first, ReadMaxRows(5))
        assert tuple(second.values()) == ends[3]
        assert stream.latestOffset(second, ReadMaxRows(5)) == second
        last = log.append([*words(9, 1), *changed("C"), *words(10, 1)])
        assert tuple(stream.latestOffset(second, ReadMaxRows(5)).values()) == last
        # At an edge a micro-batch ends; what changes nothing may have been dropped before it was read.
        source = LogSource({"path": str(tmp_path), "tables": STOCKS, "edge": str(ends[2])})
        stream = source.streamReader(source.schema())
        assert tuple(stream.latestOffset(stream.initialOffset(), ReadMaxRows(50)).values()) == ends[1]
        assert tuple(stream.latestOffset(first, ReadMaxRows(50)).values()) == last
        if segment_bytes == 1:
            log.drop_before(ends[2])
            assert tuple(stream.latestOffset(first, ReadMaxRows(50)).values()) == last
            (part,) = stream.partitions(first, dict(zip(("segment", "byte"), last, strict=True)))
            assert sum(batch.num_rows for batch in stream.read(part)) == 10
        # Very many others are left behind by a micro-batch, so that a start does not look at them again.
        monkeypatch.setattr("tidings.spark.source._UNCHANGED", 2)
        end = log.append(words(20, 3))
        assert (
            tuple(stream.latestOffset({"segment": last[0], "byte": last[1]}, ReadMaxRows(50)).values()) == end
        )


@pytest.mark.parametrize(
    ("options", "said"),
    [({}, "needs the event log's folder"), ({"path": "x", "partitions": "many"}, "whole number")],
)
def test_wrong_options_get_a_sentence(options, said):
    with pytest.raises(TidingsError, match=said):
        LogSource(options).streamReader(LogSource(options).schema())


def test_batch_read_gives_what_was_appended(spark, tmp_path):
    events = [*words(0, 25), Event(id="plain", source="test", attributes={"topic": "news", "age": 5})]
    frame = spark.read.format("tidings").load(str(tmp_path))
    assert frame.toArrow().num_rows == 0
    with EventLog(tmp_path, segment_bytes=1) as log:
        for item in events:
            log.append([item])
    read = spark.read.format("tidings").load(str(tmp_path)).toArrow()
    assert read.cast(EVENT_SCHEMA) == to_table(events)
