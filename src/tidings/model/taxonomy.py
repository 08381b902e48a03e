"""A taxonomy: classes with any number of parents, their instances and labels, and super-properties.

A taxonomy never holds a cycle: the addition that would close one is refused with its path. `is_a` is the
definition of the three is-a tests (G-ToPSS 3.2 and 3.4, a search upwards); `compile` numbers the classes so that
the descendants of a class are a few intervals of numbers, one alone in a tree (tree cover: Agrawal, Borgida and
Jagadish, 1989), and the same tests become a comparison or a short binary search.

A class that the taxonomy does not know is treated as a class without parents and children.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from tidings.errors import TaxonomyError, TidingsError
from tidings.formats.namespaces import RDF, RDFS, XSD
from tidings.model.terms import Iri, Literal, Term, Triple, ntriples, read_graph

_OWL = "http://www.w3.org/2002/07/owl#"
_TYPE, _SUBCLASS, _SUBPROPERTY = RDF + "type", RDFS + "subClassOf", RDFS + "subPropertyOf"
_LABELS = frozenset({RDFS + "label", "http://www.w3.org/2004/02/skos/core#prefLabel"})
_KINDS_OF_CLASS = frozenset({RDFS + "Class", _OWL + "Class"})
_KINDS_OF_PROPERTY = frozenset({RDF + "Property", _OWL + "ObjectProperty", _OWL + "DatatypeProperty"})
_NO_IRI = re.compile(r'[\x00-\x20<>"{}|^`\\]')

# A hierarchy maps a name to the names directly above it; every name mentioned is a key.
Hierarchy = dict[str, tuple[str, ...]]
Ints = npt.NDArray[np.int64]


class Taxonomy:
    """Classes, instances and properties by their IRIs. Additions are idempotent and may come in any order."""

    def __init__(self) -> None:
        self._classes: Hierarchy = {}
        self._properties: Hierarchy = {}
        self._types: dict[str, tuple[str, ...]] = {}
        self._labels: dict[str, tuple[str, ...]] = {}
        self._named: dict[str, list[str]] | None = None  # label -> classes, built on first use

    def add_class(self, iri: str, parents: Iterable[str] = (), label: str | None = None) -> None:
        """A class and the classes directly above it; a second call adds parents and labels."""
        _extend(self._classes, iri, parents)
        if label is not None:
            self._labels[iri] = _union(self._labels.get(iri, ()), (label,))
        self._named = None

    def add_instance(self, iri: str, classes: Iterable[str]) -> None:
        """An individual and the classes it belongs to."""
        for cls in classes:
            _extend(self._classes, cls, ())
            self._types[_checked(iri)] = _union(self._types.get(iri, ()), (cls,))
        self._named = None

    def add_property(self, iri: str, parents: Iterable[str] = ()) -> None:
        """A property and the properties directly above it: whatever it relates, they relate."""
        _extend(self._properties, iri, parents)

    @classmethod
    def from_rdf(cls, data: str | bytes, format: str) -> Taxonomy:
        """The taxonomy an RDFS document states with subClassOf, type, subPropertyOf, label and prefLabel.

        Unnamed classes (the restrictions of an OWL ontology) are left out.
        """
        from tidings.formats.rdf import canonical

        try:
            return cls.from_ntriples(canonical(data, format))
        except TaxonomyError:
            raise
        except TidingsError as error:
            raise TaxonomyError(f"the taxonomy is {error}") from None

    @classmethod
    def from_file(cls, path: Path) -> Taxonomy:
        """The taxonomy of a file in the syntax that the end of its name says, Turtle without one."""
        try:
            return cls.from_rdf(path.read_bytes(), path.suffix.lstrip(".") or "turtle")
        except OSError as error:
            raise TaxonomyError(f"{path}: {error.strerror}; name a file that holds a taxonomy") from None
        except TaxonomyError as error:
            raise TaxonomyError(f"{path}: {error}") from None

    @classmethod
    def from_ntriples(cls, data: bytes) -> Taxonomy:
        """The taxonomy that `to_ntriples` wrote, or any graph in canonical N-Triples form."""
        taxonomy = cls()
        taxonomy._read(read_graph(data))
        return taxonomy

    def to_ntriples(self) -> bytes:
        """The whole taxonomy as sorted N-Triples, which `from_rdf` reads back equal."""
        lines = [_line(iri, _TYPE, Iri(RDFS + "Class")) for iri in self._classes]
        lines += [_line(iri, _TYPE, Iri(RDF + "Property")) for iri in self._properties]
        for predicate, links in (
            (_SUBCLASS, self._classes),
            (_SUBPROPERTY, self._properties),
            (_TYPE, self._types),
        ):
            lines += [_line(iri, predicate, Iri(other)) for iri, others in links.items() for other in others]
        lines += [
            _line(iri, RDFS + "label", Literal(t)) for iri, texts in self._labels.items() for t in texts
        ]
        return "".join(sorted(lines)).encode()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Taxonomy):
            return NotImplemented
        return self.to_ntriples() == other.to_ntriples()

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self._classes)

    def __contains__(self, iri: object) -> bool:
        """Whether an IRI is a class or an instance."""
        return iri in self._classes or iri in self._types

    def is_a(self, term: Term, op: str, cls: str, event_types: Iterable[str] = ()) -> bool:
        """Whether `term ISA op cls` holds; `event_types` are the classes the event itself gives the term.

        "<=": the term is `cls`, below it, or an instance of such a class. ">=": it is, or is an instance of,
        `cls` or a class above it. "=": `cls` is directly above it.
        """
        if op == "=":
            return cls in self.direct_classes(term, event_types)
        bases = self.base_classes(term, event_types)
        if _stands_for(term, cls) and cls not in self._classes:
            bases = _union(bases, (cls,))
        if op == "<=":
            return any(cls == base or cls in _above(self._classes, base) for base in bases)
        if op == ">=":
            upwards = _above(self._classes, cls)
            return any(base == cls or base in upwards for base in bases)
        raise TaxonomyError(f"ISA has the forms <=, >= and =, not {op!r}")

    def is_a_in(self, graph: Iterable[Triple], term: Term, op: str, cls: str) -> bool:
        """The same for a term of an event's graph, which may say of what classes it is."""
        types = [o.value for s, p, o in graph if s == term and p == Iri(_TYPE) and isinstance(o, Iri)]
        return self.is_a(term, op, cls, types)

    def base_classes(self, term: Term, event_types: Iterable[str] = ()) -> tuple[str, ...]:
        """The classes a term is or belongs to: itself, the ones it is typed with, the ones a literal labels."""
        if isinstance(term, Literal):
            return _union(self._meant(term), event_types)
        iri = term.value if isinstance(term, Iri) else ""
        own = (iri,) if iri in self._classes else ()
        return _union(own + self._types.get(iri, ()), event_types)

    def direct_classes(self, term: Term, event_types: Iterable[str] = ()) -> tuple[str, ...]:
        """The classes directly above a term: its types, and its parents if it is, or stands for, a class."""
        if isinstance(term, Literal):
            parents = [parent for cls in self._meant(term) for parent in self._classes[cls]]
            return _union(parents, event_types)
        iri = term.value if isinstance(term, Iri) else ""
        return _union(self._types.get(iri, ()) + self._classes.get(iri, ()), event_types)

    def _meant(self, literal: Literal) -> tuple[str, ...]:
        return self.labelled(literal.text) if _is_words(literal) else ()

    def labelled(self, text: str) -> tuple[str, ...]:
        """The classes that the literal `text` stands for; a class without a label has its local name."""
        if self._named is None:
            self._named = {}
            for iri in self._classes:
                for label in self._labels.get(iri) or (local_name(iri),):
                    self._named.setdefault(label, []).append(iri)
        return tuple(self._named.get(text, ()))

    def classes(self) -> dict[str, tuple[str, ...]]:
        """Each class with those directly above it."""
        return dict(self._classes)

    def labels(self, iri: str) -> tuple[str, ...]:
        """The labels that were given to a class."""
        return self._labels.get(iri, ())

    def instances(self) -> dict[str, tuple[str, ...]]:
        """Each individual with the classes it is typed with."""
        return dict(self._types)

    def super_properties(self) -> dict[str, tuple[str, ...]]:
        """Each property that has others above it, with all of them, near or far."""
        above = {iri: tuple(_above(self._properties, iri)) for iri in self._properties}
        return {iri: others for iri, others in above.items() if others}

    def classes_above(self, iri: str) -> tuple[str, ...]:
        """All classes above a class, nearest first."""
        return tuple(_above(self._classes, iri))

    def properties_above(self, iri: str) -> tuple[str, ...]:
        """All properties above a property, nearest first."""
        return tuple(_above(self._properties, iri))

    def compile(self, asked: Iterable[str] = ()) -> TaxonomyArrays:
        """The classes as numbers and intervals; classes of `asked` that are unknown are numbered too.

        Equal taxonomies and equal `asked` give equal arrays.
        """
        hierarchy = {
            iri: tuple(sorted(self._classes.get(iri, ()))) for iri in sorted({*self._classes, *asked})
        }
        return _number(hierarchy)

    def _read(self, triples: Iterable[Triple]) -> None:
        # In bulk: cycles are looked for once, at the end, not at each of a million statements.
        upwards: dict[str, dict[str, dict[str, None]]] = {_SUBCLASS: {}, _SUBPROPERTY: {}}
        classes, properties = upwards[_SUBCLASS], upwards[_SUBPROPERTY]
        types: dict[str, dict[str, None]] = {}
        labels: dict[str, dict[str, None]] = {}
        for subject, predicate, object_ in triples:
            if not (isinstance(subject, Iri) and isinstance(predicate, Iri)):
                continue
            if predicate.value in _LABELS and isinstance(object_, Literal):
                labels.setdefault(subject.value, {})[object_.text] = None
            elif not isinstance(object_, Iri):
                continue
            elif (links := upwards.get(predicate.value)) is not None:
                links.setdefault(subject.value, {})[object_.value] = None
                links.setdefault(object_.value, {})
            elif predicate.value == _TYPE and object_.value in _KINDS_OF_CLASS:
                classes.setdefault(subject.value, {})
            elif predicate.value == _TYPE and object_.value in _KINDS_OF_PROPERTY:
                properties.setdefault(subject.value, {})
            elif predicate.value == _TYPE:
                types.setdefault(subject.value, {})[object_.value] = None
                classes.setdefault(object_.value, {})
        self._classes = {iri: tuple(parents) for iri, parents in classes.items()}
        self._properties = {iri: tuple(parents) for iri, parents in properties.items()}
        self._types = {iri: tuple(own) for iri, own in types.items()}
        self._labels = {iri: tuple(texts) for iri, texts in labels.items() if iri in classes}
        _downwards(self._classes)
        _downwards(self._properties)


