"""Between a query with constants and a query with `$parameters` in their places.

`lift` takes the constants out, `substitute` puts constants in: they undo each other. The order of constants is
that of the tree from left to right, which is the order in which they stand in the text. A regular expression is
no constant here, because it is checked and compiled when the text is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tidings.errors import SubscriptionError
from tidings.language.query import (
    And,
    Between,
    Comparison,
    Condition,
    Constant,
    IsA,
    Not,
    OneOf,
    Or,
    Parameter,
    Query,
    TextTest,
    TriplePattern,
)
from tidings.terms import Iri, Literal

Replace = Callable[[Any], Any]


def lift(query: Query) -> tuple[Query, tuple[Iri | Literal, ...]]:
    """`query` with parameters 0, 1, … for its constants, and the constants."""
    constants: list[Iri | Literal] = []

    def number(term: Any) -> Any:
        if not isinstance(term, Iri | Literal):
            return term
        constants.append(term)
        return Parameter(str(len(constants) - 1))

    lifted = Query(_rebuilt(query.where, number), query.select, query.stream)
    return lifted, tuple(constants)


def substitute(query: Query, values: Mapping[str, Iri | Literal]) -> Query:
    """`query` with the constants of `values` for its parameters; parameters without a value stay."""

    def fill(term: Any) -> Any:
        return values.get(term.name, term) if isinstance(term, Parameter) else term

    return Query(_rebuilt(query.where, fill), query.select, query.stream)


def parameters(query: Query) -> tuple[str, ...]:
    """The names of the parameters in the order in which they first appear."""
    names: dict[str, None] = {}

    def note(term: Any) -> Any:
        if isinstance(term, Parameter):
            names[term.name] = None
        return term

    _rebuilt(query.where, note)
    return tuple(names)
