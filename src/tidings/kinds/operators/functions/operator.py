"""An operator: a pure function of the event and its inputs, with its cost, timeout, retries and batch mode.

    @tidings.operator(cost=20e-3)
    def mobPattern(event, people: Out[int]):
        yield 60

One `Out`: it yields plain values; several: tuples in their order; none: it answers True or False. A batch operator
gets a list of (event, *inputs) as its first argument and answers with a list as long; its other parameters only
declare.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from operator import attrgetter
from typing import Any, overload

from tidings.errors import SubscriptionError
from tidings.kinds.operators.functions.signature import FunctionParameter, OperatorError, Out, read_signature
from tidings.language.query import Call, Constant, Parameter, Variable
from tidings.language.syntax.tokens import NAME, SPARQL_WORDS, WORDS
from tidings.model.terms import Iri, Literal, ntriples
from tidings.model.values import constant_view

__all__ = ["Operator", "OperatorError", "Out", "operator"]

_NAME = re.compile(NAME)
_RESERVED = WORDS | SPARQL_WORDS | {"TRUE", "FALSE"}
_DECLARED: Out[Any] = Out()


@dataclass(frozen=True, eq=False)
class Operator:
    """A function that subscriptions can call by its name; made by the decorator `operator`.

    `cost` is a first guess in seconds, corrected while running. `timeout` is in seconds, for each try; `retries`
    counts the tries after the first.
    """

    name: str
    function: Callable[..., Any] = field(repr=False)
    cost: float = 1e-3
    timeout: float | None = None
    retries: int = 0
    batch: bool = False
    is_async: bool = field(init=False)
    parameters: tuple[FunctionParameter, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._check_settings()
        object.__setattr__(self, "is_async", _is_async(self.function))
        object.__setattr__(self, "parameters", read_signature(self.function, self.name))
        if self.batch and inspect.isasyncgenfunction(self.function):
            raise OperatorError(
                f"{self.name} yields, but answers a batch; return a list of its answers instead"
            )

    @cached_property
    def inputs(self) -> tuple[FunctionParameter, ...]:
        return tuple(parameter for parameter in self.parameters if not parameter.is_out)

    @cached_property
    def outs(self) -> tuple[FunctionParameter, ...]:
        return tuple(parameter for parameter in self.parameters if parameter.is_out)

    @cached_property
    def signature(self) -> str:
        """The operator's signature as text: `near(place: str, metres: float)`."""
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    def __call__(self, event: Any, *inputs: Any) -> Any:
        """Calls the plain function; the parameters that it binds need not be given.

        A batch operator is called with its list alone.
        """
        return self.prepared(event, *inputs)

    @cached_property
    def is_plain(self) -> bool:
        """Whether calling it is nothing but calling its function."""
        return not (self.is_async or self.batch or self.timeout is not None or self.retries)

    @cached_property
    def accepted(self) -> tuple[tuple[type, ...], ...]:
        """For each parameter that it binds, the types of the values it may bind it to."""
        return tuple(parameter.accepted for parameter in self.outs)

    @cached_property
    def prepared(self) -> Callable[..., Any]:
        """The function with its `Out` parameters filled in: it takes the event and the inputs, or a batch."""
        function, mask = self.function, tuple(parameter.is_out for parameter in self.parameters)
        fixed = (_DECLARED,) * (len(mask) if self.batch else sum(mask))
        if not fixed:
            return function
        if self.batch or mask == tuple(sorted(mask)):
            return lambda first, *inputs: function(first, *inputs, *fixed)

        def interleaved(event: Any, *inputs: Any) -> Any:
            given = iter(inputs)
            return function(event, *[_DECLARED if is_out else next(given) for is_out in mask])

        return interleaved

    def inputs_of(self, call: Call) -> tuple[Variable | Constant, ...]:
        """The arguments of a call that the operator needs."""
        return tuple(a for a, p in zip(call.arguments, self.parameters, strict=True) if not p.is_out)

    def outs_of(self, call: Call) -> tuple[Variable | Constant, ...]:
        """The arguments of a call that the operator binds."""
        return tuple(a for a, p in zip(call.arguments, self.parameters, strict=True) if p.is_out)

    def check(self, call: Call) -> None:
        """Refuses a call that does not fit the signature; a parameter is checked when its constant is given."""
        given, needed = len(call.arguments), len(self.parameters)
        if given != needed:
            raise SubscriptionError(
                f"{self.name} has {needed} argument{'s' * (needed != 1)}, not {given}; "
                f"write it as {self.signature}"
            )
        for parameter, argument in zip(self.parameters, call.arguments, strict=True):
            if isinstance(argument, Variable | Parameter):
                continue
            if not parameter.is_out:
                self._read(parameter, argument)
            elif parameter.kinds is not None and (constant_view(argument) or ("",))[0] not in parameter.kinds:
                raise SubscriptionError(
                    f"{ntriples(argument)} is never what {self.name} binds there; write a ?variable or "
                    f"a constant for {parameter}"
                )

    def read_inputs(self, inputs: Sequence[object]) -> tuple[Any, ...]:
        """Constants, and values of variables, as the function gets them; a `SubscriptionError` if one does not fit."""
        return tuple(
            self._read(parameter, value) for parameter, value in zip(self.inputs, inputs, strict=True)
        )

    def _read(self, parameter: FunctionParameter, value: object) -> Any:
        found = parameter.read(value)
        if found is None:
            shown = ntriples(value) if isinstance(value, Iri | Literal) else repr(value)
            raise SubscriptionError(f"{shown} is not an input for {self.signature}; it needs {parameter}")
        return found

    def _check_settings(self) -> None:
        name = self.name
        if not callable(self.function):
            raise OperatorError(
                f"an operator is made of a function, not of {self.function!r}; decorate a def"
            )
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise OperatorError(f"{name!r} is not a name a subscription can write; give name='near'")
        if name.upper() in _RESERVED:
            raise OperatorError(f"{name} is a word of the language; give another name=")
        if not _is_positive(self.cost):
            raise OperatorError(f"the cost of {name} is {self.cost!r}; give seconds above 0, such as 0.02")
        if self.timeout is not None and not _is_positive(self.timeout):
            raise OperatorError(f"the timeout of {name} is {self.timeout!r}; give seconds above 0, or None")
        if not isinstance(self.retries, int) or isinstance(self.retries, bool) or self.retries < 0:
            raise OperatorError(
                f"the retries of {name} are {self.retries!r}; give a number of tries, such as 2"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        settings = (self.name, self.cost, self.timeout, self.retries, self.batch)
        module, name = getattr(self.function, "__module__", ""), getattr(self.function, "__qualname__", "")
        known = _find(module, name) if module in sys.modules and module != "__main__" else None
        # A decorated function cannot be pickled by its name, which is the operator's now; so the operator is.
        if isinstance(known, Operator) and known.function is self.function:
            return _named, (module, name, settings)
        # The function as state, which comes after the object: it may refer to the operator, as one that calls itself.
        return Operator.__new__, (Operator,), (self.function, settings)

    def __setstate__(self, state: tuple[Callable[..., Any], tuple[Any, ...]]) -> None:
        self.__init__(*_arguments(*state))  # type: ignore[misc]


@overload
def operator(function: Callable[..., Any], /) -> Operator: ...
@overload
def operator(
    function: None = None,
    /,
    *,
    name: str | None = None,
    cost: float = 1e-3,
    timeout: float | None = None,
    retries: int = 0,
    batch: bool = False,
) -> Callable[[Callable[..., Any]], Operator]: ...
def operator(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    cost: float = 1e-3,
    timeout: float | None = None,
    retries: int = 0,
    batch: bool = False,
) -> Operator | Callable[[Callable[..., Any]], Operator]:
    """Makes an operator of a function: `@operator`, or `@operator(cost=20e-3, timeout=1, retries=2)`."""

    def make(function: Callable[..., Any]) -> Operator:
        named = name if name is not None else getattr(function, "__name__", type(function).__name__)
        made = Operator(named, function, cost, timeout, retries, batch)
        object.__setattr__(made, "__doc__", getattr(function, "__doc__", None))
        return made

    return make if function is None else make(function)


def _is_async(function: Callable[..., Any]) -> bool:
    called = (function, getattr(function, "__call__", None))  # noqa: B004
    return any(
        inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function) for function in called
    )


def _is_positive(seconds: object) -> bool:
    return isinstance(seconds, int | float) and seconds > 0 and math.isfinite(seconds)


def _find(module: str, name: str) -> object:
    try:
        return attrgetter(name)(import_module(module))
    except AttributeError:
        return None


def _named(module: str, name: str, settings: tuple[Any, ...]) -> Operator:
    """The operator that this process, too, knows by the name of its function."""
    known = _find(module, name)
    if not isinstance(known, Operator):
        raise OperatorError(f"{module}.{name} is no operator here; install the same version of {module}")
    made = Operator(*_arguments(known.function, settings))
    return known if repr(known) == repr(made) else made


def _arguments(function: Callable[..., Any], settings: tuple[Any, ...]) -> tuple[Any, ...]:
    name, *others = settings
    return name, function, *others
