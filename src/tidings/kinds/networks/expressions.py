"""Numbers the expressions of a network, each distinct text once.

They are kept as texts, because a million conditions as trees would take too much memory. A text is parsed when it is
added, so that an invalid one is refused with the name of its node or edge. Of the newest, which no index covers yet, the
shape and the constants are kept, so that walking a network parses nothing.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from functools import lru_cache
from typing import Any

from tidings.errors import SubscriptionError
from tidings.kinds.filters.shape import FilterShape, compile_filter
from tidings.kinds.filters.table import FilterTable
from tidings.kinds.networks.faults import NetworkError
from tidings.language.parameters import parameters, substitute
from tidings.language.parser import parse
from tidings.language.printer import condition_text
from tidings.language.query import Condition, IsA, Query, TriplePattern, leaves, variables
from tidings.language.shapes import Shapes
from tidings.model.terms import from_ntriples

NONE = -1
_RECENT = 10_000
_WHERE = re.compile(r"\s*WHERE\b", re.IGNORECASE)


class Expressions:
    """Expression i is texts[i], and row i of `table`."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.texts: list[str] = []
        self.table = FilterTable()
        self._reader = Shapes()
        self._shapes: dict[Query, tuple[int, FilterShape]] = {}
        self._recent: OrderedDict[int, tuple[Query, tuple[str, ...]]] = OrderedDict()

    def __len__(self) -> int:
        return len(self.texts)

    def number(self, where: str | Condition | None, location: object) -> int:
        """The number of an expression of a node or an edge, `NONE` if every event is accepted there."""
        if where is None:
            return NONE
        text = where if isinstance(where, str) else condition_text(where)
        number = self.numbers.get(text)
        if number is None:
            self._file(text, location)
            number = self.numbers[text] = len(self.texts)
            self.texts.append(text)
        return number

    def _file(self, text: str, location: object) -> None:
        try:
            query, constants = self._reader.read(statement(text))
            if not constants and (names := parameters(query)):
                raise NetworkError(
                    f"the expression of {location} has ${names[0]}, which has no value here; write a constant"
                )
            if query not in self._shapes:
                _check(query, location)
                shape = compile_filter(query.where)
                self._shapes[query] = self.table.add_shape(shape), shape
        except SubscriptionError as error:
            raise _unreadable(text, location, error) from None
        number, shape = self._shapes[query]
        values = dict(zip(map(str, range(len(constants))), constants, strict=True))
        self.table.add(number, shape.texts(values))
        self._recent[len(self.texts)] = query, constants
        if len(self._recent) > _RECENT:
            self._recent.popitem(last=False)

    def text(self, number: int) -> str | None:
        return None if number == NONE else self.texts[number]

    def condition(self, number: int) -> Condition:
        """What an expression says."""
        if number not in self._recent:
            return _condition(self.texts[number])
        query, constants = self._recent[number]
        values: dict[str, Any] = {str(i): from_ntriples(text) for i, text in enumerate(constants)}
        return substitute(query, values).where


def statement(text: str) -> str:
    """The expression as the parser takes it; its lines keep their columns."""
    return text if _WHERE.match(text) else f"WHERE\n{text}"


def read_condition(text: str, location: object) -> Condition:
    """The condition that a text states; a `NetworkError` names the node or edge that has it."""
    try:
        query = parse(statement(text))
    except SubscriptionError as error:
        raise _unreadable(text, location, error) from None
    _check(query, location)
    return query.where


@lru_cache(10_000)
def _condition(text: str) -> Condition:
    return parse(statement(text)).where


def _unreadable(text: str, location: object, error: SubscriptionError) -> NetworkError:
    line, column, message = error.line, error.column, str(error)
    if line is not None and statement(text) is not text:
        message = message.replace(f" at {line}:{column}", f" at {line - 1}:{column}")
    return NetworkError(f"the expression of {location} cannot be read: {message}")


def _check(query: Query, location: object) -> None:
    """Refuses a query that is not only a condition on attributes."""
    if query.select is not None or query.stream is not None or query.via is not None:
        raise NetworkError(f"the expression of {location} is a whole subscription; give its condition only")
    if variables(query.where) or any(isinstance(leaf, TriplePattern | IsA) for leaf in leaves(query.where)):
        raise NetworkError(
            f"the expression of {location} has a graph pattern; a network decides by attributes, such as topic = 'x'"
        )
