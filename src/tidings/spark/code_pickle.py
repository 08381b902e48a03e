"""Pickles what workers need and an index does not hold: operators and kinds of the user's own, which are code. They are
pickled by name where a module can be imported.

Every task carries the pickled bytes; a worker unpickles equal bytes once. So its operators, and with them the engine that
has them, stay the same from task to task, and what they keep (a connection, a loaded model, what was learnt) stays too.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import cast

from pyspark import cloudpickle

from tidings.engine.contracts import Kind
from tidings.kinds.operators.functions.catalogue import Catalogue, read_operators
from tidings.kinds.operators.functions.operator import Operator
from tidings.kinds.operators.functions.signature import OperatorError
from tidings.storage.versions import Code

Operators = Iterable[Operator | str]


def pickle_code(operators: Operators, kinds: Iterable[Kind] = ()) -> bytes:
    """Pickles kinds, operators, and all operators of modules ("package.module") or files ("path/to/file.py")."""
    found = [
        operator
        for given in operators
        for operator in (read_operators(given) if isinstance(given, str) else [given])
    ]
    named = {operator.name: operator for operator in Catalogue(found)}
    try:
        return cast(bytes, cloudpickle.dumps((tuple(named.values()), tuple(kinds))))
    except Exception as error:
        raise OperatorError(
            f"the operators cannot be sent to the workers ({type(error).__name__}: {error}); "
            "open connections and files inside them, or put them into a module that workers can import"
        ) from error


@lru_cache(maxsize=8)
def unpickle_code(pickled: bytes) -> Code:
    """The operators and kinds, the same objects for the same bytes."""
    try:
        return Code(*cloudpickle.loads(pickled))
    except ImportError as error:
        raise OperatorError(
            f"a worker cannot import the operators ({error}); install their module on all hosts, or give a file"
        ) from error
