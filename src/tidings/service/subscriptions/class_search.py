"""Browses a taxonomy: its roots, the classes above and below a class, and a search by words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidings.language.syntax.prefixes import WELL_KNOWN
from tidings.model.taxonomy import Taxonomy, local_name

MOST = 200  # instances, or classes that are found


@dataclass(frozen=True, slots=True)
class NamedClass:
    """A class or an individual: its IRI, how a subscription writes it, and its label."""

    iri: str
    written: str
    label: str
    below: int = 0  # classes directly below it


@dataclass(frozen=True, slots=True)
class ClassDetails:
    """A class with its relatives. It has the first of its instances; `instances_in_all` counts them."""

    named: NamedClass
    labels: tuple[str, ...]
    parents: tuple[NamedClass, ...]
    children: tuple[NamedClass, ...]
    instances: tuple[NamedClass, ...]
    instances_in_all: int


class ClassSearch:
    """The classes and individuals of a taxonomy, with the prefixes that shorten their IRIs."""

    def __init__(self, taxonomy: Taxonomy, prefixes: dict[str, str]) -> None:
        self._taxonomy = taxonomy
        self._short = {iri: prefix for prefix, iri in {**WELL_KNOWN, **prefixes}.items()}
        self._parents = taxonomy.classes()
        self._children: dict[str, list[str]] = {}
        self._instances: dict[str, list[str]] = {}
        for iri, parents in self._parents.items():
            for parent in parents:
                self._children.setdefault(parent, []).append(iri)
        for iri, classes in taxonomy.instances().items():
            for cls in classes:
                self._instances.setdefault(cls, []).append(iri)

    def __len__(self) -> int:
        return len(self._parents)

    def __contains__(self, iri: object) -> bool:
        return iri in self._parents

    def roots(self) -> tuple[NamedClass, ...]:
        return self._named(iri for iri, parents in self._parents.items() if not parents)

    def about(self, iri: str) -> ClassDetails | None:
        """A class, or None if there is no such class."""
        if iri not in self._parents:
            return None
        instances = self._instances.get(iri, [])
        return ClassDetails(
            self.name(iri),
            self._taxonomy.labels(iri),
            self._named(self._parents[iri]),
            self._named(self._children.get(iri, ())),
            self._named(instances[:MOST]),
            len(instances),
        )

    def search(self, words: str) -> tuple[NamedClass, ...]:
        """Classes whose name or label contains the words, those that begin with them first."""
        wanted = " ".join(words.split()).casefold()
        found = [
            named
            for named in self.all()
            if wanted in named.label.casefold() or wanted in named.iri.casefold()
        ]
        return tuple(sorted(found, key=lambda n: not n.label.casefold().startswith(wanted))[:MOST])

    def all(self) -> tuple[NamedClass, ...]:
        return self._named(self._parents)

    def name(self, iri: str) -> NamedClass:
        label = next(iter(self._taxonomy.labels(iri)), local_name(iri))
        return NamedClass(iri, self.written(iri), label, len(self._children.get(iri, ())))

    def written(self, iri: str) -> str:
        """The class as a subscription writes it: with a prefix if one fits and reads back as the same, otherwise in
        full."""
        for space, prefix in self._short.items():
            rest = iri.removeprefix(space)
            if prefix and rest != iri and rest.replace("-", "").replace("_", "").isalnum():
                return f"{prefix}:{rest}"
        return f"<{iri}>"

    def _named(self, iris: Iterable[str]) -> tuple[NamedClass, ...]:
        return tuple(sorted(map(self.name, iris), key=lambda named: named.label.casefold()))
