"""What tokens with a scope may ask for: only what is contained in it.

A scope is the text of a subscription. Whatever such a token subscribes to must be contained in it (containment/contains.py), so
it gets no event that the scope would not get. Events that are shown beside subscriptions, such as the latest ones, are those
that match the scope; rows of tables are not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tidings.containment.contains import contains
from tidings.engine.engine import Engine
from tidings.errors import SubscriptionError
from tidings.language.parser import parse
from tidings.model.event import Event, to_table
from tidings.service.model import Principal
from tidings.service.subscriptions.access_control import AccessControl, Forbidden

_Item = TypeVar("_Item")


class Scopes:
    """Checks texts and events against the scopes of tokens. `engine` gives the present definitions. Thread-safe."""

    def __init__(self, access: AccessControl, engine: Callable[[], Engine]) -> None:
        self._access, self._engine = access, engine

    def check(self, principal: Principal, text: str) -> None:
        """Refuses a valid text that may match an event outside the token's scope."""
        if not (scope := self._access.scope(principal)):
            return
        engine = self._engine()
        if not contains(parse(scope, engine.prefixes), parse(text, engine.prefixes), engine.taxonomy):
            raise Forbidden(
                f"the token {principal.name!r} may only ask for what is contained in: {scope}; add these conditions to the"
                " text"
            )

    def need_all(self, principal: Principal) -> None:
        """Refuses a token that has a scope."""
        if scope := self._access.scope(principal):
            raise Forbidden(
                f"the token {principal.name!r} sees only events that match: {scope}; use a token without a scope"
            )

    def visible(
        self, principal: Principal, items: Sequence[_Item], event: Callable[[_Item], Event]
    ) -> Sequence[_Item]:
        """Those of the items whose events match the token's scope."""
        if not items or not (scope := self._access.scope(principal)):
            return items
        given = self._engine()
        probe = Engine(taxonomy=given.taxonomy, prefixes=given.prefixes)
        probe.subscribe("scope", scope)
        found = probe.match(to_table([event(one) for one in items]).combine_chunks().to_batches()[0])
        matched = set(zip(found.column("source").to_pylist(), found.column("event").to_pylist(), strict=True))
        return [one for one in items if (event(one).source, event(one).id) in matched]


def check_scope(scope: str) -> str:
    """A scope as it is stored; SubscriptionError for a text that is none."""
    scope = " ".join(scope.split())
    if scope:
        try:
            parse(scope)
        except SubscriptionError as error:
            raise SubscriptionError(
                f"the scope cannot be read: {error}; write it like a subscription"
            ) from None
    return scope
