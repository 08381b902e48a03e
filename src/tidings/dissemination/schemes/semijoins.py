"""The semijoin schemes: Enum-SJ, and Ref-SJ with its four skylines. Select-joins, 3 and 4.

A subscription is decomposed into semijoins, one for each of its tables. A row inserted into R is sent to the R^S-
semijoins that it affects, and exposes joining rows of S to those S^R-semijoins that had no other row of R to join
them with. All semijoins of one form are a group and are processed together, whatever joins they come from.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from tidings.dissemination.schemes import skylines
from tidings.dissemination.schemes.message import Bounds, Image, Longs, Message, Skyline
from tidings.dissemination.schemes.ordered_rows import JoinValueRows
from tidings.dissemination.schemes.pairs import RangePairs
from tidings.dissemination.schemes.scheme import Scheme
from tidings.dissemination.schemes.server import Step
from tidings.dissemination.schemes.signature import Semijoin


class Semijoins(Scheme):
    """Sends the changed row to the semijoins that it affects, and joining rows to those that they are exposed to."""

    def step(self, step: Step) -> list[Message]:
        # Subscriptions to one table alone have nothing to be filtered by.
        alone = dict.fromkeys(population.signature for population in self.server.populations)
        found = [
            Message(signature, (step.image,), step.sign, step.image.size)
            for signature in alone
            if signature.tables == (step.image.table,)
        ]
        for form, pairs in self.server.groups.items():
            base, filtering = self.server.rows(form.base), self.server.rows(form.filtering)
            if form.base.table == step.image.table:
                joining = filtering.joining(step.image, form.base.join)
                if joining.images:
                    found.extend(self.affected(form, pairs, step, base.at(step.image), joining))
            elif form.filtering.table == step.image.table:
                joining = base.joining(step.image, form.filtering.join)
                if joining.images:
                    at = filtering.at(step.image)
                    near = filtering.joining(step.image, form.filtering.join).around(at)
                    found.extend(self.exposed(form, pairs, step, joining, Bounds(at, *near)))
        return found

    @abstractmethod
    def affected(
        self, form: Semijoin, pairs: RangePairs, step: Step, at: int, joining: JoinValueRows
    ) -> Iterator[Message]:
        """The row of R, to the R^S-semijoins that it affects; rows of S that join it are `joining`. 3.1.1, 3.2.1."""

    @abstractmethod
    def exposed(
        self, form: Semijoin, pairs: RangePairs, step: Step, joining: JoinValueRows, bounds: Bounds
    ) -> Iterator[Message]:
        """Rows of R, to the R^S-semijoins that a row of S exposes them to; they are among `joining`. 3.1.2, 3.2.2."""


class EnumSJ(Semijoins):
    """The subscriptions are found, and each is sent its rows."""

    name: ClassVar[str] = "Enum-SJ"

    def affected(
        self, form: Semijoin, pairs: RangePairs, step: Step, at: int, joining: JoinValueRows
    ) -> Iterator[Message]:
        found = pairs.affected(at, distinct(joining.keys))
        if len(found):
            yield Message(form, (step.image,), step.sign, step.image.size, pairs.owners(found))

    def exposed(
        self, form: Semijoin, pairs: RangePairs, step: Step, joining: JoinValueRows, bounds: Bounds
    ) -> Iterator[Message]:
        found = pairs.exposed(bounds)
        owners, ranges = pairs.owners(found), pairs.base(found)
        for image, targets in each_row(joining, owners, *ranges):
            yield Message(form, (image,), step.sign, image.size, targets)


class RefSJ(Semijoins):
    """Describes the subscriptions: one message for the row itself, one for each row that is exposed to some subscription."""

    @abstractmethod
    def skyline(self, pairs: RangePairs, at: int, values: Longs) -> Longs:
        """Points that describe the affected pairs."""

    def affected(
        self, form: Semijoin, pairs: RangePairs, step: Step, at: int, joining: JoinValueRows
    ) -> Iterator[Message]:
        described = Skyline(self.skyline(pairs, at, distinct(joining.keys)))
        if len(described.points):
            size = step.image.size + described.size
            yield Message(form, (step.image,), step.sign, size, description=described)

    def exposed(
        self, form: Semijoin, pairs: RangePairs, step: Step, joining: JoinValueRows, bounds: Bounds
    ) -> Iterator[Message]:
        found = pairs.exposed(bounds)
        if len(found):
            for index in np.flatnonzero(pairs.held(found, joining.keys)).tolist():
                image = joining.images[index]
                yield Message(form, (image,), step.sign, image.size + bounds.size, description=bounds)


class RefSJSub(RefSJ):
    name: ClassVar[str] = "Ref-SJ-Sub"

    def skyline(self, pairs: RangePairs, at: int, values: Longs) -> Longs:
        return skylines.minimum_area(pairs, at, values)


class RefSJTup(RefSJ):
    name: ClassVar[str] = "Ref-SJ-Tup"

    def skyline(self, pairs: RangePairs, at: int, values: Longs) -> Longs:
        return skylines.joining_tuples(pairs, at, values)


class RefSJClu(RefSJ):
    name: ClassVar[str] = "Ref-SJ-Clu"

    def skyline(self, pairs: RangePairs, at: int, values: Longs) -> Longs:
        return skylines.clusters(pairs, at, values)


class RefSJCluPlus(RefSJ):
    name: ClassVar[str] = "Ref-SJ-Clu+"

    def skyline(self, pairs: RangePairs, at: int, values: Longs) -> Longs:
        return skylines.improved_clusters(pairs, at, values)


def distinct(keys: Longs) -> Longs:
    """Rising keys, each once."""
    changes = np.empty(len(keys), dtype=np.bool_)
    changes[:1] = True
    np.not_equal(keys[1:], keys[:-1], out=changes[1:])
    return keys[changes]


def each_row(
    rows_of_value: JoinValueRows, owners: Longs, low: Longs, high: Longs
) -> Iterator[tuple[Image, Longs]]:
    """The rows of a join value that the range of some owner holds, each with those owners."""
    keys = rows_of_value.keys
    first, last = keys.searchsorted(low), keys.searchsorted(high, "right")
    counts = last - first
    indexes = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    order = np.argsort(indexes, kind="stable")
    repeated, indexes = np.repeat(owners, counts)[order], indexes[order]
    starts = np.flatnonzero(np.diff(indexes, prepend=-1))
    ends = np.append(starts[1:], len(indexes))
    for begin, end in zip(starts.tolist(), ends[: len(starts)].tolist(), strict=True):
        yield rows_of_value.images[indexes[begin]], repeated[begin:end]
