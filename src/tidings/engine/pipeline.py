"""How a batch of events is matched: one sequence of steps, each a function of the batch, the index and the pairs.

    find ─► live_and_valid ─► checkers: residuals, networks, own kinds, operators ─► one_answer_each ─► notifications

Cheap steps come first. A step takes the pairs that the one before has left, in columns; only events that need a
parser, and pairs that a later step has to look at, are ever Python objects. Every step can be called alone:

    index, batch = engine.index_snapshot(), Batch(to_table(events))
    pairs = find(batch, index)
    index.subscriptions.ids(pairs.subscription)
    for checker in index.checkers:
        pairs = checker.check(batch, pairs)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from tidings.engine.plan import RESIDUALS
from tidings.engine.snapshot import Snapshot
from tidings.model.batch import Batch, check_columns
from tidings.model.notification import BINDINGS, NOTIFICATION_SCHEMA, Notification, error_table, to_table
from tidings.model.pairs import Pairs


def match(events: pa.Table, index: Snapshot, every: bool = False) -> pa.Table:
    """The notifications of events, in no particular order; those of events that cannot be read come last."""
    check_columns(events)
    found, failed = [NOTIFICATION_SCHEMA.empty_table()], []
    for first in range(0, events.num_rows, index.events_at_once):
        batch = Batch(events.slice(first, index.events_at_once), every)
        found += notifications(batch, index, matched(batch, index))
        failed.append(error_table(batch.events, batch.errors))
    return pa.concat_tables([*found, *failed])


def matched(batch: Batch, index: Snapshot) -> Pairs:
    """The pairs of a batch that match, or that nobody can decide."""
    return settled(batch, index, find(batch, index))


def settled(batch: Batch, index: Snapshot, pairs: Pairs) -> Pairs:
    """What the steps after `find` leave."""
    pairs = live_and_valid(batch, index, pairs)
    for checker in index.checkers:
        pairs = checker.check(batch, pairs)
    return one_answer_each(batch, index, pairs)


def find(batch: Batch, index: Snapshot) -> Pairs:
    """The pairs that finders have found."""
    pairs = Pairs.concat([finder.find(batch) for finder in index.finders])
    batch.finders_doubts = len(batch.messages)
    return pairs


def candidates(batch: Batch, index: Snapshot) -> Pairs:
    """The pairs that would match if the places in networks, the operators and the kinds of the user's own let them through,
    which are not called; of subscriptions that are over, too."""
    pairs = find(batch, index)
    for checker in index.checkers:
        if checker.name == RESIDUALS:
            pairs = checker.check(batch, pairs)
    return pairs


def of_all_events(batch: Batch, index: Snapshot, pairs: Pairs) -> list[str]:
    """The ids of the live subscriptions that have a pair with every event of a batch."""
    pairs = live_and_valid(batch, index, pairs)
    # Once, however many ways there are.
    each = np.unique(pairs.subscription.astype(np.int64) * len(batch) + pairs.event)
    numbers, counts = np.unique(each // len(batch), return_counts=True)
    return index.subscriptions.id_list(numbers[counts == len(batch)].tolist())


def live_and_valid(batch: Batch, index: Snapshot, pairs: Pairs) -> Pairs:
    """The pairs of subscriptions that were not removed, and are valid at the time of the event."""
    if index.subscriptions.all_live and not index.subscriptions.some_end:
        return pairs
    keep = index.subscriptions.is_live(pairs.subscription)
    if index.subscriptions.some_end:
        keep = keep & (index.subscriptions.valid_until(pairs.subscription) >= batch.times[pairs.event])
    return pairs if keep.all() else pairs.take(keep)


def one_answer_each(batch: Batch, index: Snapshot, pairs: Pairs) -> Pairs:
    """One pair for every event and subscription: a match comes before what is undecided, and then the first found.

    With all bindings, every binding is an answer. A way without bindings is one if no other has matched before, and a
    pattern that ran out of steps if no way of another kind has an answer.
    """
    if batch.every:
        return _every_binding(batch, index, pairs)
    if index.several is None and not index.finds_several:
        return pairs
    bound = pairs.binding >= 0 if index.finds_several else False
    several = np.flatnonzero(index.has_several(pairs.subscription) | bound)
    key = pairs.key[several]
    order = np.lexsort((_rank(batch, pairs)[several], key))
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = key[order][1:] != key[order][:-1]
    keep = np.ones(len(pairs), dtype=np.bool_)
    keep[several[order[~first]]] = False
    return pairs.take(keep)


def _every_binding(batch: Batch, index: Snapshot, pairs: Pairs) -> Pairs:
    mixed = np.flatnonzero(index.is_mixed(pairs.subscription))
    if not len(mixed):
        return pairs
    rank, at = _rank(batch, pairs)[mixed], np.arange(len(mixed))
    keys, of = np.unique(pairs.key[mixed], return_inverse=True)
    best, first = np.full(len(keys), 3), np.full(len(keys), len(mixed))
    np.minimum.at(best, of, rank)
    np.minimum.at(first, of[rank == 0], at[rank == 0])
    plain = (rank == 0) & (pairs.binding[mixed] < 0)
    drop = (plain & (first[of] < at)) | ((rank == 2) & (best[of] < 2))
    keep = np.ones(len(pairs), dtype=np.bool_)
    keep[mixed[drop]] = False
    return pairs.take(keep)


def _rank(batch: Batch, pairs: Pairs) -> np.ndarray:
    """0 for a match, 1 for what a checker could not decide, 2 for what a finder could not."""
    return np.where(pairs.doubt < 0, 0, np.where(pairs.doubt < batch.finders_doubts, 2, 1))


def notifications(batch: Batch, index: Snapshot, pairs: Pairs) -> Iterator[pa.Table]:
    """The pairs as notifications, in a table for each source of bindings."""
    remarks = index.remarks(batch, pairs)
    for where, source, numbers in batch.bindings.split(pairs.binding):
        yield _table(batch, index, pairs.take(where), _remarked(source.texts(numbers), where, remarks))
    plain = pairs.binding < 0
    if plain.any():
        rest = pairs if plain.all() else pairs.take(plain)
        bindings = _no_bindings(len(rest))
        yield _table(batch, index, rest, _remarked(bindings, np.flatnonzero(plain), remarks))


def _remarked(
    bindings: pa.MapArray, positions: np.ndarray, remarks: Mapping[int, Mapping[str, str]]
) -> pa.MapArray:
    """The bindings of the pairs at these positions, with what checkers say about them."""
    if not remarks:
        return bindings
    said = [remarks.get(position, {}) for position in positions.tolist()]
    rows = zip(bindings.to_pylist(), said, strict=True)
    return pa.array([[*bound, *remark.items()] for bound, remark in rows], BINDINGS)


def _table(batch: Batch, index: Snapshot, pairs: Pairs, bindings: pa.MapArray) -> pa.Table:
    rows = pa.array(pairs.event)
    columns = {
        "subscription": index.subscriptions.ids(pairs.subscription),
        "source": batch.texts("source").take(rows),
        "event": batch.texts("id").take(rows),
        "verdict": pa.repeat("match", len(pairs)),
        "bindings": bindings,
    }
    doubtful = pairs.doubt >= 0
    if doubtful.any():
        columns["verdict"] = pa.array(["match", "undecided"]).take(pa.array(doubtful.astype(np.int8)))
        messages = pa.array([*batch.messages, None], pa.string())
        columns["message"] = messages.take(pa.array(np.where(doubtful, pairs.doubt, len(batch.messages))))
    return to_table(columns)


def _no_bindings(count: int) -> pa.MapArray:
    nothing = pa.array([], BINDINGS.key_type), pa.array([], BINDINGS.item_type)
    return pa.MapArray.from_arrays(pa.array(np.zeros(count + 1, dtype=np.int32)), *nothing)


def match_one(batch: Batch, index: Snapshot, source: str, event: str) -> list[Notification]:
    """The notifications of a batch of one event, for an index that `is_plain`: without the columns around them.

    A batch pays for its tables once for thousands of events; an event that comes by itself would wait for them longer
    than for its matches.
    """
    pairs = matched(batch, index)
    ids, remarks = index.subscriptions.id_list(pairs.subscription.tolist()), index.remarks(batch, pairs)
    return [Notification(id, source, event, "match", remarks.get(i, {})) for i, id in enumerate(ids)]