@dataclass(frozen=True, slots=True)
class TaxonomyArrays:
    """Classes as numbers. Class c is or is above d exactly when d lies in one of the intervals of c:

        interval_low[i] <= d <= interval_high[i]  for an i in interval_start[c] .. interval_start[c + 1] - 1

    with intervals sorted and disjoint. The direct parents of c are parent[parent_start[c] : parent_start[c + 1]].
    """

    class_of: Mapping[str, int]
    interval_start: Ints
    interval_low: Ints
    interval_high: Ints
    parent_start: Ints
    parent: Ints


def local_name(iri: str) -> str:
    """The part of an IRI after its last `#`, `/` or `:`, as a reader would write it."""
    return unquote(re.split(r"[#/:]", iri.rstrip("#/:"))[-1])


def _stands_for(term: Term, cls: str) -> bool:
    if isinstance(term, Literal):
        return _is_words(term) and term.text == local_name(cls)
    return isinstance(term, Iri) and term.value == cls


def _is_words(literal: Literal) -> bool:
    """Whether a literal is a text, in whatever language: a number or a date stands for no class."""
    return literal.datatype in (None, XSD + "string")


def _union(first: Iterable[str], second: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*first, *second]))


def _line(subject: str, predicate: str, object_: Term) -> str:
    return f"<{subject}> <{predicate}> {ntriples(object_)} .\n"


