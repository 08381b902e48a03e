"""Reads the signature of an operator's function: the event, then inputs, and `Out` parameters that it binds.

    def mobPattern(event, district: str, people: Out[int]): ...

Types are the plain ones that a value of Tidings can have; without one, anything goes. An input reaches the function
as a value of its type: a number written in a subscription, or read from a triple, is then an `int` or a `float`.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Generic, TypeVar

from tidings.errors import TidingsError
from tidings.formats.namespaces import XSD
from tidings.model.terms import Blank, Iri, Literal, plain
from tidings.model.values import BOOLEAN, INSTANT, NUMBER, RESOURCE, TEXT, View, views

T = TypeVar("T")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INEXACT = frozenset({XSD + "decimal", XSD + "float", XSD + "double"})

_UNREADABLE: View = ("", None)


class OperatorError(TidingsError):
    """An operator with an invalid signature or settings, or one that cannot be loaded."""


class Out(Generic[T]):
    """Marks a parameter that the operator binds: `people: Out[int]`. It only declares, and is given nothing."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<bound by the operator>"


@dataclass(frozen=True, slots=True)
class FunctionParameter:
    """A parameter after the event: an input, or one that the operator binds. No types means any."""

    name: str
    is_out: bool = False
    types: tuple[type, ...] = ()

    def __str__(self) -> str:
        named = " | ".join(kind.__name__ for kind in self.types)
        if self.is_out:
            named = f"Out[{named}]" if named else "Out"
        return f"{self.name}: {named}" if named else self.name

    def read(self, value: object) -> Any:
        """An input's constant, or the value of the variable there, as the function gets it; None if it cannot be."""
        if not self.types:
            return _natural(value)
        for kind in self.types:
            if (found := _READERS[kind](value)) is not None:
                return found
        return None

    @property
    def accepted(self) -> tuple[type, ...]:
        """The types of the values that an operator may bind it to."""
        return tuple(dict.fromkeys(kind for own in self.types or _BINDS for kind in _BINDS[own]))

    @property
    def kinds(self) -> frozenset[str] | None:
        """The kinds of constants (see `values`) that what it is bound to can equal; None for all of them."""
        if not self.types or Literal in self.types:
            return None
        return frozenset(kind for own in self.types for kind in _KINDS[own])


def read_signature(function: Callable[..., Any], name: str) -> tuple[FunctionParameter, ...]:
    """The parameters after the event; an `OperatorError` if a subscription could not call the function."""
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise OperatorError(
            f"the parameters of {name} cannot be read; write it as a def with its own"
        ) from None
    # One that is given by its name only and has a default, such as a model, is the operator's own affair.
    found = [
        parameter
        for parameter in found
        if parameter.kind is not parameter.KEYWORD_ONLY or parameter.default is parameter.empty
    ]
    for parameter in found:
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise OperatorError(
                f"{name} has the parameter {parameter.name!r}, which a subscription cannot give; "
                "write plain parameters, as in def near(event, place, metres)"
            )
    if not found:
        raise OperatorError(f"{name} has no parameters; its first is the event, as in def {name}(event)")
    scope = _scope(function)
    if _is_out(found[0].annotation):
        raise OperatorError(
            f"the first parameter of {name} is {found[0]}; the event comes first, as in def {name}(event, ...)"
        )
    return tuple(_parameter(parameter, name, scope) for parameter in found[1:])


def _scope(function: Callable[..., Any]) -> dict[str, Any]:
    """The names that annotations kept as texts may use."""
    plainest = inspect.unwrap(function)
    plainest = getattr(plainest, "__func__", getattr(plainest, "func", plainest))
    return {"Out": Out, **getattr(plainest, "__globals__", {})}


def _is_out(hint: object) -> bool:
    return hint is Out or typing.get_origin(hint) is Out or (isinstance(hint, str) and hint.startswith("Out"))


