"""Parses the tables of a query, `FROM a JOIN b USING (x) JOIN c ON a.y = c.z`, and explains joins that are not supported.

The words of a join are keywords only after a table; elsewhere they are names. The language does not know which tables
and columns exist.
"""

from __future__ import annotations

from typing import NoReturn

from tidings.language.faults import quoted
from tidings.language.query import Attribute, JoinedTable
from tidings.language.syntax.calls import CallParser
from tidings.language.syntax.operands import BONDS, NAMES, VALUES
from tidings.language.syntax.tokens import WORDS

MAX_TABLES = 8
_CONDITIONS = frozenset({"ON", "USING", "USING_LIST"})
_OTHER_JOINS = frozenset("LEFT RIGHT FULL OUTER CROSS NATURAL SEMI ANTI".split())
_BEHIND_ALIAS = _CONDITIONS | {"JOIN", "INNER"}
_BEYOND = {
    **dict.fromkeys(("GROUP", "ORDER"), " BY"),
    **dict.fromkeys(("HAVING", "LIMIT", "OFFSET", "FETCH", "UNION", "EXCEPT", "INTERSECT", "WINDOW"), ""),
}
_INNER_ONLY = "only inner joins can be subscribed to"
_INNER_JOINS = f"{_INNER_ONLY}: write JOIN b USING (column, ...) or JOIN b ON a.x = b.y"


class TableParser(CallParser):
    """Parses the tables after FROM."""

    _joins = False

    def _tables(self) -> tuple[str, tuple[JoinedTable, ...]]:
        """The first table, or the stream of events, and the tables joined to it."""
        tables = [self._name()]
        joined: list[JoinedTable] = []
        self._check_alias(tables[0])
        while self._takes_join():
            self._joins = True
            at = self.at
            is_word = self.kinds[at] in WORDS and self.kinds[at + 1] not in _CONDITIONS
            if is_word or self.kinds[at] not in NAMES:
                self._fail("TABLE")
            name = self._name()
            if name in tables:
                advice = "each table can be in a subscription once"
                self._refuse(at, f"the table {quoted(name)} stands here again", advice)
            if len(tables) == MAX_TABLES:
                advice = f"at most {MAX_TABLES} are joined; make two subscriptions of it"
                self._refuse(
                    at, f"{quoted(name)} is table number {MAX_TABLES + 1} of the subscription", advice
                )
            tables.append(name)
            self._check_alias(name)
            if self._takes("USING_LIST"):
                joined.append(JoinedTable(name, using=self._columns()))
            elif self._takes("ON"):
                joined.append(JoinedTable(name, on=self._equalities()))
            elif self._takes("USING"):
                self._refuse_columns()
            else:
                self._fail("USING", "ON")
        return tables[0], tuple(joined)

    def _takes_join(self) -> bool:
        if self._takes("INNER"):
            if not self._takes("JOIN"):
                self._fail("JOIN")
            return True
        if self.kinds[self.at] == "COMMA":
            self._refuse(self.at, "found ',' between tables", _INNER_JOINS)
        word = self.tokens[self.at].upper()
        if self.kinds[self.at] == "NAME" and word in _OTHER_JOINS:
            self._refuse(self.at, f"{word} JOIN is not understood", _INNER_JOINS)
        return self._takes("JOIN")

    def _check_alias(self, table: str) -> None:
        """Refuses `stocks s` and `stocks AS s`."""
        kind, then = self.kinds[self.at : self.at + 2]
        if kind == "NAME" and (self.tokens[self.at].upper() == "AS" or then in _BEHIND_ALIAS):
            if self.tokens[self.at].upper() in _OTHER_JOINS:
                return
            advice = f"a table has no second name here; its columns are written {table}.column"
            self._refuse(self.at, f"found {quoted(self.tokens[self.at])}", advice)

    def _columns(self) -> tuple[str, ...]:
        """The columns of USING, whose parenthesis is open."""
        found: dict[str, None] = {}
        while True:
            at = self.at
            token = self.tokens[at]
            if self.kinds[at] not in NAMES:
                self._fail("COLUMN")
            name = self._name()
            if "." in token and token[0] != "`":
                advice = f"a column of USING is in both tables: write {token.rpartition('.')[2]}"
                self._refuse(at, f"{quoted(token)} has a table before the column", advice)
            if name in found:
                self._refuse(at, f"the column {quoted(name)} stands twice in USING", "once is enough")
            found[name] = None
            if self._takes("RPAR"):
                return tuple(found)
            if not self._takes("COMMA"):
                self._fail("RPAR", "COMMA")

    def _refuse_columns(self) -> NoReturn:
        """The error for USING without its parenthesis."""
        if self.kinds[self.at] not in NAMES - WORDS:
            self._fail("LPAR")
        token = self.tokens[self.at]
        self._refuse(self.at, f"found {quoted(token)}", f"the columns stand in parentheses: USING ({token})")

    def _equalities(self) -> tuple[tuple[Attribute, Attribute], ...]:
        """Parses the equalities after ON; parentheses around any of them are allowed."""
        found = []
        opened = 0
        while True:
            while self._takes("LPAR"):
                opened += 1
            left = self._column()
            if self.tokens[self.at] != "=":
                self._refuse_equality()
            self.at += 1
            found.append((left, self._column()))
            while opened and self._takes("RPAR"):
                opened -= 1
            if self._takes("AND"):
                continue
            if self.kinds[self.at] in ("OR", "COMPARE", *BONDS):
                self._refuse_equality()
            if opened:
                self._fail("RPAR", "AND")
            return tuple(found)

    def _column(self) -> Attribute:
        """One side of an equality."""
        kind, then = self.kinds[self.at : self.at + 2]
        if kind in VALUES or kind == "QUANTITY":
            advice = "ON compares columns; a comparison with a constant belongs behind WHERE"
            self._refuse(self.at, f"found {quoted(self.tokens[self.at])}", advice)
        if kind not in NAMES or (kind in ("NOT", "EXISTS", "MISSING") and then in NAMES):
            self._refuse_equality()
        return Attribute(self._name())

    def _refuse_equality(self) -> NoReturn:
        if self.tokens[self.at] in ("", "="):
            self._fail("EQUALITY")
        advice = "tables are joined where columns are equal, as in ON a.x = b.y AND a.z = b.z"
        self._refuse(self.at, f"found {quoted(self.tokens[self.at])}", advice)

    def _fail(self, *acceptable: str) -> NoReturn:
        word = self.tokens[self.at].upper()
        if self._joins and self.kinds[self.at] == "NAME" and word in _BEYOND:
            what = f"{word}{_BEYOND[word]} is not understood"
            self._refuse(self.at, what, f"{_INNER_ONLY}, with conditions behind WHERE; leave it out")
        if self.kinds[self.at] in ("INNER", "JOIN") and "MORE" in acceptable:
            self._refuse(
                self.at, f"found {quoted(word)} behind the conditions", "FROM and JOIN stand before WHERE"
            )
        if self.kinds[self.at] == "USING_LIST" and "CONDITION" in acceptable:
            advice = "it stands behind JOIN and a table; an operator of this name is written `using`(...)"
            self._refuse(self.at, "found 'USING (' where a condition begins", advice)
        super()._fail(*acceptable)
