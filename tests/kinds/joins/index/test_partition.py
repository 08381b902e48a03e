"""Partitions: rows that meet are in one bucket, and a class's index finds what the whole one finds."""

import numpy as np
import pyarrow as pa
import pytest

from tidings.kinds.joins.changes.row_images import typed
from tidings.kinds.joins.index.partition import WHOLE, partition_of, partitions
from tidings.kinds.joins.schema.shape import read
from tidings.kinds.joins.schema.table import Table
from tidings.language.parser import parse

R = Table("r", {"id": "integer", "b": "text", "d": "date"}, key=["id"])
S = Table("s", {"y": "text", "e": "date", "b": "text"})
T = Table("t", {"b": "text", "c": "integer"})
TABLES = {table.name: table for table in (R, S, T)}


def shape(text):
    return read(parse(text), TABLES)[0]


@pytest.mark.parametrize(
    ("text", "name", "columns"),
    [
        ("SELECT * FROM r WHERE id > 1", "r", {"r": ("id",)}),
        ("SELECT * FROM t WHERE c > 1", "t", {"t": ("b", "c")}),
        ("SELECT * FROM s JOIN r ON s.y = r.b WHERE id > 1", "r.b=s.y", {"r": ("b",), "s": ("y",)}),
        (
            "SELECT * FROM s JOIN r ON s.e = r.d AND s.y = r.b WHERE id > 1",
            "r.b=s.y AND r.d=s.e",
            {"r": ("b", "d"), "s": ("y", "e")},
        ),
        (
            "SELECT * FROM t JOIN r USING (b) JOIN s USING (b) WHERE c > 1",
            "r.b=s.b=t.b",
            {"r": ("b",), "s": ("b",), "t": ("b",)},
        ),
        (
            "SELECT * FROM t JOIN r USING (b) JOIN s ON r.d = s.e WHERE c > 1",
            WHOLE,
            {"r": (), "s": (), "t": ()},
        ),
    ],
)
def test_a_class_is_the_same_however_it_is_written(text, name, columns):
    found = partition_of(shape(text), TABLES, 8)
    assert (found.name, found.columns) == (name, columns)
    assert found.buckets == (1 if name == WHOLE else 8)


def test_rows_that_meet_have_one_place_and_rows_that_cannot_have_none():
    by = partition_of(shape("SELECT * FROM s JOIN r ON s.e = r.d AND s.y = r.b WHERE id > 1"), TABLES, 8)
    texts, days = (
        pa.array(["a", "b", None, "ä,\n"]),
        pa.array(["2001-02-03", None, "2001-02-03", "2004-02-29"]),
    )
    left = by.bucket_keys(R, typed(R, {"id": pa.array([1, 2, 3, 4]), "b": texts, "d": days}, 4))
    right = by.bucket_keys(S, typed(S, {"y": texts, "e": days}, 4))
    assert left.tolist() == right.tolist()
    assert (left >= 0).tolist() == [True, False, False, True]
    assert left[0] != left[3]


def test_a_row_alone_has_a_place_whatever_is_null():
    alone = partition_of(shape("SELECT * FROM t WHERE c > 1"), TABLES, 8)
    assert (alone.bucket_keys(T, typed(T, {"b": pa.array([None, "x"])}, 2)) >= 0).all()


def test_places_spread():
    by = partition_of(shape("SELECT * FROM t JOIN r USING (b) WHERE c > 1"), TABLES, 16)
    bucket_keys = by.bucket_keys(T, typed(T, {"b": pa.array(map(str, range(4000)))}, 4000))
    counts = np.bincount(bucket_keys % 16)
    assert counts.min() > 150
    assert counts.max() < 350


def test_the_class_of_all_others_grows_and_what_is_known_keeps_its_buckets():
    chain = shape("SELECT * FROM t JOIN r USING (b) JOIN s ON r.d = s.e WHERE c > 1")
    pair = shape("SELECT * FROM t JOIN r USING (b) WHERE c > 1")
    known = partitions([pair], TABLES, 4)
    found = partitions([pair, chain], TABLES, 8, known.values())
    assert found["r.b=t.b"].buckets == 4
    assert set(found[WHOLE].columns) == {"r", "s", "t"}
    assert found["r.b=t.b"].part(3) == "3/4"
