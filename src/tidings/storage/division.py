"""A base of an index whose subscriptions are divided, so that a process need not hold all of them. RSS cluster, 3.

    v3/division.json    the place, the number of parts, the hash of the taxonomy, subscriptions and bytes of each folder
    v3/front/           a saved engine: what is never divided and, with the place `contain`, what no other contains; then mergers
    v3/part-0/ …        saved engines, each with some of the others
    v3/routes/          of each subscription of the front, a bit for every part that holds something it contains
    v3/ids/             hashes of the ids in parts, ascending, with the part and the number there, and the number of the container
    v3/summaries/       what the events of a sample have in common (containment/summaries.py), if there was one

Places:

    split       every event visits the front and all parts
    contain     an event visits the front, and the parts of those subscriptions there that find it

Subscriptions that call operators, wait in networks, join tables, are of kinds of the user's own, or are candidates for
every event are never divided: these kinds see each event once. A container is found by every event that what it contains
is found by, so `contain` saves visits and changes no answer. So does a merger, which stands for several subscriptions in parts: it is a
subscription of the front that is ended as soon as it is opened, and routes like every dead container.
"""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tidings.arrays import folders
from tidings.containment import forest, merging
from tidings.containment.summaries import Summaries
from tidings.engine.contracts import Kind
from tidings.engine.engine import BroadSubscription, Engine
from tidings.errors import IndexFileError, TidingsError
from tidings.kinds.operators.functions.operator import Operator
from tidings.language.query import Query
from tidings.storage.part_layout import CountedMatches, PartLayout, contained_parts, split_parts

PLACES = ("split", "contain", "auto")
MAX_PARTS = 1_000
_FILE = "division.json"
_NAMED_TREES = 5


class Placement(NamedTuple):
    """How a base is to be divided; in one part it is not."""

    place: str
    parts: int
    merge: int = 0
    """With the place `contain`: how many percent of the subscriptions should not be in the front; what no other contains is
    merged for that. 0 merges nothing."""
    apart: bool = False
    """With the place `contain`: subscriptions that match together lie in different parts, not in the same (part_layout.py)."""


class Piece(NamedTuple):
    """The folder of a saved engine."""

    subscriptions: int
    bytes: int


class WrittenPart(NamedTuple):
    """A part whose folder is written: the hashes of its ids, in the order of their numbers, and the kinds that find its
    subscriptions."""

    hashes: np.ndarray
    reads: frozenset[str]


class Trees(NamedTuple):
    """The trees of containment that have more than a root."""

    roots: int
    depth: int
    """How many containers are above the lowest subscription."""
    largest: tuple[tuple[str, int], ...]
    """The ids of the roots of the largest ones, and how many subscriptions are below them."""


class Division(NamedTuple):
    """What `division.json` has."""

    place: str
    taxonomy: str
    reads: tuple[str, ...]
    """The kinds that find subscriptions in parts: the front reads events for them, and reports those that it cannot."""
    front: Piece
    parts: tuple[Piece, ...]
    trees: Trees | None = None
    """Those of the place `contain`."""
    merge: int = 0
    """The percentage that was wanted."""
    apart: bool = False
    mergers: int = 0
    """How many there are; they are behind the subscriptions of the front."""
    loads: tuple[float, ...] = ()
    """The share of each part in the matches that it was divided by, counted or of a sample; nothing without any."""

    @property
    def placement(self) -> Placement:
        return Placement(self.place, len(self.parts), self.merge, self.apart)

    def end_mergers(self, front: Engine) -> None:
        """Makes mergers dead, so that they route and are never reported."""
        for number in range(self.front.subscriptions, self.front.subscriptions + self.mergers):
            front.index.subscriptions.end(number)

    @classmethod
    def read(cls, base: Path) -> Division | None:
        """That of a base; None if it is not divided."""
        try:
            fields = json.loads((base / _FILE).read_text())
            place, taxonomy = str(fields["place"]), str(fields["taxonomy"])
            front, *parts = (Piece(int(count), int(size)) for count, size in fields["pieces"])
            reads = tuple(map(str, fields["reads"]))
            merge, apart = int(fields.get("merge", 0)), bool(fields.get("apart", False))
            mergers, loads = int(fields.get("mergers", 0)), tuple(map(float, fields.get("loads", ())))
            merged = merge, apart, mergers, loads
            return cls(place, taxonomy, reads, front, tuple(parts), _trees(fields), *merged)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
            raise IndexFileError(
                f"{base / _FILE} cannot be read ({error!r:.200}); build the index anew"
            ) from None

    def write(self, base: Path) -> None:
        fields = {**self._asdict(), "pieces": [self.front, *self.parts]}
        names = ("place", "taxonomy", "reads", "pieces", "trees", "merge", "apart", "mergers", "loads")
        (base / _FILE).write_text(json.dumps({name: fields[name] for name in names}, indent=1))


