"""Converts patterns and rules of Amazon EventBridge to conditions of our own query tree.

A pattern has the shape of the events it matches, with a list of tests at each leaf (`content_filters`). Each way
through its `$or`s is a conjunction of fields; where an event has a list of objects, one element must meet all fields
below that object. What EventBridge would refuse is refused, with its JSON path.

The meaning is EventBridge's but for this. Where a field has several values, a null beside others is not seen, nor is a
number beside texts; an empty list counts as null. Numbers have no bounds and compare exactly, but for a range between
two bounds, one of which is left out: it ends 10^-9 before. Letters fold as Unicode says. Events whose keys have dots
meet patterns of one such field only, and every event has an id.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from tidings.errors import SubscriptionError
from tidings.kinds.filters.content_filters import (
    OPERATORS,
    Field,
    Object,
    absent,
    all_of,
    any_of,
    format_value,
    is_whole,
    read_tests,
    refusal,
)
from tidings.language.query import AnyElement, Attribute, Condition

MAX_ALTERNATIVES = 1000  # EventBridge's own limit for combinations of $or
MAX_DEPTH = 100
Rule = tuple[str, Condition | SubscriptionError]

_RESERVED = frozenset(
    f"{OPERATORS}, exactly, regex, not-wildcard, not-equals-ignore-case, date-after, date-on-or-after, date-before, "
    "date-on-or-before, in-date-range, ip-address-in-range, ip-address-not-in-range, =, <, <=, >, >=".split(
        ", "
    )
)
_PLAIN_KEY = re.compile(r"[\w-]+")
_ENVELOPE = frozenset("version id detail-type source account time region resources detail $or".split())
_NAMES = ("Name", "name", "id", "Id")
_FORMS = (
    'rules are {"name": {pattern}, …}, a list of {"Name": …, "EventPattern": …}, what `aws events list-rules` gives,'
    " or such an object in each line"
)


def read_pattern(pattern: object) -> Condition:
    """The condition that a pattern means: a dict as a JSON parser gives it. Raises SubscriptionError."""
    alternatives = [_conjuncts(fields) for fields in _alternatives(pattern, "", "$", 0)]
    if len(alternatives) == 1:
        return all_of(alternatives[0])
    common = set.intersection(*map(set, alternatives))
    shared = [condition for condition in alternatives[0] if condition in common]
    rests = [[condition for condition in conjuncts if condition not in common] for conjuncts in alternatives]
    if not all(rests):  # then one alternative is contained in all others
        return all_of(shared)
    return all_of([*shared, any_of([all_of(rest) for rest in rests])])


def read_rules(data: bytes | str) -> Iterator[Rule]:
    """The rules of a file, each with its condition or with the reason why it has none.

    A file that is no JSON at all, or holds no rules, raises SubscriptionError.
    """
    for position, (name, pattern) in enumerate(_listed(data), 1):
        try:
            if isinstance(pattern, SubscriptionError):
                raise pattern
            if isinstance(pattern, str):
                pattern = _parsed(pattern)
            yield name or f"rule {position}", read_pattern(pattern)
        except SubscriptionError as error:
            yield name or f"rule {position}", error


# -- files of rules


def _listed(data: bytes | str) -> Iterator[tuple[str | None, object]]:
    """Name and pattern of every rule; an error in place of the pattern where a rule has none."""
    try:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SubscriptionError(
            f"the rules are not UTF-8 text: {error.reason} at byte {error.start}"
        ) from None
    first, *rest = text.strip().splitlines() or [""]
    if rest and first.rstrip().endswith("}"):
        lines = [line for line in (first, *rest) if line.strip()]
        try:
            _parsed(first)
        except SubscriptionError:
            pass
        else:
            for line in lines:
                yield _line(line)
            return
    content = _parsed(text)
    if isinstance(content, Mapping):
        content = content["Rules"] if isinstance(content.get("Rules"), list) else content
    if isinstance(content, list):
        yield from map(_rule, content)
    elif not isinstance(content, Mapping) or not content:
        raise SubscriptionError(f"{format_value(content)} holds no rules; {_FORMS}")
    elif "EventPattern" in content:
        yield _rule(content)
    elif content.keys() <= _ENVELOPE or any(isinstance(value, list) for value in content.values()):
        yield "pattern", content
    elif isinstance(content, Object) and content.repeated is not None:
        raise SubscriptionError(f"the rule {content.repeated!r} is there twice; names have to differ")
    else:
        yield from content.items()


def _line(line: str) -> tuple[str | None, object]:
    try:
        return _rule(_parsed(line))
    except SubscriptionError as error:
        return None, error


def _rule(rule: object) -> tuple[str | None, object]:
    if not isinstance(rule, Mapping):
        return None, SubscriptionError(f"{format_value(rule)} is no rule; {_FORMS}")
    name = next((str(rule[key]) for key in _NAMES if rule.get(key) is not None), None)
    if rule.get("State", "ENABLED") == "DISABLED":
        return name, SubscriptionError("the rule is DISABLED; enable it, or leave it out")
    if rule.get("EventPattern") is None:
        reason = "runs by a schedule" if "ScheduleExpression" in rule else "has no EventPattern"
        return name, SubscriptionError(f"the rule {reason}, so there is nothing to match")
    if name is None:
        return None, SubscriptionError('the rule has no name; write one as "Name" or "id"')
    return name, rule["EventPattern"]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=Object, parse_float=Decimal)
    except RecursionError:
        raise SubscriptionError("the pattern nests too deep to be read; flatten it") from None
    except ValueError as error:
        raise SubscriptionError(f"not readable as JSON: {error}") from None


# -- the shape: which fields, in which alternatives


def _alternatives(pattern: object, path: str, location: str, depth: int) -> list[dict[str, Field]]:
    """The conjunctions of fields, by path, one of which an event has to meet."""
    if not isinstance(pattern, Mapping):
        raise refusal(location, f"a pattern is an object, not {format_value(pattern)}")
    if not pattern:
        raise refusal(location, "an empty object asks for nothing; name a field")
    if depth > MAX_DEPTH:
        raise refusal(location, f"the pattern nests deeper than {MAX_DEPTH} levels; flatten it")
    if isinstance(pattern, Object) and pattern.repeated is not None:
        raise refusal(
            location, f"the field {pattern.repeated!r} is there twice; write its tests into one list"
        )
    found: list[dict[str, Field]] = [{}]
    for key, value in pattern.items():
        at = f"{location}.{key}" if _PLAIN_KEY.fullmatch(key) else f"{location}[{key!r}]"
        if key == "$or":
            parts = _either(value, path, at, depth)
        elif not key or not is_whole(key):
            raise refusal(at, "a field needs a name of whole characters")
        elif isinstance(value, Mapping):
            parts = _alternatives(value, f"{path}{key}.", at, depth + 1)
        elif isinstance(value, list):
            parts = [{f"{path}{key}": read_tests(value, at)}]
        else:
            raise refusal(at, f"tests stand in a list; write [{format_value(value)}]")
        if len(found) * len(parts) > MAX_ALTERNATIVES:
            raise refusal(at, f"$or makes more than {MAX_ALTERNATIVES:,} combinations; split the pattern")
        found = [_merged(first, second) for first in found for second in parts]
    return found


def _either(options: object, path: str, location: str, depth: int) -> list[dict[str, Field]]:
    if not isinstance(options, list) or len(options) < 2:
        raise refusal(location, "$or takes a list of at least two objects")
    parts = []
    for position, option in enumerate(options):
        at = f"{location}[{position}]"
        for key in option if isinstance(option, Mapping) else ():
            if key in _RESERVED:
                raise refusal(
                    at, f"{key!r} is an operator and cannot be a field in $or; name the field before it"
                )
        parts += _alternatives(option, path, at, depth + 1)
    return parts


def _merged(first: dict[str, Field], second: dict[str, Field]) -> dict[str, Field]:
    if twice := first.keys() & second.keys():
        path = min(twice)
        raise refusal(
            second[path].location,
            f"the field {path} is tested twice, also at {first[path].location}; write one list",
        )
    return {**first, **second}


def _conjuncts(fields: Mapping[str, Field]) -> list[Condition]:
    return _below("", [(path.split("."), field) for path, field in fields.items()], 0)


def _below(base: str, fields: list[tuple[list[str], Field]], depth: int) -> list[Condition]:
    """The conditions on fields, given as the steps to them from `base`."""
    conditions: list[Condition] = []
    objects: dict[str, list[tuple[list[str], Field]]] = {}
    for steps, field in fields:
        if len(steps) == 1:
            conditions.append(field.exact(_at(base, steps)))
        else:
            objects.setdefault(steps[0], []).append((steps[1:], field))
    for step, inner in objects.items():
        # An event's detail is one object; anything below it may be a list of them.
        if len(inner) == 1 or (not base and step == "detail"):
            conditions += _below(_at(base, [step]).path, inner, depth)
        else:
            conditions += _together(base, [step], inner, depth)
    return conditions


def _together(
    base: str, steps: list[str], fields: list[tuple[list[str], Field]], depth: int
) -> list[Condition]:
    """Fields of one object: in a list of objects, one of them has to meet all."""
    while len({below[0] for below, _ in fields}) == 1 and all(len(below) > 1 for below, _ in fields):
        steps = [*steps, fields[0][0][0]]
        fields = [(below[1:], field) for below, field in fields]
    name = f"e{depth or ''}"
    inner = _below(name, fields, depth + 1)
    flat = [(_at(base, steps + below), field) for below, field in fields]
    if not all(field.may_be_absent for _, field in fields):
        needed = [field.needed(attribute) for attribute, field in flat if field.needed and not depth]
        return [*needed, AnyElement(name, _at(base, steps), all_of(inner))]
    # With no field at all there is no object either; else one of them is met, and the others lack beside it.
    none = all_of([absent(attribute) for attribute, _ in flat])
    met = [field.met(_at(name, below)) for below, field in fields if field.met]
    if not met:
        return [none]
    return [any_of([none, AnyElement(name, _at(base, steps), all_of([*inner, any_of(met)]))])]


def _at(base: str, steps: list[str]) -> Attribute:
    return Attribute(".".join([base, *steps] if base else steps))
