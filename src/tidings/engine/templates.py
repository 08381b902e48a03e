"""A text with `$parameters` and a table with a column for each: a subscription a row."""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np

from tidings.language.parameters import substitute
from tidings.language.printer import term_text, to_text
from tidings.language.query import Parameter, Query
from tidings.model.terms import from_ntriples


class Template:
    """The subscriptions of one table, of which the first has the number `first`."""

    def __init__(
        self, query: Query, ids: list[str], columns: dict[str, tuple[np.ndarray, list[str]]]
    ) -> None:
        self.query, self.ids, self.columns = query, ids, columns
        self.first = 0

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def _pieces(self) -> list[str]:
        """The text, cut at its parameters: fixed text, name, fixed text, name, …"""
        marked = {name: Parameter(f"\0{name}\0") for name in self.columns}
        return re.split("\\$\0([^\0]*)\0", to_text(substitute(self.query, marked)))  # type: ignore[arg-type]

    def text(self, row: int) -> str:
        """The subscription of one row, written out: constants in N-Triples form are constants of the language, but
        for some escapes."""
        pieces = list(self._pieces)
        for i in range(1, len(pieces), 2):
            codes, texts = self.columns[pieces[i]]
            text = texts[codes[row]]
            pieces[i] = term_text(from_ntriples(text)) if "\\" in text else text  # type: ignore[arg-type]
        return "".join(pieces)
