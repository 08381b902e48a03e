"""What the sequences of subscriptions over tables start after, kept beside the state of their stream.

Sequences go on from one start of the stream to the next. Where that would tell a replica that nothing is missing although
something may be, all of them go on higher: each replica sees a gap, and asks for a snapshot.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tidings.storage import versions
from tidings.storage.event_log import sync

_MARK = "SEQUENCES"
_NOT_KEPT = "restored"  # no numbering of subscriptions has this name


def first_sequence(folder: Path) -> int:
    """What the sequence of each subscription starts after, for the joins' checkpoint of a stream."""
    return _read(folder)["first"]


def keep_sequences(index: Path, folder: Path, otherwise: int) -> bool:
    """Whether subscriptions over tables go on with their sequences, for the joins' checkpoint of a stream. They do not
    if its state is lost or was restored, or if the index was lost and gives them other numbers: then all of them go on
    after `otherwise`, which must be higher than any sequence. The stream must not be running."""
    facts = json.loads((index / f"v{versions.current(index).base}" / "joins" / "tables.json").read_text())
    numbering, known = facts.get("numbering", ""), _read(folder)
    kept = known["numbering"] in (numbering, None) and (folder / "spark" / "metadata").exists()
    _write(folder, numbering, known["first"] if kept else otherwise)
    return kept


def leave_sequences(folder: Path) -> None:
    """Has the sequences go on higher at the next start of the stream of a joins' checkpoint."""
    _write(folder, _NOT_KEPT, first_sequence(folder))


def _read(folder: Path) -> dict[str, Any]:
    mark = folder / _MARK
    return json.loads(mark.read_text()) if mark.exists() else {"numbering": None, "first": 0}


def _write(folder: Path, numbering: str, first: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder / f"{_MARK}.writing"
    aside.write_text(json.dumps({"numbering": numbering, "first": first}))
    sync(aside)
    aside.replace(folder / _MARK)
