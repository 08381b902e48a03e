"""A base of an index whose subscriptions are divided, so that a process need not hold all of them. RSS cluster, 3.

    v3/division.json    the place, the number of parts, the hash of the taxonomy, subscriptions and bytes of each folder
    v3/front/           a saved engine: what is never divided and, with the place `contain`, what no other contains
    v3/part-0/ …        saved engines, each with some of the others
    v3/routes/          of each subscription of the front, a bit for every part that holds something it contains
    v3/ids/             hashes of the ids in parts, ascending, with the part and the number there, and the number of the container

Places:

    split       every event visits the front and all parts
    contain     an event visits the front, and the parts of those subscriptions there that find it

Subscriptions that call operators, wait in networks, join tables, are of kinds of the user's own, or are candidates for
every event are never divided: these kinds see each event once. A container is found by every event that what it contains
is found by, so `contain` saves visits and changes no answer.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tidings.arrays import folders
from tidings.containment import forest
from tidings.engine.contracts import Kind
from tidings.engine.engine import Engine
from tidings.errors import IndexFileError, TidingsError
from tidings.kinds.operators.functions.operator import Operator

PLACES = ("split", "contain", "auto")
MAX_PARTS = 1_000
_FILE = "division.json"
_NAMED_TREES = 5
_WORTH_CONTAINING = (
    0.5  # of the subscriptions: with fewer, most of them would be in the front of every process
)


class Placement(NamedTuple):
    """How a base is to be divided; in one part it is not."""

    place: str
    parts: int


class Piece(NamedTuple):
    """The folder of a saved engine."""

    subscriptions: int
    bytes: int


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

    @property
    def placement(self) -> Placement:
        return Placement(self.place, len(self.parts))

    @classmethod
    def read(cls, base: Path) -> Division | None:
        """That of a base; None if it is not divided."""
        try:
            fields = json.loads((base / _FILE).read_text())
            place, taxonomy = str(fields["place"]), str(fields["taxonomy"])
            front, *parts = (Piece(int(count), int(size)) for count, size in fields["pieces"])
            return cls(place, taxonomy, tuple(map(str, fields["reads"])), front, tuple(parts), _trees(fields))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
            raise IndexFileError(
                f"{base / _FILE} cannot be read ({error!r:.200}); build the index anew"
            ) from None

    def write(self, base: Path) -> None:
        fields = {**self._asdict(), "pieces": [self.front, *self.parts]}
        (base / _FILE).write_text(
            json.dumps(
                {name: fields[name] for name in ("place", "taxonomy", "reads", "pieces", "trees")}, indent=1
            )
        )


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


def divide(engine: Engine, base: Path, placement: Placement, parents: np.ndarray | None = None) -> Division:
    """Writes an engine as a divided base. `parents` has for each live subscription of the index, in their order, the
    position of one that contains it, or -1; without it, the forest of containment is made."""
    check(placement)
    engine.save(base / "front")  # it folds, so that all are live
    index, place = engine.index, placement.place
    divisible = index.divisible()
    if parents is None and place != "split":
        parents = forest.parents(engine)
    contained = divisible & _has_container(parents, len(divisible))
    if place == "auto":
        place = "contain" if contained.sum() > _WORTH_CONTAINING * len(contained) else "split"
    if place == "contain":
        divisible = contained
    part, container = _spread(divisible, parents if place == "contain" else None, placement.parts)
    reads = set[str]()
    for number in range(placement.parts):
        piece = Engine(taxonomy=engine.taxonomy, prefixes=engine.prefixes)
        piece.index.take_over(index, part == number)
        reads |= piece.index.used_kinds()
        piece.save(part_of(base, number))
    _write_front(engine, base, divisible)
    ids = index.subscriptions.id_list(np.flatnonzero(divisible).tolist())
    number_in_front = np.cumsum(~divisible) - 1
    above = number_in_front[container[divisible]] if container is not None else None
    folders.save(base / "ids", _sorted_ids(ids, part[divisible], above), {})
    folders.save(base / "routes", {"parts": _routes(divisible, part, container, placement.parts)}, {})
    counts = np.bincount(part[divisible], minlength=placement.parts).tolist()
    made = Division(
        place,
        taxonomy_hash(base / "front"),
        tuple(sorted({"filters" if kind == "residuals" else kind for kind in reads})),
        Piece(int((~divisible).sum()), size_of(base / "front") + size_of(base / "routes")),
        tuple(Piece(count, size_of(part_of(base, number))) for number, count in enumerate(counts)),
        None if container is None else _forest_of(engine, parents, container[divisible]),
    )
    made.write(base)
    return made


def check(placement: Placement) -> None:
    """Refuses what no base can be divided into."""
    if placement.place not in PLACES:
        raise TidingsError(f"{placement.place!r} is no place; there are {', '.join(PLACES)}")
    if not 1 <= placement.parts <= MAX_PARTS:
        raise TidingsError(f"an index cannot have {placement.parts:,} parts; give 1 to {MAX_PARTS:,}")


def _forest_of(engine: Engine, parents: np.ndarray | None, roots: np.ndarray) -> Trees:
    """The trees that parents make; `roots` has one for each subscription below it."""
    assert parents is not None
    members = np.bincount(roots, minlength=1)
    largest = np.argsort(-members, kind="stable")[:_NAMED_TREES]
    largest = largest[members[largest] > 0]
    ids = engine.index.subscriptions.id_list(largest.tolist())
    depth, above = 0, np.asarray(parents)
    while len(above := above[above >= 0]):
        depth, above = depth + 1, parents[above]
    below = tuple(zip(ids, members[largest].tolist(), strict=True))
    return Trees(int((members > 0).sum()), depth, below)


def _has_container(parents: np.ndarray | None, count: int) -> np.ndarray:
    if parents is None:
        return np.zeros(count, dtype=np.bool_)
    if len(parents) != count or np.any(parents >= count):
        raise ValueError(
            f"parents are {len(parents)} numbers; give one below {count} for each of {count} subscriptions"
        )
    return np.asarray(parents) >= 0


def _spread(
    divisible: np.ndarray, above: np.ndarray | None, parts: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """The part of each subscription, -1 for the front, and its nearest container that is there. Parts take turns, so
    that they have equally many, and what one container has is in all of them."""
    part, members = np.full(len(divisible), -1, dtype=np.int32), np.flatnonzero(divisible)
    if above is None:
        part[members] = np.arange(len(members)) % parts
        return part, None
    container = np.where(divisible, above, np.arange(len(divisible)))
    for _ in range(max(1, len(divisible)).bit_length()):
        container = container[container]
    if divisible[container].any():
        raise ValueError("parents go in a circle; give each of equal subscriptions but one a parent")
    part[members[np.argsort(container[members], kind="stable")]] = np.arange(len(members)) % parts
    return part, container


def _routes(divisible: np.ndarray, part: np.ndarray, container: np.ndarray | None, parts: int) -> np.ndarray:
    """A row for each subscription of the front, a bit for each part."""
    routes = np.zeros((int((~divisible).sum()), (parts + 7) // 8), dtype=np.uint8)
    if container is not None:
        number_in_front = np.cumsum(~divisible) - 1
        of = part[divisible]
        bits = (128 >> (of & 7)).astype(np.uint8)
        np.bitwise_or.at(routes, (number_in_front[container[divisible]], of >> 3), bits)
    return routes


def _write_front(engine: Engine, base: Path, divided: np.ndarray) -> None:
    """Writes what stays of the engine that was saved as the front: a copy of it gives up what the parts have."""
    front = Engine.load(
        base / "front", operators=engine.operators, kinds=engine.own_kinds, taxonomy=engine.taxonomy
    )
    for number in np.flatnonzero(divided).tolist():
        front.index.subscriptions.end(number)
    front.save(base / "front")


def _sorted_ids(ids: list[str], part: np.ndarray, above: np.ndarray | None) -> dict[str, np.ndarray]:
    """Where the subscription with an id is, by the hash of the id. In each part they have the order they have here."""
    hashes = np.fromiter(map(id_hash, ids), dtype=np.uint64, count=len(ids))
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
        advice = "build it with --place split, or allow more"
    raise IndexFileError(f"{base} {what} {needed:,} bytes of memory, and {memory:,} are allowed; {advice}")
