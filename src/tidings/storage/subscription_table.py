"""Builds an index of a table of subscriptions, with the columns `id` and `text`, of any order.

What cannot be a subscription is returned with the reason, and the others are used. Which of two rows comes first is not known of
a table that several processes have made: of different texts under one id none is used.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from tidings.containment import forest
from tidings.engine.contracts import Kind
from tidings.engine.engine import BroadSubscription, EmptySubscription, Engine
from tidings.errors import SubscriptionError, check_columns
from tidings.kinds.operators.functions.operator import Operator
from tidings.storage import versions
from tidings.storage.division import MAX_PARTS, Placement, size_of

Refused = list[tuple[str | None, str]]


def check_subscription_columns(names: list[str]) -> None:
    """Refuses a table that is none of subscriptions."""
    check_columns(names, "the subscriptions have", SubscriptionError)
    for name in ("id", "text"):
        if name not in names:
            raise SubscriptionError(
                f"the subscriptions have no column {name!r}; give the columns id and text, of which there"
                f" are {', '.join(names) or 'none'}"
            )


def publish_table(
    root: Path,
    table: pa.Table,
    *,
    operators: Iterable[Operator] = (),
    kinds: Iterable[Kind] = (),
    memory: int | None = None,
    forest: Callable[[Engine], np.ndarray] = forest.parents,
) -> Refused:
    """Writes the index to a folder; returns ids and reasons of what it does not have. It is divided if it would need more
    than `memory` bytes as a whole, by what `forest` gives for it."""
    check_subscription_columns(table.column_names)
    columns = (table[name].cast(pa.string()).to_pylist() for name in ("id", "text"))
    texts, refused = texts_by_id(zip(*columns, strict=True))
    engine = Engine(operators=operators, kinds=kinds)
    with unwarned():
        refused += [(id, str(error)) for id, error in engine.subscribe_many(texts.items())]
    version = versions.publish(root, engine)
    size = size_of(root / f"v{version.base}")
    if memory is not None and size > memory:
        # The front has its share, and vocabularies of parts overlap.
        parts = min(MAX_PARTS, 2 * math.ceil(size / memory))
        versions.publish(
            root, engine, placement=Placement("auto", parts), parents=forest(engine), memory=memory
        )
        versions.drop(root)  # the whole one would be sent to workers too
    return refused


@contextmanager
def unwarned() -> Iterator[None]:
    """Suppresses warnings of broad and empty subscriptions: nobody reads them among millions."""
    with warnings.catch_warnings():
        for remark in (BroadSubscription, EmptySubscription):
            warnings.simplefilter("ignore", remark)
        yield


def texts_by_id(rows: Iterable[tuple[str | None, str | None]]) -> tuple[dict[str, str], Refused]:
    """The texts to use, and what cannot be used."""
    texts, refused, ambiguous = dict[str, str](), Refused(), set[str]()
    for id, text in rows:
        if not id:
            refused.append((id, "a subscription has no id; give each row one of its own"))
        elif texts.setdefault(id, text or "") != (text or ""):
            ambiguous.add(id)
    for id in sorted(ambiguous):
        del texts[id]
        refused.append(
            (id, "there are different texts under this id, and none is used; give each an id of its own")
        )
    return texts, refused
