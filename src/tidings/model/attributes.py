"""An event's attributes: a JSON-like document, read by paths.

A dict contributes its keys, joined with dots, so `{"user": {"age": 5}}` and `{"user.age": 5}` both have a 5 at
`user.age`; a list stands for its elements, each at the list's own path. Nothing here recurses: a document may be
nested to any depth that its reader allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def flatten(attributes: Mapping[str, Any], toward: str | None = None) -> Iterator[tuple[str, Any]]:
    """Every (path, value) of a document in order; with `toward`, only those that can lead to that path.

    A value is a scalar, None or a dict, which comes before what is in it. An empty list is there without a value,
    as null is, and comes as None.
    """
    waiting = list(attributes.items())[::-1]
    while waiting:
        path, value = waiting.pop()
        if toward is not None and path != toward and not toward.startswith(f"{path}."):
            continue
        if isinstance(value, list | tuple):
            waiting.extend((path, element) for element in value[::-1] or (None,))
            continue
        yield path, value
        if isinstance(value, Mapping):
            waiting.extend((f"{path}.{key}", inner) for key, inner in list(value.items())[::-1])


def has_path(attributes: Mapping[str, Any], path: str) -> bool:
    """Whether the document has the path at all, be it null or an empty list."""
    return any(found == path for found, _ in flatten(attributes, path))


def values_at(attributes: Mapping[str, Any], path: str) -> list[Any]:
    """The values at a path: scalars, and dicts, which compare with nothing. Null is no value."""
    return [value for found, value in flatten(attributes, path) if found == path and value is not None]


def with_element(attributes: Mapping[str, Any], name: str, element: object) -> dict[str, Any]:
    """The document in which `name` is one element, and nothing else that began with that name is left."""
    rest = {k: v for k, v in attributes.items() if k != name and not k.startswith(f"{name}.")}
    return {**rest, name: element}
