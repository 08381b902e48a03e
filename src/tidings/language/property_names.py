"""Finds the properties of graphs that a text may mean: by a misspelt name, or by a name that it uses for an attribute.

Properties are named as texts name them, with prefixes. What the taxonomy and containers imply counts as seen, because a
pattern matches it too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from tidings.errors import nearest
from tidings.formats.namespaces import RDF, RDFS
from tidings.language.printer import condition_text
from tidings.language.query import (
    Attribute,
    Between,
    Comparison,
    Folded,
    Leaf,
    OneOf,
    TextTest,
    Variable,
)
from tidings.language.syntax.prefixes import WELL_KNOWN, shortened
from tidings.model.observed_attributes import ObservedAttributes
from tidings.model.taxonomy import Taxonomy

_LOCAL = re.compile(r"[^#/:]*\Z")
_MEMBERS = (RDFS + "member", RDF + "_")
_LONGEST = 200  # letters of a condition that a sentence repeats


class PropertyNames:
    """The properties that graphs had."""

    def __init__(self, observed: ObservedAttributes, prefixes: Mapping[str, str], taxonomy: Taxonomy) -> None:
        self._seen, self._taxonomy = observed.properties, taxonomy
        self._prefixes = {**WELL_KNOWN, **prefixes}

    def __contains__(self, iri: str) -> bool:
        return iri in self._seen or iri in self._implied or iri.startswith(_MEMBERS)

    @cached_property
    def _implied(self) -> set[str]:
        above = self._taxonomy.super_properties()
        return {iri for seen in self._seen for iri in above.get(seen, ())}

    @cached_property
    def _by_local(self) -> dict[str, list[str]]:
        """The properties by the ends of their IRIs, in any case; the most frequent first."""
        found: dict[str, list[str]] = {}
        for iri, _ in self._seen.most_common():
            found.setdefault(local_name(iri).casefold(), []).append(iri)
        return found

    def written(self, iri: str) -> str:
        """A property as a text names it."""
        return written_iri(iri, self._prefixes)

    def nearest(self, iri: str) -> str | None:
        """The property whose name is most like that of an unknown one; of equal names, one with the same prefix."""
        name = local_name(iri)
        if self.written(iri) == "a" and RDF + "type" in self._seen:  # as in SPARQL
            return self.written(RDF + "type")
        like = name.casefold()
        if like not in self._by_local:
            like = nearest(like, self._by_local, 0.7) or ""
        start = iri.removesuffix(name)
        options = self._by_local.get(like, [])
        same = (option for option in options if option.startswith(start))
        found = next(same, None) or next(iter(options), None)
        return None if found is None else self.written(found)

    def of_attribute(self, path: str) -> str | None:
        """The most frequent property that is called like an attribute."""
        return next(iter(self._by_local.get(path.casefold(), ())), None)

    def pattern(self, iri: str, leaf: Leaf | None = None) -> str:
        """A triple with the property, and the condition of a leaf on its object instead of on an attribute."""
        variable = Variable(re.sub(r"\W", "_", local_name(iri)) or "value")
        triple = f"(?item, {self.written(iri)}, ?{variable.name})"
        field = "left" if isinstance(leaf, Comparison) else "operand"
        if isinstance(leaf, Comparison | Between | OneOf | TextTest):
            tested = getattr(leaf, field)
            if isinstance(tested, Attribute | Folded):
                operand = variable if isinstance(tested, Attribute) else Folded(variable)
                condition = condition_text(replace(leaf, **{field: operand}))  # type: ignore[arg-type]
                if len(condition) <= _LONGEST:
                    return f"{triple} AND {condition}"
        return triple


def local_name(iri: str) -> str:
    """The end of an IRI, behind its last #, / or colon."""
    return _LOCAL.search(iri)[0]  # type: ignore[index]


def written_iri(iri: str, prefixes: Mapping[str, str]) -> str:
    """An IRI as a text names it; the default prefix is not written."""
    found = shortened(iri, prefixes)
    return f"<{iri}>" if found is None else ":".join(found).removeprefix(":")