def _trees(fields: dict[str, Any]) -> Trees | None:
    if fields.get("trees") is None:
        return None
    roots, depth, largest = fields["trees"]
    return Trees(int(roots), int(depth), tuple((str(id), int(below)) for id, below in largest))


def front_of(base: Path) -> Path:
    """The folder of the engine that has a base's prefixes, networks, tables and operators."""
    return base / "front" if (base / _FILE).exists() else base


def pieces_of(base: Path) -> list[Path]:
    """The folders of all saved engines of a base, the front first."""
    division = Division.read(base)
    return [
        front_of(base),
        *(part_of(base, number) for number in range(len(division.parts) if division else 0)),
    ]


def part_of(base: Path, part: int) -> Path:
    return base / f"part-{part}"


def divide(
    engine: Engine,
    base: Path,
    placement: Placement,
    parents: np.ndarray | None = None,
    summaries: Summaries | None = None,
    counted: CountedMatches | None = None,
) -> Division:
    """Writes an engine as a divided base. `parents` has for each live subscription of the index, in their order, the
    position of one that contains it, or -1; without it, the forest of containment is made. Subscriptions that `summaries` match
    together are placed together. Parts are balanced by the matches that were `counted`, or else by those of the summaries."""
    check(placement)
    engine.save(base / "front")  # it folds, so that all are live
    index, place = engine.index, placement.place
    assert place != "auto", "it is chosen by placement_choice.py"
    divisible = index.divisible()
    count = len(divisible)
    if parents is None and place != "split":
        parents = forest.parents(engine)
    contained = divisible & _has_container(parents, count)
    mergers: list[Query] = []
    measured = _measured(engine, summaries, counted)
    if place == "contain":
        mergers, above = _merged(engine, parents, divisible & ~contained, placement.merge)
        divisible &= above[:count] >= 0
        layout = contained_parts(divisible, above, placement.parts, measured, apart=placement.apart)
    else:
        layout = split_parts(divisible, placement.parts)
    reads = set[str]()
    for number in range(placement.parts):
        piece = Engine(taxonomy=engine.taxonomy, prefixes=engine.prefixes)
        piece.index.take_over(index, layout.part == number)
        reads |= piece.index.used_kinds()
        piece.save(part_of(base, number))
    _write_front(engine, base, divisible, mergers)
    part = layout.part[divisible]
    ids = index.subscriptions.id_list(np.flatnonzero(divisible).tolist())
    hashes = np.fromiter(map(id_hash, ids), dtype=np.uint64, count=len(ids))
    folders.save(base / "ids", _sorted_ids(hashes, part, layout.container), {})
    folders.save(base / "routes", {"parts": layout.routes(int((~divisible).sum()) + len(mergers))}, {})
    if summaries is not None:
        summaries.save(base / "summaries")
    made = _division(base, place, int((~divisible).sum()), part, placement.parts, reads)._replace(
        trees=None if layout.container is None else _forest_of(engine, parents, divisible, layout.container),
        merge=placement.merge if place == "contain" else 0,
        apart=placement.apart and place == "contain",
        mergers=len(mergers),
        loads=layout.loads(measured[1]),
    )
    made.write(base)
    return made


