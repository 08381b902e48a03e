"""Writes versions of an index: changes are appended to the tail, a new base is written aside and made the current one.

One writer at a time holds the lock of the folder, and a change is tried before it is written. A base is written without the lock where that takes long,
so that changes go on; those that it does not hold begin its tail.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pyarrow as pa

from tidings.containment.summaries import Summaries
from tidings.engine.contracts import Kind
from tidings.engine.engine import Engine
from tidings.errors import IndexFileError, TidingsError
from tidings.kinds.joins.schema.declarations import saved_tables
from tidings.kinds.networks.kind import load_networks
from tidings.kinds.networks.network import Network
from tidings.kinds.operators.functions.operator import Operator
from tidings.storage import checksums, operator_feedback, remote_index
from tidings.storage.division import Division, Placement, check, divide, front_of
from tidings.storage.event_log import sync
from tidings.storage.part_loads import counted_matches
from tidings.storage.placement_choice import NO_FACTS, BuildFacts, Choice, write_best
from tidings.storage.renumbering import keep_numbers
from tidings.storage.tail_changes import Change, NetworkChange, apply, from_line, to_line
from tidings.storage.tail_file import extend, read_bytes
from tidings.storage.version_folders import (
    Version,
    changes_of,
    current,
    current_base,
    folder_of,
    lock,
    reading,
    set_current,
    tail_of,
)
from tidings.storage.version_opening import Code, joins, replay_whole


def publish(
    root: str | Path,
    engine: Engine,
    *,
    at_least: int = 1,
    placement: Placement | None = None,
    parents: np.ndarray | None = None,
    sample: pa.Table | None = None,
    memory: int | None = None,
) -> Version:
    """Writes the engine's subscriptions and networks as a new base and makes it the current one; its number is at
    least `at_least`. It is divided by `placement`, or as the current one is. `parents` is the forest of containment, if it is
    known already. `sample` are events as they are expected, by which subscriptions that match together are put into one part; without it, those of
    the current base count. The place "auto" is chosen by them, and by the bytes that one process may have open (`memory`).

    Subscriptions over tables that were in the last version too, with the same text, go on with their sequences. At an address
    nothing can be locked: one process at a time may publish there.
    """
    if isinstance(root, str) and remote_index.is_address(root):
        with remote_index.working_copy(root) as here:
            at_least = max(at_least, remote_index.last_base(root) + 1)
            version = publish(
                here,
                engine,
                at_least=at_least,
                placement=placement,
                parents=parents,
                sample=sample,
                memory=memory,
            )
            remote_index.upload(here, version.base, root)
            return version
    root = Path(root)
    root.mkdir(parents=True, exist_ok=True)
    with lock(root):
        _number_joins(root, engine)
        return _publish(root, engine, at_least, placement, BuildFacts(parents, sample, memory))


def publish_parts(root: Path, front: Engine, write: Callable[[Path], None]) -> Version:
    """Makes a divided base the current one that `write` writes into a folder, with this engine as its front."""
    root.mkdir(parents=True, exist_ok=True)
    with lock(root, "COMPACTING"):
        for left in root.glob("building-*"):
            shutil.rmtree(left, ignore_errors=True)
        # A task of a build that has failed may still write into its own folder.
        aside = root / f"building-{uuid.uuid4().hex}"
        with _removing_if_it_fails(aside):
            aside.mkdir()
            with lock(root):
                _number_joins(root, front)
            write(aside)
            _seal(aside)
        with lock(root):
            return set_current(root, aside, b"", 1)


def write_aside(root: str | Path, engine: Engine) -> Path:
    """Writes the engine as a base that has no number yet, while the current one goes on; for `switch`."""
    root = remote_index.own_folder(root)
    with lock(root):
        base = current_base(root)
        taken = operator_feedback.apply_feedback(root, base, engine)
    aside = root / "defining"
    _write(aside, engine, taken, _placement(root, base), _summaries(root, base, engine), _facts(root, base))
    return aside


def switch(root: str | Path, aside: Path, changes: Iterable[Change], *, at_least: int = 1) -> Version:
    """Makes a base that was written aside the current one. Its tail begins with changes, which were tried with it."""
    root = remote_index.own_folder(root)
    with lock(root):
        return set_current(root, aside, b"".join(map(to_line, changes)), at_least)


def append(
    root: str | Path,
    changes: Iterable[Change | NetworkChange],
    *,
    operators: Iterable[Operator] = (),
    kinds: Iterable[Kind] = (),
    before_write: Callable[[], None] = lambda: None,
) -> Version:
    """Appends changes to the current tail, all or none: each is tried first, on all that came before it.

    `operators` are those that the changes call, and `kinds` those that they are of, beside those of installed packages.
    `before_write` is called when all are found to be right, and none is written yet.
    """
    root = remote_index.own_folder(root)
    with lock(root):
        version = current(root)
        lines = [to_line(change) for change in changes]
        named = any(b'"network"' in line or b"via" in line.lower() for line in lines)
        networks = _networks(root, version) if named else {}
        folder = front_of(folder_of(root, version))
        with reading(folder):
            prefixes = json.loads((folder / "prefixes.json").read_text())
            tables = saved_tables(json.loads((folder / "joins" / "tables.json").read_text())["tables"])
        # Nothing but what changes are read by: its prefixes, its networks and its tables.
        trial = Engine(prefixes=prefixes, networks=networks, operators=operators, tables=tables, kinds=kinds)
        for line in lines:
            apply(from_line(line), trial)
        before_write()
        extend(tail_of(root, version), version.offset, b"".join(lines))
        after = Version(version.base, version.offset + sum(map(len, lines)))
        if named:
            _tried[root.resolve()] = after, networks
        return after


def set_network(
    root: str | Path,
    name: str,
    network: Network,
    *,
    operators: Iterable[Operator] = (),
    kinds: Iterable[Kind] = (),
) -> Version:
    """Publishes a new base in which `network` has this name, instead of any that had it before."""
    root = remote_index.own_folder(root)
    with lock(root):
        engine = replay_whole(root, current(root), Code.of(operators, kinds))
        engine.networks[name] = network
        return _publish(root, engine)


def compact(
    root: str | Path,
    *,
    operators: Iterable[Operator] = (),
    kinds: Iterable[Kind] = (),
    at_least: int = 1,
    sample: pa.Table | None = None,
) -> Version:
    """Folds the current tail, and what streams have learnt of operators, into a new base, whose number is at least
    `at_least`. It is divided as the current one is, by the events of `sample` as in `publish`; its parts are balanced by the
    matches that streams have counted in the current ones, or else by those of the sample.

    Changes go on being appended meanwhile: those that the new base does not hold are the beginning of its tail. If another base
    was published meanwhile, that one stays the current one.
    """
    root = remote_index.own_folder(root)
    with lock(root, "COMPACTING"):
        version = current(root)
        if not version.offset and not operator_feedback.has_new_feedback(root, version.base):
            return version
        engine = replay_whole(root, version, Code.of(operators, kinds))
        with lock(root):
            taken = operator_feedback.apply_feedback(root, version.base, engine)
        aside = root / "compacting"
        base = version.base
        counted = counted_matches(root, base, engine)
        facts = _facts(root, base)._replace(sample=sample, counted=counted)
        _write(aside, engine, taken, _placement(root, base), _summaries(root, base, engine, sample), facts)
        with lock(root):
            now = current(root)
            if now.base != version.base:
                shutil.rmtree(aside)
                return now
            return set_current(
                root, aside, read_bytes(tail_of(root, now), version.offset, now.offset), at_least
            )


def _number_joins(root: Path, engine: Engine) -> None:
    """Subscriptions over tables that the current version has too go on with their numbers."""
    if engine.joins.tables:
        kept = False
        with suppress(TidingsError):  # of what cannot be read nothing goes on
            version = current(root)
            folder = folder_of(root, version)
            part = (front_of(folder) / "joins").relative_to(folder).as_posix()
            checksums.verify(folder, lambda name: name.startswith(f"{part}/"))
            kept = keep_numbers(joins(root, version), engine)
        if not kept:
            engine.joins.numbering = uuid.uuid4().hex


_tried: dict[Path, tuple[Version, dict[str, Network]]] = {}


def _networks(root: Path, version: Version) -> dict[str, Network]:
    """The networks of a version, to try changes on. They are kept for the next time if all changes could be made."""
    kept = _tried.pop(root.resolve(), None)
    if kept is not None and kept[0].base == version.base and kept[0].offset <= version.offset:
        start, trial = kept[0].offset, Engine(networks=kept[1])
    else:
        with reading(folder := front_of(folder_of(root, version))):
            start, trial = 0, Engine(networks=load_networks(folder))
    for change in changes_of(root, start, version):
        if isinstance(change, NetworkChange):
            apply(change, trial)
    return trial.networks


def _publish(
    root: Path,
    engine: Engine,
    at_least: int = 1,
    placement: Placement | None = None,
    facts: BuildFacts = NO_FACTS,
) -> Version:
    """The caller holds the lock."""
    base = None
    with suppress(IndexFileError):
        base = current_base(root)
    aside = root / "publishing"
    taken = operator_feedback.apply_feedback(root, base, engine)
    summaries = _summaries(root, base, engine, facts.sample)
    _write(aside, engine, taken, placement or _placement(root, base), summaries, facts)
    return set_current(root, aside, b"", at_least)


def _placement(root: Path, base: int | None) -> Placement:
    """How a base is divided, or was to be; in one part if it is not, or cannot be read."""
    with suppress(IndexFileError):
        if (choice := Choice.read(root / f"v{base}")) is not None:
            return choice.placement
        division = Division.read(root / f"v{base}")
        if division is not None:
            return division.placement
    return Placement("split", 1)


def _facts(root: Path, base: int | None) -> BuildFacts:
    """The memory that a base was chosen for."""
    with suppress(IndexFileError):
        if (choice := Choice.read(root / f"v{base}")) is not None:
            return BuildFacts(memory=choice.memory)
    return NO_FACTS


def _summaries(
    root: Path, base: int | None, engine: Engine, sample: pa.Table | None = None
) -> Summaries | None:
    """What a sample has in common; without one, what the subscriptions of a base were placed by."""
    if sample is not None and len(sample):
        return Summaries.collect(engine, sample)
    with suppress(IndexFileError):
        return Summaries.load(root / f"v{base}" / "summaries")
    return None


def _write(
    aside: Path,
    engine: Engine,
    taken: dict[str, bytes],
    placement: Placement,
    summaries: Summaries | None,
    facts: BuildFacts = NO_FACTS,
) -> None:
    """Writes a base that has no number yet."""
    with _removing_if_it_fails(aside):
        if placement.parts == 1:
            engine.save(aside)
        else:
            check(placement)
            if placement.place == "auto":
                write_best(engine, aside, placement, summaries, facts)
            else:
                divide(engine, aside, placement, facts.parents, summaries, facts.counted)
        operator_feedback.write_applied(aside, taken)
        _seal(aside)


@contextmanager
def _removing_if_it_fails(aside: Path) -> Iterator[None]:
    """Removes the folder if writing fails, so that a full disk gets its room back."""
    shutil.rmtree(aside, ignore_errors=True)
    try:
        yield
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def _seal(aside: Path) -> None:
    """Writes checksums, and everything to disk."""
    checksums.write(aside)
    for path in [*aside.rglob("*"), aside]:
        sync(path)
