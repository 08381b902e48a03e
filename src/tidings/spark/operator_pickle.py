"""Pickles operators for the workers, by name where their module can be imported.

Every task carries the pickled operators; a worker unpickles equal bytes once. So its operators and engine stay
the same from task to task, with the state that they keep (a connection, a loaded model, statistics).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import cast

from pyspark import cloudpickle

from tidings.kinds.operators.functions.catalogue import Catalogue, read_operators
from tidings.kinds.operators.functions.operator import Operator
from tidings.kinds.operators.functions.signature import OperatorError

Operators = Iterable[Operator | str]


def pickle_operators(operators: Operators) -> bytes:
    """Pickles operators, and all operators of modules ("package.module") or files ("path/to/file.py")."""
    found = [
        operator
        for given in operators
        for operator in (read_operators(given) if isinstance(given, str) else [given])
    ]
    named = {operator.name: operator for operator in Catalogue(found)}
    try:
        return cast(bytes, cloudpickle.dumps(tuple(named.values())))
    except Exception as error:
        raise OperatorError(
            f"the operators cannot be sent to the workers ({type(error).__name__}: {error}); "
            "open connections and files inside them, or put them into a module that workers can import"
        ) from error


@lru_cache(maxsize=8)
def unpickle_operators(pickled: bytes) -> tuple[Operator, ...]:
    """The operators, the same objects for the same bytes."""
    try:
        operators: tuple[Operator, ...] = cloudpickle.loads(pickled)
    except ImportError as error:
        raise OperatorError(
            f"a worker cannot import the operators ({error}); install their module on all hosts, or give a file"
        ) from error
    return operators
