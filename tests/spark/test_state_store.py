"""Shelves and counts in Spark's state: what was put is what is taken, however many there are."""

import random
from collections import Counter

import numpy as np
import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.streaming.tws_tester import TwsTester

from tidings.spark.joins.state_store import Counts, Shelves, pack, unpack

SCHEMA = pa.schema([("place", pa.int64()), ("row", pa.string())])


class Keeper(StatefulProcessor):
    """Changes what stands at some places, and tells everything."""

    def init(self, handle):
        self.shelves = Shelves(handle, "rows", SCHEMA)
        self.counts = Counts(handle, "told")

    def handleInputRows(self, key, rows, timerValues):
        for row in rows:
            places = np.array(row.places)
            held = dict(zip(*self.shelves.take(places).to_pydict().values(), strict=True))
            for place, text in zip(row.places, row.texts, strict=True):
                held[place] = text
                if not text:
                    del held[place]
            self.shelves.put(pa.table([list(held), list(held.values())], schema=SCHEMA), places)
            numbers = np.unique(places) * 100
            counts = self.counts.take(numbers, 40_000)
            counts[numbers] += 1
            self.counts.put(counts, numbers)
        told = self.counts.take(np.arange(40_000), 40_000)
        yield Row(
            rows=self.shelves.take().to_pylist(),
            counts={int(number): int(told[number]) for number in np.flatnonzero(told)},
            shelves=self.shelves._count(),
        )

    def close(self):
        pass


def test_what_was_put_is_taken():
    tester, rng, rows, counts = TwsTester(Keeper()), random.Random(1), {}, Counter()
    for _ in range(60):
        places = rng.sample(range(300), 8)
        texts = [rng.choice(["", rng.randbytes(rng.randrange(1, 2000)).hex()]) for _ in places]
        rows = {
            place: text for place, text in {**rows, **dict(zip(places, texts, strict=True))}.items() if text
        }
        counts.update(100 * place for place in places)
        (found,) = tester.test("group", [Row(places=places, texts=texts)])
        assert {row["place"]: row["row"] for row in found.rows} == rows
        assert found.counts == counts
    assert found.shelves > 1


def test_one_place_is_one_shelf_however_large():
    tester = TwsTester(Keeper())
    text = random.Random(2).randbytes(100_000).hex()
    (found,) = tester.test("group", [Row(places=[7], texts=[text])])
    assert (found.shelves, [row["row"] for row in found.rows]) == (1, [text])


class Counter7(Keeper):
    """Counts from 7 on."""

    def init(self, handle):
        super().init(handle)
        self.counts = Counts(handle, "told", 7)


def test_with_another_first_number_all_counts_start_there():
    plain, later = Keeper(), Counter7()
    tester = TwsTester(plain)
    for _ in range(3):
        tester.test("group", [Row(places=[1], texts=["x"])])
    later.init(tester.handle)
    plain.counts = later.counts
    for number in (8, 9):
        (found,) = tester.test("group", [Row(places=[2], texts=["x"])])
        assert (found.counts[100], found.counts[200]) == (7, number)


def test_texts_are_plain_letters():
    table = pa.table([[1, 2], ["ä\n", None]], schema=SCHEMA)
    assert pack(table).isascii()
    assert unpack(pack(table)).equals(table)