def _checked(iri: str) -> str:
    if not iri or _NO_IRI.search(iri):
        raise TaxonomyError(f'{iri!r} is not an IRI: write spaces and any of <>"{{}}|^`\\ percent-encoded')
    return iri


def _above(hierarchy: Hierarchy, iri: str) -> dict[str, None]:
    """Everything above `iri`, itself left out, nearest first."""
    found: dict[str, None] = {}
    waiting = list(hierarchy.get(iri, ()))
    for name in waiting:
        if name not in found:
            found[name] = None
            waiting.extend(hierarchy[name])
    return found


def _extend(hierarchy: Hierarchy, iri: str, parents: Iterable[str]) -> None:
    """Put `iri` under `parents`, or refuse with the path of the cycle that would close and change nothing."""
    parents = [_checked(parent) for parent in parents]
    for parent in parents:
        path = _path(hierarchy, parent, iri)
        if path:
            raise _cycle([iri, *path])
    for parent in parents:
        hierarchy.setdefault(parent, ())
    hierarchy[iri] = _union(hierarchy.get(_checked(iri), ()), parents)


def _path(hierarchy: Hierarchy, low: str, high: str) -> list[str]:
    """A way up from `low` to `high`, both included; empty if there is none."""
    if low == high:
        return [low]
    if high not in hierarchy:  # a new name has nothing below it
        return []
    below: dict[str, str] = {low: ""}
    waiting = [low]
    for name in waiting:
        for parent in hierarchy.get(name, ()):
            if parent not in below:
                below[parent] = name
                waiting.append(parent)
        if high in below:
            path = [high]
            while path[-1] != low:
                path.append(below[path[-1]])
            return path[::-1]
    return []


