"""What the workers of streams have learnt of operators, beside an index until its next base takes it in.

    ROOT/learnt/QUERY-v3.arrow       all that a stream has learnt with base 3, its newest micro-batch apart
    ROOT/v4/learnt/QUERY-v3.arrow    how much of it went into base 4

A file has one writer, the stream, and only grows: a micro-batch that is replayed replaces itself, and a new base
takes the difference to what the one before it had taken. So nothing counts twice, whoever is killed when.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tidings.arrays import folders
from tidings.engine.engine import Engine
from tidings.errors import IndexFileError
from tidings.kinds.operators.functions.catalogue import Catalogue
from tidings.kinds.operators.integrity import refuse_damage
from tidings.kinds.operators.learning import Diary, Learning, merged
from tidings.kinds.operators.predicates import Predicates
from tidings.storage.event_log import sync

FOLDER = "learnt"


class Told(NamedTuple):
    """What a stream had learnt before its newest micro-batch, the number of that, and what it learnt in it."""

    before: Learning = Learning()
    batch: int = -1
    newest: Learning = Learning()

    @property
    def all(self) -> Learning:
        return self.before.then(self.newest)

    def to_bytes(self) -> bytes:
        before = self.before.to_bytes()
        return f"{self.batch} {len(before)}\n".encode() + before + self.newest.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Told:
        """What `to_bytes` gave; nothing if it is something else: what is not known is learnt again."""
        try:
            head, _, rest = data.partition(b"\n")
            batch, length = map(int, head.split())
            return cls(Learning.from_bytes(rest[:length]), batch, Learning.from_bytes(rest[length:]))
        except (ValueError, IndexFileError):
            return cls()


def gather(root: Path, query: str, base: int, batch: int, learning: Learning) -> None:
    """Adds what a micro-batch of a stream has learnt with a base of the index; again, it replaces itself."""
    path = root / FOLDER / f"{query}-v{base}.arrow"
    told = Told.from_bytes(path.read_bytes()) if path.exists() else Told()
    if batch < told.batch or (not len(learning) and batch != told.batch):
        return
    before = told.before if batch == told.batch else told.all
    path.parent.mkdir(exist_ok=True)
    aside = path.with_suffix(".writing")
    aside.write_bytes(Told(before, batch, learning).to_bytes())
    sync(aside)
    aside.replace(path)


def take_in(root: Path, base: int | None, engine: Engine) -> dict[str, bytes]:
    """Lets an engine learn what streams have learnt since a base was written; for the next base, how much that was.

    An engine that has met no event begins with what was known in that base.
    """
    lessons, taken = [], {}
    folder = root / f"v{base}"
    if base is not None and not engine.heard:
        lessons.append(_known(folder))
    for path in sorted((root / FOLDER).glob("*.arrow")):
        data, earlier = path.read_bytes(), folder / FOLDER / path.name
        lesson = Told.from_bytes(data).all
        if earlier.exists():
            lesson = lesson.since(Told.from_bytes(earlier.read_bytes()).all)
            if not len(lesson) and not path.stem.endswith(f"-v{base}"):
                path.unlink()  # no stream goes on with it
                continue
        lessons.append(lesson)
        taken[path.name] = data
    engine.learn(merged(lessons))
    return taken


def is_news(root: Path, base: int) -> bool:
    """Whether streams have learnt anything since a base was written."""
    taken = root / f"v{base}" / FOLDER
    return any(
        not (taken / path.name).exists() or path.read_bytes() != (taken / path.name).read_bytes()
        for path in (root / FOLDER).glob("*.arrow")
    )


def note(folder: Path, taken: dict[str, bytes]) -> None:
    """Writes into the folder of a base what went into it."""
    (folder / FOLDER).mkdir()
    for name, data in taken.items():
        (folder / FOLDER / name).write_bytes(data)


def _known(base: Path) -> Learning:
    try:
        arrays, _ = folders.load(base / "operators")
        refuse_damage(base / "operators", arrays)
    except (IndexFileError, KeyError):  # the base may be built anew because of that
        return Learning()
    return Diary.whole(Predicates.thaw(arrays, Catalogue().find))
