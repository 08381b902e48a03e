"""Reads the DOCTYPE of an XML document and measures its entities before they are expanded.

Short internal entities are harmless: RDF documents abbreviate namespaces with them. External and parameter entities are
refused, and so is any entity that would grow beyond `MAX_ENTITY` characters or `MAX_TAGS` tags, or refers to itself. An
external DTD is never read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tidings.errors import EventError

MAX_ENTITY = 64 * 1024
MAX_TAGS = 1_000  # that entities bring into a document: each may be an item, which costs far more than its characters
MAX_NESTING = 16  # entities within entities; a namespace within a name is one

_LITERAL = r"""(?:"[^"]*"|'[^']*')"""
_HEAD = re.compile(
    rf"<!DOCTYPE\s+[^\s\[<>\"']+\s*(?:(?:SYSTEM\s*{_LITERAL}|PUBLIC\s*{_LITERAL}(?:\s*{_LITERAL})?)\s*)?",
    re.IGNORECASE,
)
_ENTITY = re.compile(rf"<!ENTITY\s+([^\s%\"'<>]+)\s+({_LITERAL})\s*>")
_OTHER = re.compile(rf"<!(?:ELEMENT|ATTLIST|NOTATION)\b(?:[^<>\"']|{_LITERAL})*+>")
_CLOSE = re.compile(r"\s*>")
_CHARACTER = re.compile(r"&#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}));")
_REFERENCE = re.compile(r"&([^\s&;#<>]{1,64});")
_PREDEFINED = frozenset({"amp", "lt", "gt", "quot", "apos"})


@dataclass
class Doctype:
    """The declared entities, expanded on first use; the first declaration of a name counts."""

    entities: dict[str, str] = field(default_factory=dict)
    _measures: dict[str, tuple[int, int, int]] = field(
        default_factory=dict
    )  # when expanded: size, tags; nesting
    _replacements: dict[str, str] = field(default_factory=dict)

    def replacement(self, name: str) -> str | None:
        """The full expansion of `&name;`; None if it was not declared."""
        if not self._replaces(name):
            return None
        if name not in self._replacements:
            self._replacements[name] = _safe_in_attributes(self._expanded(name))
        return self._replacements[name]

    def check(self) -> None:
        """Refuses entities that would grow too large, by arithmetic alone."""
        for name in self.entities:
            self._measure(name, ())

    def _measure(self, name: str, within: tuple[str, ...]) -> tuple[int, int, int]:
        if name in within:
            raise EventError(f"the entity {name[:40]!r} refers to itself; take it out of the DOCTYPE")
        if name not in self._measures:
            size, tags, nesting = len(self.entities[name]), self.entities[name].count("<"), 0
            for inner in self._references(name) if len(within) <= MAX_NESTING else ():
                inner_size, inner_tags, inner_nesting = self._measure(inner, (*within, name))
                size, tags, nesting = size + inner_size, tags + inner_tags, max(nesting, inner_nesting + 1)
            if max(nesting, len(within)) > MAX_NESTING:
                raise EventError(
                    f"the entity {name[:40]!r} is one of more than {MAX_NESTING} within each other; write it out"
                )
            if size > MAX_ENTITY:
                raise EventError(
                    f"the entity {name[:40]!r} would grow to {size:,} characters, over {MAX_ENTITY:,}; shorten it"
                )
            if tags > MAX_TAGS:
                raise EventError(
                    f"the entity {name[:40]!r} would grow to {tags:,} tags, over {MAX_TAGS:,}; write them out"
                )
            self._measures[name] = size, tags, nesting
        return self._measures[name]

    def _references(self, name: str) -> list[str]:
        return [inner for inner in _REFERENCE.findall(self.entities[name]) if self._replaces(inner)]

    def _replaces(self, name: str) -> bool:
        return name in self.entities and name not in _PREDEFINED

    def _expanded(self, name: str) -> str:
        def inner(found: re.Match[str]) -> str:
            return self._expanded(found[1]) if self._replaces(found[1]) else found[0]

        return _REFERENCE.sub(inner, self.entities[name])


def read_doctype(text: str, start: int) -> tuple[Doctype, int]:
    """The DOCTYPE at `start` and where it ends; raises `EventError` if it may do harm."""
    head = _HEAD.match(text, start)
    if head is None:
        raise EventError("the DOCTYPE cannot be read; take it out of the document")
    doctype, position = Doctype(), head.end()
    if text.startswith("[", position):
        position = _read_subset(text, position + 1, doctype)
    close = _CLOSE.match(text, position)
    if close is None:
        raise EventError("the DOCTYPE does not end with '>'; take it out of the document")
    doctype.check()
    return doctype, close.end()


def _read_subset(text: str, position: int, doctype: Doctype) -> int:
    """Reads declarations up to the closing bracket, and says where it ends."""
    while True:
        while text[position : position + 1].isspace():
            position += 1
        if text.startswith("]", position):
            return position + 1
        if text.startswith("%", position):
            raise EventError("the DOCTYPE uses a parameter entity; only plain internal entities are accepted")
        if text.startswith("<!--", position) or text.startswith("<?", position):
            mark = "?>" if text[position + 1] == "?" else "-->"
            end = text.find(mark, position + len(mark) + 1)
            if end < 0:
                raise EventError("the DOCTYPE holds a comment or an instruction without an end; take it out")
            position = end + len(mark)
        elif (entity := _ENTITY.match(text, position)) is not None:
            doctype.entities.setdefault(entity[1], _with_characters(entity[2][1:-1]))
            position = entity.end()
        elif (other := _OTHER.match(text, position)) is not None:
            position = other.end()
        elif text.startswith("<!ENTITY", position):
            raise EventError(
                "the DOCTYPE declares an external or parameter entity; only plain internal entities are accepted"
            )
        else:
            raise EventError(f"the DOCTYPE cannot be read at {text[position : position + 20]!r}; take it out")


def _with_characters(value: str) -> str:
    """An entity's value as it is stored: character references are replaced when it is declared."""

    def character(found: re.Match[str]) -> str:
        code = int(found[1], 16) if found[1] else int(found[2])
        if code > 0x10FFFF or code == 0 or 0xD800 <= code <= 0xDFFF:
            raise EventError(f"{found[0]!r} in the DOCTYPE is not a character; take it out")
        return chr(code)

    return _CHARACTER.sub(character, value)


def _safe_in_attributes(value: str) -> str:
    """Escapes quotes, so that an entity does not end the attribute around it. One with markup is invalid in an attribute."""
    if "<" in value:
        return value
    return value.replace('"', "&quot;").replace("'", "&apos;")