def _cycle(path: list[str]) -> TaxonomyError:
    return TaxonomyError(
        f"a taxonomy cannot have a cycle: {' is a '.join(path)}; take one of these links out"
    )


def _downwards(hierarchy: Hierarchy) -> list[str]:
    """The names in an order with parents before children; a cycle is refused with its path."""
    children: dict[str, list[str]] = {iri: [] for iri in hierarchy}
    missing = {iri: len(parents) for iri, parents in hierarchy.items()}
    for iri, parents in hierarchy.items():
        for parent in parents:
            children[parent].append(iri)
    order = [iri for iri, count in missing.items() if not count]
    for iri in order:
        for child in children[iri]:
            missing[child] -= 1
            if not missing[child]:
                order.append(child)
    if len(order) < len(hierarchy):
        # Each remaining class has a remaining parent: going up must close a cycle.
        path = [next(iri for iri, count in missing.items() if count)]
        seen = {path[0]: 0}
        while True:
            path.append(next(parent for parent in hierarchy[path[-1]] if missing[parent]))
            if path[-1] in seen:
                raise _cycle(path[seen[path[-1]] :])
            seen[path[-1]] = len(path) - 1
    return order


def _number(hierarchy: Hierarchy) -> TaxonomyArrays:
    """Number a tree that covers the hierarchy in post-order, then add what the links outside the tree reach.

        tree          post-order     descendants of a number = the interval that ends in it
           r               4              r 0-4,  x 0-2,  y 3-3
          / \\            / \\
         x   y          2   3        a second parent y of leaf 1 gives y the interval 1-1 besides 3-3
        /|             /|
       . .            0 1
    """
    order = _downwards(hierarchy)
    position = {iri: at for at, iri in enumerate(order)}
    above = [[position[parent] for parent in hierarchy[iri]] for iri in order]
    # The deepest parent has the most ancestors, which then need no interval for this link.
    depth, tree = [0] * len(order), [-1] * len(order)
    for at, parents in enumerate(above):
        if parents:
            tree[at] = max(parents, key=depth.__getitem__)
            depth[at] = depth[tree[at]] + 1
    size = [1] * len(order)
    for at in range(len(order) - 1, -1, -1):
        if tree[at] >= 0:
            size[tree[at]] += size[at]
    low, top = [0] * len(order), 0
    free = [0] * len(order)  # the next number not yet given to a child's subtree
    for at, under in enumerate(tree):
        if under < 0:
            low[at], top = top, top + size[at]
        else:
            low[at] = free[under]
            free[under] += size[at]
        free[at] = low[at]
    high = [first + count - 1 for first, count in zip(low, size, strict=True)]

    # An interval is one integer, low << 32 | high, so that a sort is a sort of integers. Children come before
    # parents; a class whose tree interval says all has no entry in `wider`.
    wider: dict[int, Ints] = {}
    reached: dict[int, list[Ints]] = {}
    for at in range(len(order) - 1, -1, -1):
        if extra := reached.pop(at, None):
            wider[at] = _merge(np.concatenate([[low[at] << 32 | high[at]], *extra]))
        for parent in above[at]:
            if at in wider:
                reached.setdefault(parent, []).append(wider[at])
            elif not low[parent] <= high[at] <= high[parent]:
                reached.setdefault(parent, []).append(np.array([low[at] << 32 | high[at]], np.int64))
    by_number = np.argsort(high)
    spans = (np.array(low, np.int64) << 32 | np.array(high, np.int64))[by_number]
    pieces = [wider.get(int(at), spans[number : number + 1]) for number, at in enumerate(by_number)]
    flat = np.concatenate([np.empty(0, np.int64), *pieces])
    parents_of = [sorted(high[parent] for parent in above[at]) for at in by_number]
    return TaxonomyArrays(
        class_of={iri: high[at] for at, iri in enumerate(order)},
        interval_start=_starts(len(piece) for piece in pieces),
        interval_low=flat >> 32,
        interval_high=flat & 0xFFFFFFFF,
        parent_start=_starts(len(parents) for parents in parents_of),
        parent=np.array([number for numbers in parents_of for number in numbers], np.int64),
    )


def _merge(spans: Ints) -> Ints:
    """The union of intervals as sorted, disjoint ones that do not even touch."""
    spans = np.sort(spans)
    low, high = spans >> 32, np.maximum.accumulate(spans & 0xFFFFFFFF)
    first = np.flatnonzero(np.concatenate(([True], low[1:] > high[:-1] + 1)))
    last = np.append(first[1:] - 1, len(spans) - 1)
    merged: Ints = low[first] << 32 | high[last]
    return merged


def _starts(counts: Iterable[int]) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.fromiter(counts, np.int64))])
