"""The outcome of an operator for one event: rows of bindings, or the error that makes it unknown.

No rows is false, one empty row is true; an error makes the evaluation *unknown*, never true or false. Every answer of a
function is converted to an outcome here, and bound values are checked against its types.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from itertools import islice
from types import GeneratorType
from typing import Any, NamedTuple

from tidings.kinds.operators.functions.operator import Operator

MAX_ROWS = 10_000
_LONGEST_TEXT = 300


class Outcome(NamedTuple):
    """`rows` holds a value for each Out of the operator, in order; `error` is not None if nothing is known."""

    rows: tuple[tuple[Any, ...], ...] = ()
    error: str | None = None

    @classmethod
    def of(cls, operator: Operator, answer: Any) -> Outcome:
        """The outcome that a function's answer stands for; a generator is run to its end here, and may raise."""
        if answer is False or (answer is None and operator.outs):
            return FALSE
        if answer is True and not operator.outs:
            return TRUE
        try:
            return cls._read(operator, answer)
        except UnusableAnswer as error:
            return cls.unusable(operator, error)

    @classmethod
    def failure(cls, operator: Operator, error: BaseException) -> Outcome:
        """The outcome of a function that raised."""
        try:
            text = str(error)
        except Exception:
            text = ""
        what = type(error).__name__ + (f": {text}" if text else "")
        return cls(error=_one_line(f"{operator.name} failed: {what}"))

    @classmethod
    def unusable(cls, operator: Operator, error: UnusableAnswer) -> Outcome:
        """The outcome of a function whose answer cannot be used."""
        return cls(error=_one_line(f"{operator.name} {error}"))

    @classmethod
    def timed_out(cls, operator: Operator) -> Outcome:
        """The outcome of a function that took longer than it may."""
        return cls(error=f"{operator.name} took longer than its timeout of {operator.timeout:g} s")

    @classmethod
    def _read(cls, operator: Operator, answer: Any) -> Outcome:
        if _is_numpy(answer) and isinstance(answer.tolist(), bool):
            return cls.of(operator, answer.tolist())
        if answer is True:
            names = ", ".join(parameter.name for parameter in operator.outs)
            raise UnusableAnswer(f"returned True, but binds {names}; yield its bindings, or return False")
        accepted = operator.accepted
        if not accepted or (type(answer) not in _COLLECTIONS and not _is_collection(answer)):
            needed = "yield its bindings, or return False" if accepted else "return True or False"
            if hasattr(answer, "__await__"):
                needed = "write it as async def"
                if hasattr(answer, "close"):
                    answer.close()
            raise UnusableAnswer(f"returned {answer!r:.80}; {needed}")
        bindings = islice(answer, MAX_ROWS + 1)
        if len(accepted) == 1:
            kinds = accepted[0]
            rows = [(_value(operator, 0, kinds, value),) for value in bindings]
        else:
            rows = [_row(operator, accepted, row) for row in bindings]
        if len(rows) > MAX_ROWS:
            raise UnusableAnswer(f"yielded more than {MAX_ROWS:,} bindings; make it stop")
        return cls(tuple(rows))


_TO_LOOK_AT = frozenset({float, Decimal, str})
_COLLECTIONS = frozenset({list, tuple, set, frozenset, GeneratorType})
TRUE = Outcome(((),))
FALSE = Outcome()


class UnusableAnswer(Exception):
    """An answer that is neither true, false nor bindings; the text continues after the operator's name."""


def _one_line(text: str) -> str:
    """A message on one line with bounded length, because an error may repeat any input."""
    text = " ".join(text[: 2 * _LONGEST_TEXT].split())
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 2] + " …"


def _row(operator: Operator, accepted: tuple[tuple[type, ...], ...], row: Any) -> tuple[Any, ...]:
    if not isinstance(row, tuple | list) or len(row) != len(accepted):
        names = ", ".join(parameter.name for parameter in operator.outs)
        raise UnusableAnswer(f"yielded {row!r:.80}; yield tuples of {names}")
    return tuple(_value(operator, position, kinds, row[position]) for position, kinds in enumerate(accepted))


def _value(operator: Operator, position: int, accepted: tuple[type, ...], value: Any) -> Any:
    """A value that is bound, as a plain one."""
    kind = type(value)
    if kind in accepted and kind not in _TO_LOOK_AT:
        return value
    if kind not in accepted:
        if _is_numpy(value):
            value = value.tolist()
        if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):
            raise UnusableAnswer(f"yielded {value!r:.80}; yield values for {operator.outs[position]}")
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        raise UnusableAnswer(f"yielded {value!r}; yield finite numbers for {operator.outs[position]}")
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise UnusableAnswer(
                f"yielded {value!r:.80}, which has half a surrogate pair in it; correct its Unicode"
            ) from None
    return value


def _is_collection(answer: Any) -> bool:
    return isinstance(answer, Iterable) and not isinstance(answer, str | bytes | bytearray | Mapping)


def _is_numpy(value: Any) -> bool:
    """Whether it is a number or truth value of NumPy, which models answer with."""
    return type(value).__module__ == "numpy" and getattr(value, "shape", None) == ()