def assemble_base(base: Path, front: Engine, parts: Sequence[WrittenPart]) -> Division:
    """Makes a base of parts that were written already, and of an engine with what cannot be divided: every event visits every
    part."""
    front.save(base / "front")
    part = np.repeat(np.arange(len(parts), dtype=np.int32), [len(each.hashes) for each in parts])
    hashes = np.concatenate([np.zeros(0, np.uint64), *(each.hashes for each in parts)])
    folders.save(base / "ids", _sorted_ids(hashes, part, None), {})
    count = len(front.index.subscriptions)
    folders.save(base / "routes", {"parts": PartLayout(part, len(parts)).routes(count)}, {})
    reads = {kind for each in parts for kind in each.reads}
    made = _division(base, "split", count, part, len(parts), reads)
    made.write(base)
    return made


def _division(
    base: Path, place: str, front: int, part: np.ndarray, parts: int, reads: Iterable[str]
) -> Division:
    """Of folders that are written; `part` has that of each divided subscription."""
    counts = np.bincount(part, minlength=parts).tolist()
    return Division(
        place,
        taxonomy_hash(base / "front"),
        tuple(sorted({"filters" if kind == "residuals" else kind for kind in reads})),
        Piece(front, size_of(base / "front") + size_of(base / "routes")),
        tuple(Piece(count, size_of(part_of(base, number))) for number, count in enumerate(counts)),
    )


def _merged(
    engine: Engine,
    parents: np.ndarray | None,
    roots: np.ndarray,
    merge: int,
) -> tuple[list[Query], np.ndarray]:
    """Mergers, and parents in which those of merged subscriptions are mergers, numbered behind all subscriptions."""
    assert parents is not None
    above, count = np.asarray(parents).copy(), len(parents)
    if not merge:
        return [], above
    kept = (
        count - int(roots.sum()) - int((above >= 0).sum())
    )  # what cannot be divided is no part of the front that is wanted
    mergers, merger = merging.merge(engine, roots, round((count - kept) * (100 - merge) / 100))
    above[merger >= 0] = count + merger[merger >= 0]
    return mergers, np.append(above, np.full(len(mergers), -1))


def _measured(
    engine: Engine, summaries: Summaries | None, counted: CountedMatches | None
) -> tuple[np.ndarray, np.ndarray]:
    """Of each subscription the first summary that matches it, -1 without one, and its matches: of the sample, or as they were counted."""
    count = len(engine.index.subscriptions)
    first, matches = np.full(count, -1), np.zeros(count)
    owned = forest.patterns_of(engine)
    if summaries is not None and owned is not None:
        summary, row = summaries.matched_rows(forest.finder_of(owned))
        subscription = owned.subscription[row]
        first[subscription[::-1]] = summary[::-1]
        np.add.at(matches, subscription, summaries.matches[summary])
    return first, matches if counted is None else counted.by_subscription(matches)


def check(placement: Placement) -> None:
    """Refuses what no base can be divided into."""
    if placement.place not in PLACES:
        raise TidingsError(f"{placement.place!r} is no place; there are {', '.join(PLACES)}")
    if not 1 <= placement.parts <= MAX_PARTS:
        raise TidingsError(f"an index cannot have {placement.parts:,} parts; give 1 to {MAX_PARTS:,}")


def _forest_of(
    engine: Engine, parents: np.ndarray | None, divided: np.ndarray, container: np.ndarray
) -> Trees:
    """The trees that parents make of what is divided; `container` has the number of each one's container in the front."""
    assert parents is not None
    members = np.bincount(container, minlength=1)
    largest = np.argsort(-members, kind="stable")[:_NAMED_TREES]
    front = np.flatnonzero(~divided)
    largest = largest[(members[largest] > 0) & (largest < len(front))]
    ids = engine.index.subscriptions.id_list(front[largest].tolist())
    depth, above = 0, np.asarray(parents)
    while len(above := above[above >= 0]):
        depth, above = depth + 1, parents[above]
    below = tuple(zip(ids, members[largest].tolist(), strict=True))
    return Trees(int((members[: len(front)] > 0).sum()), depth, below)


