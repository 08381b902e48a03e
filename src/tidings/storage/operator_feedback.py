"""Stores what the workers of streams have learnt of operators beside an index, until the next base includes it.

    ROOT/learnt/QUERY-v3.arrow       all that a stream has learnt with base 3, its newest micro-batch apart
    ROOT/v4/learnt/QUERY-v3.arrow    how much of it went into base 4

A file has one writer, the stream, and only grows: a micro-batch that is replayed replaces itself, and a new base
includes the difference to what the base before it had included. So nothing is counted twice after a crash.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tidings.arrays import folders
from tidings.engine.engine import Engine
from tidings.errors import IndexFileError
from tidings.kinds.operators.functions.catalogue import Catalogue
from tidings.kinds.operators.integrity import refuse_damage
from tidings.kinds.operators.learning import Learning, LearningRecorder, merged
from tidings.kinds.operators.predicates import Predicates
from tidings.storage.division import front_of
from tidings.storage.event_log import sync

FOLDER = "learnt"


class StreamFeedback(NamedTuple):
    """What a stream had learnt before its newest micro-batch, that batch's number, and what was learnt in it."""

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
    def from_bytes(cls, data: bytes) -> StreamFeedback:
        """Reads what `to_bytes` wrote; empty if the data is anything else: it will be learnt again."""
        try:
            head, _, rest = data.partition(b"\n")
            batch, length = map(int, head.split())
            return cls(Learning.from_bytes(rest[:length]), batch, Learning.from_bytes(rest[length:]))
        except (ValueError, IndexFileError):
            return cls()


def record(root: Path, query: str, base: int, batch: int, learning: Learning) -> None:
    """Adds what a micro-batch of a stream has learnt with a base of the index; a replayed batch replaces itself."""
    path = root / FOLDER / f"{query}-v{base}.arrow"
    known = StreamFeedback.from_bytes(path.read_bytes()) if path.exists() else StreamFeedback()
    if batch < known.batch or (not len(learning) and batch != known.batch):
        return
    before = known.before if batch == known.batch else known.all
    path.parent.mkdir(exist_ok=True)
    aside = path.with_suffix(".writing")
    aside.write_bytes(StreamFeedback(before, batch, learning).to_bytes())
    sync(aside)
    aside.replace(path)


def apply_feedback(root: Path, base: int | None, engine: Engine) -> dict[str, bytes]:
    """Adds what streams have learnt since a base was written to an engine; returns the files for `write_applied`.

    An engine that has matched no event also gets what that base had learnt.
    """
    learnings, applied = [], {}
    folder = root / f"v{base}"
    if base is not None and not engine.evaluated_events:
        learnings.append(_saved_learning(folder))
    for path in sorted((root / FOLDER).glob("*.arrow")):
        data, earlier = path.read_bytes(), folder / FOLDER / path.name
        learning = StreamFeedback.from_bytes(data).all
        if earlier.exists():
            learning = learning.since(StreamFeedback.from_bytes(earlier.read_bytes()).all)
            if not len(learning) and not path.stem.endswith(f"-v{base}"):
                path.unlink()  # no stream goes on with it
                continue
        learnings.append(learning)
        applied[path.name] = data
    engine.learn(merged(learnings))
    return applied


class OperatorCalls(NamedTuple):
    """How often an operator was called, the seconds of all calls together, and how many failed."""

    calls: int
    seconds: float
    failures: int


def calls_by_operator(root: Path, base: int) -> dict[str, OperatorCalls]:
    """What was measured of operators, by their names: in a base, and by streams since it was written."""
    folder = root / f"v{base}"
    learnings = [_saved_learning(folder)]
    for path in (root / FOLDER).glob("*.arrow"):
        learning, earlier = StreamFeedback.from_bytes(path.read_bytes()).all, folder / FOLDER / path.name
        if earlier.exists():
            learning = learning.since(StreamFeedback.from_bytes(earlier.read_bytes()).all)
        learnings.append(learning)
    rows = merged(learnings).rows
    sums: dict[str, list[float]] = {}
    columns = [rows[name].to_pylist() for name in ("calls", "seconds", "failures")]
    for text, *counts in zip(rows["text"].to_pylist(), *columns, strict=True):
        name = text.partition(b"(")[0].decode("utf-8", "replace")  # the text of an evaluation: near('Bronx')
        before = sums.get(name, [0.0, 0.0, 0.0])
        sums[name] = [known + (count or 0.0) for known, count in zip(before, counts, strict=True)]
    return {
        name: OperatorCalls(round(calls), seconds, round(failures))
        for name, (calls, seconds, failures) in sums.items()
        if calls
    }


def has_new_feedback(root: Path, base: int) -> bool:
    """Whether streams have learnt anything since a base was written."""
    applied = root / f"v{base}" / FOLDER
    return any(
        not (applied / path.name).exists() or path.read_bytes() != (applied / path.name).read_bytes()
        for path in (root / FOLDER).glob("*.arrow")
    )


def write_applied(folder: Path, applied: dict[str, bytes]) -> None:
    """Writes into the folder of a base the feedback that it includes."""
    (folder / FOLDER).mkdir()
    for name, data in applied.items():
        (folder / FOLDER / name).write_bytes(data)


def _saved_learning(base: Path) -> Learning:
    try:
        folder = front_of(base) / "operators"
        arrays, _ = folders.load(folder)
        refuse_damage(folder, arrays)
    except (IndexFileError, KeyError):  # the base may be rebuilt because of that
        return Learning()
    return LearningRecorder.whole(Predicates.thaw(arrays, Catalogue().find))
