"""Gives bindings the types that operators declare: of `people: Out[int]`, ?people is a number in JSON, not a text.

A notification holds bindings as texts. The type follows from the subscription's text and the operator's signature, so that
notifications of any age have it. What has no declared type, or may be a text, stays a text.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from tidings.engine.engine import Engine
from tidings.errors import TidingsError
from tidings.language.parser import parse
from tidings.language.query import Call, Variable, leaves
from tidings.service.store.transactions import StoreError

Reader = Callable[[str], Any]
_KEPT = 10_000  # subscriptions whose types are remembered
_FRESH = 10.0  # seconds: a text may be edited


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text]


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


_READERS: dict[type, Reader] = {bool: _boolean, int: int, float: _number, Decimal: _number}


class BindingTypes:
    """Converts bindings of subscriptions. `engine` has the operators now, `text_of` the text of a subscription. Thread-safe."""

    def __init__(self, engine: Callable[[], Engine], text_of: Callable[[str], str | None]) -> None:
        self._engine, self._text_of = engine, text_of
        self._known: OrderedDict[str, tuple[float, Mapping[str, tuple[Reader, ...]]]] = OrderedDict()
        self._lock = threading.Lock()

    def convert(self, subscription: str, bindings: Mapping[str, str]) -> Mapping[str, Any]:
        """The bindings with the values of their declared types."""
        if not bindings or not any(True for _ in self._engine().operators):
            return bindings
        readers = self._readers(subscription)
        if not readers:
            return bindings
        return {name: _read(readers.get(name, ()), text) for name, text in bindings.items()}

    def _readers(self, subscription: str) -> Mapping[str, tuple[Reader, ...]]:
        now = time.monotonic()
        with self._lock:
            at, readers = self._known.get(subscription, (-math.inf, {}))
        if now - at < _FRESH:
            return readers
        try:
            text = self._text_of(subscription)
            readers = {} if text is None else output_types(text, self._engine())
        except StoreError:
            raise
        except TidingsError:  # what it calls is not there any more
            readers = {}
        with self._lock:
            self._known[subscription] = now, readers
            self._known.move_to_end(subscription)
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return readers


def output_types(text: str, engine: Engine) -> dict[str, tuple[Reader, ...]]:
    """The variables of a text that operators bind to numbers or truth values, with the readers of their types."""
    found: dict[str, tuple[Reader, ...]] = {}
    for leaf in leaves(parse(text, engine.prefixes).where):
        if not isinstance(leaf, Call):
            continue
        operator = engine.operators.find(leaf.name)
        for argument, parameter in zip(operator.outs_of(leaf), operator.outs, strict=True):
            if isinstance(argument, Variable) and parameter.types and set(parameter.types) <= set(_READERS):
                found[argument.name] = tuple(
                    read for kind, read in _READERS.items() if kind in parameter.types
                )
    return found


def _read(readers: tuple[Reader, ...], text: str) -> Any:
    for read in readers:
        try:
            return read(text)
        except (ValueError, KeyError):
            continue
    return text