def _parameter(parameter: inspect.Parameter, name: str, scope: dict[str, Any]) -> FunctionParameter:
    hint = parameter.annotation
    if hint is parameter.empty:
        return FunctionParameter(parameter.name)
    if isinstance(hint, str):
        try:
            hint = eval(hint, scope)
        except Exception as error:
            raise OperatorError(
                f"the type {hint!r} of {name}'s {parameter.name} cannot be read ({error}); "
                "use names that the module knows"
            ) from None
    is_out = _is_out(hint)
    if is_out:
        hint = typing.get_args(hint)[0] if typing.get_args(hint) else Any
    return FunctionParameter(parameter.name, is_out, _types(hint, f"{name}'s {parameter.name}"))


def _types(hint: Any, what: str) -> tuple[type, ...]:
    if hint in (Any, object) or isinstance(hint, TypeVar):
        return ()
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        members = [_types(member, what) for member in typing.get_args(hint)]
        return () if () in members else tuple(kind for member in members for kind in member)
    if hint not in _READERS:
        shown = hint.__name__ if isinstance(hint, type) else str(hint)
        raise OperatorError(
            f"the type of {what} is {shown}; use {', '.join(kind.__name__ for kind in _READERS)}, or none"
        )
    return (hint,)


def _natural(value: object) -> Any:
    """A term as the plain value that it is written as; anything else as it is."""
    if isinstance(value, Literal) and value.datatype is not None and value.datatype != XSD + "string":
        kind, key = next(iter(views(value)), _UNREADABLE)
        if kind == NUMBER:
            return _float(value) if value.datatype in _INEXACT or key.denominator != 1 else int(key)
        if kind == INSTANT:
            return _date(value) if value.datatype == XSD + "date" else _datetime(value)
        if kind == BOOLEAN:
            return key
    return plain(value) if isinstance(value, Literal | Iri | Blank) else value


def _number(value: object) -> Fraction | None:
    return next((key for kind, key in views(value) if kind == NUMBER), None)


def _int(value: object) -> int | None:
    exact = _number(value)
    return int(exact) if exact is not None and exact.denominator == 1 else None


def _float(value: object) -> float | None:
    exact = _number(value)
    try:
        return None if exact is None else float(exact)
    except OverflowError:
        return None


def _decimal(value: object) -> Decimal | None:
    exact = _number(value)
    return None if exact is None else Decimal(exact.numerator) / Decimal(exact.denominator)


def _bool(value: object) -> bool | None:
    return next((key for kind, key in views(value) if kind == BOOLEAN), None)


def _str(value: object) -> str | None:
    if isinstance(value, Literal | Iri | Blank):
        return plain(value)
    return value if isinstance(value, str) else None


def _datetime(value: object) -> datetime | None:
    moment = next((key for kind, key in views(value) if kind == INSTANT), None)
    try:
        return None if moment is None else _EPOCH + timedelta(microseconds=moment)
    except OverflowError:
        return None


def _date(value: object) -> date | None:
    moment = _datetime(value)
    return None if moment is None else moment.date()


_READERS: dict[type, Callable[[object], Any]] = {
    int: _int,
    float: _float,
    str: _str,
    bool: _bool,
    date: _date,
    datetime: _datetime,
    Decimal: _decimal,
    Fraction: _number,
    Iri: lambda value: value if isinstance(value, Iri) else None,
    Literal: lambda value: value if isinstance(value, Literal) else None,
}
# Any whole number is a number of the other types too.
_BINDS: dict[type, tuple[type, ...]] = {
    **{kind: (kind,) for kind in _READERS},
    float: (float, int),
    Decimal: (Decimal, int),
    Fraction: (Fraction, int),
    date: (date, datetime),
}
# A text that reads as a number or as a date is one too.
_KINDS: dict[type, tuple[str, ...]] = {
    int: (NUMBER,),
    float: (NUMBER,),
    Decimal: (NUMBER,),
    Fraction: (NUMBER,),
    str: (TEXT, NUMBER, INSTANT),
    bool: (BOOLEAN,),
    date: (INSTANT,),
    datetime: (INSTANT,),
    Iri: (RESOURCE,),
}
