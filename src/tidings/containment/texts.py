"""Containment for users: of subscriptions as texts, with an event as counterexample where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tidings.containment import contains as queries
from tidings.containment.contains import Containment
from tidings.containment.counterexample import counterexample
from tidings.errors import SubscriptionError
from tidings.language.parameters import check_constants
from tidings.language.parser import parse
from tidings.language.query import Query
from tidings.model.taxonomy import Taxonomy


def contains(
    a: str | Query,
    b: str | Query,
    *,
    taxonomy: Taxonomy | None = None,
    prefixes: Mapping[str, str] | None = None,
) -> Containment:
    """Whether every event that matches the subscription `b` also matches `a`: then `b` adds nothing to `a`.

    The answer is true or false in a condition. Its `mapping` proves a yes; its `counterexample`, an event that matches `b` and
    not `a`, proves a no. A no without one means that it is not certain (`is_certain`).
    """
    taxonomy = Taxonomy() if taxonomy is None else taxonomy
    wider, narrower = (_query(text, which, prefixes) for text, which in ((a, "first"), (b, "second")))
    found = queries.contains(wider, narrower, taxonomy)
    if found.holds:
        return found
    return replace(found, counterexample=counterexample(wider, narrower, taxonomy))


def _query(given: str | Query, which: str, prefixes: Mapping[str, str] | None) -> Query:
    try:
        query = given if isinstance(given, Query) else parse(given, prefixes)
        check_constants(query)
    except SubscriptionError as error:
        raise SubscriptionError(f"the {which} subscription: {error}") from None
    return query
