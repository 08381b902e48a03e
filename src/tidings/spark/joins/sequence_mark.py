"""What the sequences of subscriptions over tables start after, kept beside the state of their stream.

Sequences continue from one start of the stream to the next. Where a replica would then not notice that something may be
missing, all of them continue at a higher number: each replica sees a gap, and requests a snapshot.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tidings.storage import versions
from tidings.storage.division import front_of
from tidings.storage.event_log import sync

_MARK = "SEQUENCES"
_NOT_KEPT = "restored"  # no numbering of subscriptions has this name


def first_sequence(folder: Path) -> int:
    """What the sequence of each subscription starts after, for the joins' checkpoint of a stream."""
    return int(_read(folder)["first"])


def are_kept(index: Path, folder: Path) -> bool:
    """Whether subscriptions over tables go on with their sequences, for the joins' checkpoint of a stream. They do not
    if its state is lost or was restored, or if the index was lost and gives them other numbers."""
    known = _read(folder)["numbering"]
    return known in (_numbering(index), None) and (folder / "spark" / "metadata").exists()


def start_sequences(index: Path, folder: Path, after: int | None) -> None:
    """Has all sequences start after a number, which must be higher than any before; with None they go on. The stream
    must not be running."""
    _write(folder, _numbering(index), first_sequence(folder) if after is None else after)


def leave_sequences(folder: Path) -> None:
    """Has the sequences go on higher at the next start of the stream of a joins' checkpoint."""
    _write(folder, _NOT_KEPT, first_sequence(folder))


def _numbering(index: Path) -> str:
    base = front_of(index / f"v{versions.current(index).base}")
    facts = json.loads((base / "joins" / "tables.json").read_text())
    return str(facts.get("numbering", ""))


def _read(folder: Path) -> dict[str, Any]:
    mark = folder / _MARK
    return json.loads(mark.read_text()) if mark.exists() else {"numbering": None, "first": 0}


def _write(folder: Path, numbering: str, first: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder / f"{_MARK}.writing"
    aside.write_text(json.dumps({"numbering": numbering, "first": first}))
    sync(aside)
    aside.replace(folder / _MARK)
