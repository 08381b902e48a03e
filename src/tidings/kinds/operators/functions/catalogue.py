"""The catalogue of operators that subscriptions can call: those given to the engine, then those of installed packages.

A package offers operators by the entry point group "tidings.operators"; an operator is loaded when a subscription
first names it. The catalogue checks conditions: every call fits its operator, and every input is bound before it is
needed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from itertools import islice
from pathlib import Path
from types import ModuleType

from tidings.errors import SubscriptionError, did_you_mean
from tidings.kinds.operators.functions.operator import Operator
from tidings.kinds.operators.functions.signature import OperatorError
from tidings.language.query import And, Call, Condition, Not, Or, TriplePattern, Variable, leaves

GROUP = "tidings.operators"
_NAMED = 10


def read_operators(where: str) -> list[Operator]:
    """The operators of an importable module, `package.module`, or of a file, `path/to/file.py`."""
    module = _read_file(Path(where)) if where.endswith(".py") else _import(where)
    found = {id(value): value for value in vars(module).values() if isinstance(value, Operator)}
    if not found:
        raise OperatorError(f"{where} has no operators; decorate its functions with @tidings.operator")
    return list(found.values())


def from_modules(modules: Iterable[str]) -> list[Operator]:
    """The operators of several modules and files, each taken once."""
    return [operator for module in dict.fromkeys(modules) for operator in read_operators(module)]


def _import(name: str) -> ModuleType:
    try:
        return import_module(name)
    except Exception as error:
        # A module that this one imports and that is missing is another error.
        if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
            raise OperatorError(
                f"there is no module {name!r}; install it, or give the path of a file such as ./operators.py"
            ) from None
        raise _broken(name, error) from error


def _read_file(path: Path) -> ModuleType:
    # The module is not put among the imported ones, where it could hide one of the same name. So its operators are
    # sent to other processes by value, which need not have the file.
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), vars(module))
    except FileNotFoundError as error:
        if error.filename != str(path):
            raise _broken(str(path), error) from error
        raise OperatorError(
            f"there is no file {path}; give the path of a Python file with operators"
        ) from None
    except (Exception, SystemExit) as error:
        raise _broken(str(path), error) from error
    return module


def _broken(where: str, error: BaseException) -> OperatorError:
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return OperatorError(f"{where} cannot be loaded: {what}; correct it, or install what it needs")


class Catalogue:
    """Operators by name."""

    def __init__(self, operators: Iterable[Operator] | Mapping[str, Operator] = ()) -> None:
        self._operators: dict[str, Operator] = {}
        if isinstance(operators, Operator):
            raise OperatorError(f"operators is {operators.name} alone; give a list, [{operators.name}]")
        pairs: Iterable[tuple[str | None, Operator]]
        pairs = operators.items() if isinstance(operators, Mapping) else ((None, each) for each in operators)
        for name, operator in pairs:
            self._add(name, operator)

    def find(self, name: str) -> Operator:
        """The operator of that name; a `SubscriptionError` if there is none."""
        if name not in self._operators:
            self._operators[name] = self._load(name)
        return self._operators[name]

    def names(self) -> list[str]:
        """All names, those of installed packages too."""
        return sorted(self._operators.keys() | self._offered.keys())

    def __iter__(self) -> Iterator[Operator]:
        """The operators that were given or have been found."""
        return iter(list(self._operators.values()))

    def check_query(self, condition: Condition, bound: Collection[Variable] = ()) -> None:
        """Refuses a condition with a call that could never be made; `bound` is what is bound outside it."""
        calls = [leaf for leaf in leaves(condition) if isinstance(leaf, Call)]
        for call in calls:
            self.find(call.name).check(call)
        missing = self._missing(condition, frozenset(bound))
        if missing is None:
            return
        call, variable, is_circular = missing
        what, advice = (
            f"?{variable.name} is an input of {call.name}",
            "bind it in a triple or another call, or give a constant",
        )
        if is_circular:
            what += ", but what would bind it waits for that itself"
        elif variable in self._anywhere(condition):
            what += ", but is bound only in another part of an OR or under NOT"
            advice = f"bind it beside {call.name}, or give a constant"
        raise SubscriptionError(f"{what}; {advice}")

    def _add(self, name: str | None, operator: Operator) -> None:
        if not isinstance(operator, Operator):
            raise OperatorError(
                f"{operator!r:.80} is not an operator; decorate the function with @tidings.operator"
            )
        name = operator.name if name is None else name
        if self._operators.get(name, operator) is not operator:
            raise OperatorError(f"two operators are named {name!r}; give one of them another name=")
        self._operators[name] = operator if name == operator.name else replace(operator, name=name)

    @cached_property
    def _offered(self) -> dict[str, list[EntryPoint]]:
        """The entry points of installed packages, by name."""
        offered: dict[str, list[EntryPoint]] = {}
        for entry in entry_points(group=GROUP):
            if entry.value not in [other.value for other in offered.get(entry.name, [])]:
                offered.setdefault(entry.name, []).append(entry)
        return offered

    def _load(self, name: str) -> Operator:
        offers = self._offered.get(name)
        if not offers:
            raise SubscriptionError(self._unknown(name))
        if len(offers) > 1:
            values = " and ".join(entry.value for entry in offers)
            raise SubscriptionError(
                f"the operator {name!r} is offered by {values}; give the engine the one you mean in operators="
            )
        (entry,) = offers
        origin = f"the operator {name!r} of {entry.dist.name if entry.dist else entry.value} ({entry.value})"
        try:
            loaded = entry.load()
        except Exception as error:
            raise SubscriptionError(
                f"{origin} cannot be loaded: {type(error).__name__}: {error}; repair or remove that package"
            ) from error
        if not isinstance(loaded, Operator):
            raise SubscriptionError(
                f"{origin} is {loaded!r:.80}, not an operator; its package must decorate it with @tidings.operator"
            )
        return loaded if loaded.name == name else replace(loaded, name=name)

    def _unknown(self, name: str) -> str:
        names = self.names()
        if not names:
            return (
                f"unknown operator {name!r}; no operators are known here, give some in operators= of the engine, "
                "or to a command with --operators"
            )
        known = f"known are {', '.join(islice(names, _NAMED))}"
        if len(names) > _NAMED:
            known += f" and {len(names) - _NAMED} more"
        advice = did_you_mean(name, names, "")
        return (
            f"unknown operator {name!r}; {advice} {known}"
            if advice
            else f"unknown operator {name!r}; {known}"
        )

    def _missing(
        self, condition: Condition, bound: frozenset[Variable]
    ) -> tuple[Call, Variable, bool] | None:
        """A call and an input of it that is not bound when it is needed, and whether they go round in a circle."""
        if isinstance(condition, Call):
            for argument in self.find(condition.name).inputs_of(condition):
                if isinstance(argument, Variable) and argument not in bound:
                    return condition, argument, argument in self._bound(condition)
        elif isinstance(condition, Not):
            return self._missing(condition.part, bound)
        elif isinstance(condition, Or):
            for part in condition.parts:
                if (missing := self._missing(part, bound)) is not None:
                    return missing
        elif isinstance(condition, And):
            waiting = list(_flat(condition))
            while waiting:
                later = [part for part in waiting if self._missing(part, bound) is not None]
                bound = bound.union(*(self._bound(part) for part in waiting if part not in later))
                if len(later) == len(waiting):
                    return self._stuck(later, bound)
                waiting = later
        return None

    def _stuck(
        self, parts: list[Condition], bound: frozenset[Variable]
    ) -> tuple[Call, Variable, bool] | None:
        """The first of the parts that wait; in a circle, if one of them would bind what it waits for."""
        missing = self._missing(parts[0], bound)
        if missing is None:
            return None
        call, variable, is_circular = missing
        return call, variable, is_circular or any(variable in self._bound(part) for part in parts)

    def _bound(self, condition: Condition) -> frozenset[Variable]:
        """The variables that are bound wherever the condition holds: of an OR, by each of its parts."""
        if isinstance(condition, TriplePattern):
            terms = (condition.subject, condition.property, condition.object)
            return frozenset(term for term in terms if isinstance(term, Variable))
        if isinstance(condition, Call):
            outs = self.find(condition.name).outs_of(condition)
            return frozenset(out for out in outs if isinstance(out, Variable))
        if isinstance(condition, And):
            return frozenset().union(*map(self._bound, condition.parts))
        if isinstance(condition, Or) and condition.parts:
            first, *others = map(self._bound, condition.parts)
            return first.intersection(*others)
        return frozenset()

    def _anywhere(self, condition: Condition) -> frozenset[Variable]:
        return frozenset().union(*map(self._bound, leaves(condition)))


def _flat(condition: And) -> Iterator[Condition]:
    for part in condition.parts:
        if isinstance(part, And):
            yield from _flat(part)
        else:
            yield part