def _has_container(parents: np.ndarray | None, count: int) -> np.ndarray:
    if parents is None:
        return np.zeros(count, dtype=np.bool_)
    if len(parents) != count or np.any(parents >= count):
        raise ValueError(
            f"parents are {len(parents)} numbers; give one below {count} for each of {count} subscriptions"
        )
    return np.asarray(parents) >= 0


def _write_front(engine: Engine, base: Path, divided: np.ndarray, mergers: list[Query]) -> None:
    """Writes what stays of the engine that was saved as the front: a copy of it gives up what the parts have, and gets mergers."""
    front = Engine.load(
        base / "front", operators=engine.operators, kinds=engine.own_kinds, taxonomy=engine.taxonomy
    )
    for number in np.flatnonzero(divided).tolist():
        front.index.subscriptions.end(number)
    name = "merger"
    while any(f"{name} {number}" in engine for number in range(len(mergers))):
        name += "-"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BroadSubscription)
        for number, merger in enumerate(mergers):
            front.subscribe(f"{name} {number}", merger)
    front.save(base / "front")


def _sorted_ids(hashes: np.ndarray, part: np.ndarray, above: np.ndarray | None) -> dict[str, np.ndarray]:
    """Where the subscription with an id is, by the hash of the id. In each part they have the order they have here."""
    order = np.argsort(part, kind="stable")
    first = np.searchsorted(part[order], part)
    number = np.empty(len(part), dtype=np.int32)
    number[order] = np.arange(len(part), dtype=np.int32) - first[order]
    by_hash = np.argsort(hashes, kind="stable")
    found: dict[str, np.ndarray] = {
        "hash": hashes[by_hash],
        "part": part[by_hash].astype(np.int16),
        "number": number[by_hash],
    }
    return found if above is None else found | {"above": above[by_hash].astype(np.int32)}


def id_hash(id: str) -> np.uint64:
    return np.uint64(
        int.from_bytes(hashlib.blake2b(id.encode(errors="surrogatepass"), digest_size=8).digest())
    )


def taxonomy_hash(folder: Path) -> str:
    return hashlib.sha256((folder / "taxonomy.nt").read_bytes()).hexdigest()


def load_whole(base: Path, *, operators: Iterable[Operator] = (), kinds: Iterable[Kind] = ()) -> Engine:
    """One engine with all subscriptions of a base, divided or not."""
    kinds = tuple(kinds)
    engine, division = Engine.load(front_of(base), operators=operators, kinds=kinds), Division.read(base)
    if division is not None:
        division.end_mergers(engine)
    for number, piece in enumerate(division.parts if division is not None else ()):
        part = Engine.load(part_of(base, number), kinds=kinds, taxonomy=engine.taxonomy)
        engine.index.take_over(part.index, np.ones(piece.subscriptions, dtype=np.bool_))
    return engine


def size_of(folder: Path) -> int:
    """The bytes of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def refuse_too_large(base: Path, division: Division | None, memory: int) -> None:
    """Refuses a base of which not even the front and one part can be open at once."""
    front = size_of(base) if division is None else division.front.bytes
    parts = [piece.bytes for piece in division.parts] if division is not None else []
    needed = front + max(parts, default=0)
    if needed <= memory:
        return
    what = "is not divided and needs" if division is None else "needs for its front and one part"
    rest = front if division is None else sum(parts)
    room = memory if division is None else memory - front
    if room > 0:
        advice = f"build it with --parts {math.ceil(rest / room) + 1}, or allow more"
    else:
        is_split = division is not None and division.place == "split"
        advice = "allow more" if is_split else "build it with --place split, or allow more"
    raise IndexFileError(f"{base} {what} {needed:,} bytes of memory, and {memory:,} are allowed; {advice}")
