"""Versions of an index as folders: a base that is mapped into memory, and a tail of changes behind it.

    ROOT/CURRENT     the number of the newest base
    ROOT/v3/         a base: the folder of a saved engine, or of several if its subscriptions are divided (division.py)
    ROOT/v3.tail     changes since, one JSON object a line, only ever appended to
    ROOT/checked/    what checks of bases have found (checksums.py)
    ROOT/learnt/     what streams have learnt of operators (operator_feedback.py), which the next base begins with
    ROOT/LOCK        held while a tail grows or CURRENT is replaced; ROOT/COMPACTING while a tail is folded

A version is a base and a number of bytes of its tail, so it names one state of subscriptions and networks for good:
it gives the same answers today and after a crash. A base is written aside and renamed, CURRENT is replaced,
the tail is flushed to disk before its new length is returned. Bases that are not pinned any more can be dropped. A base
number is given once: a caller that may lose the folder keeps the last number elsewhere, and requires a higher one.

What reads takes an address, such as s3://bucket/index, in place of a folder, and so does `publish` (remote_index.py).
"""

from __future__ import annotations

import fcntl
import json
import re
import shutil
import threading
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tidings.arrays import folders
from tidings.containment.summaries import Summaries
from tidings.engine.contracts import Kind
from tidings.engine.engine import Engine
from tidings.errors import IndexFileError, SubscriptionError, TidingsError
from tidings.kinds.joins.kind import Joins
from tidings.kinds.joins.schema.declarations import saved_tables
from tidings.kinds.networks.kind import load_networks
from tidings.kinds.networks.network import Network
from tidings.kinds.operators.functions.catalogue import Catalogue
from tidings.kinds.operators.functions.operator import Operator
from tidings.kinds.operators.functions.signature import OperatorError
from tidings.kinds.operators.table import saved_calls
from tidings.language.parser import parse
from tidings.language.query import Call, leaves
from tidings.language.query_json import json_calls
from tidings.storage import checksums, operator_feedback, remote_index
from tidings.storage.divided_index import DividedIndex
from tidings.storage.division import Division, check, divide, front_of, load_whole, refuse_too_large
from tidings.storage.division import Placement as Placement
from tidings.storage.event_log import sync
from tidings.storage.placement_choice import NO_FACTS, BuildFacts, Choice, write_best
from tidings.storage.renumbering import keep_numbers
from tidings.storage.tail_changes import Change as Change
from tidings.storage.tail_changes import NetworkChange as NetworkChange
from tidings.storage.tail_changes import StoredQuery, apply, from_line, to_line
from tidings.storage.tail_file import complete_length, extend, read_bytes, read_changes


class Code(NamedTuple):
    """What an index needs and does not hold: the operators and the kinds of the user's own."""

    operators: tuple[Operator, ...]
    kinds: tuple[Kind, ...]

    @classmethod
    def of(cls, operators: Iterable[Operator], kinds: Iterable[Kind]) -> Code:
        return cls(tuple(operators), tuple(kinds))


class Version(NamedTuple):
    """Base `base` and the first `offset` bytes of its tail; written "v3+1234"."""

    base: int
    offset: int

    def __str__(self) -> str:
        return f"v{self.base}+{self.offset}"

    @classmethod
    def parse(cls, text: str) -> Version:
        found = re.fullmatch(r"v(\d+)\+(\d+)", text.strip())
        if found is None:
            raise IndexFileError(f"{text!r} names no version; versions are written like v3+1234")
        return cls(int(found[1]), int(found[2]))


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
    with _lock(root):
        _number_joins(root, engine)
        return _publish(root, engine, at_least, placement, BuildFacts(parents, sample, memory))


def _number_joins(root: Path, engine: Engine) -> None:
    """Subscriptions over tables that the current version has too go on with their numbers."""
    if engine.joins.tables:
        kept = False
        with suppress(TidingsError):  # of what cannot be read nothing goes on
            version = current(root)
            folder = _folder(root, version)
            part = (front_of(folder) / "joins").relative_to(folder).as_posix()
            checksums.verify(folder, lambda name: name.startswith(f"{part}/"))
            kept = keep_numbers(joins(root, version), engine)
        if not kept:
            engine.joins.numbering = uuid.uuid4().hex


def publish_parts(root: Path, front: Engine, write: Callable[[Path], None]) -> Version:
    """Makes a divided base the current one that `write` writes into a folder, with this engine as its front."""
    root.mkdir(parents=True, exist_ok=True)
    with _lock(root, "COMPACTING"):
        for left in root.glob("building-*"):
            shutil.rmtree(left, ignore_errors=True)
        # A task of a build that has failed may still write into its own folder.
        aside = root / f"building-{uuid.uuid4().hex}"
        with _removing_if_it_fails(aside):
            aside.mkdir()
            with _lock(root):
                _number_joins(root, front)
            write(aside)
            _seal(aside)
        with _lock(root):
            return _set_current(root, aside, b"", 1)


def write_aside(root: str | Path, engine: Engine) -> Path:
    """Writes the engine as a base that has no number yet, while the current one goes on; for `switch`."""
    root = remote_index.own_folder(root)
    with _lock(root):
        base = _current_base(root)
        taken = operator_feedback.apply_feedback(root, base, engine)
    aside = root / "defining"
    _write(aside, engine, taken, _placement(root, base), _summaries(root, base), _facts(root, base))
    return aside


def switch(root: str | Path, aside: Path, changes: Iterable[Change], *, at_least: int = 1) -> Version:
    """Makes a base that was written aside the current one. Its tail begins with changes, which were tried with it."""
    root = remote_index.own_folder(root)
    with _lock(root):
        return _set_current(root, aside, b"".join(map(to_line, changes)), at_least)


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
    with _lock(root):
        version = current(root)
        lines = [to_line(change) for change in changes]
        named = any(b'"network"' in line or b"via" in line.lower() for line in lines)
        networks = _networks(root, version) if named else {}
        folder = front_of(_folder(root, version))
        with _reading(folder):
            prefixes = json.loads((folder / "prefixes.json").read_text())
            tables = saved_tables(json.loads((folder / "joins" / "tables.json").read_text())["tables"])
        # Nothing but what changes are read by: its prefixes, its networks and its tables.
        trial = Engine(prefixes=prefixes, networks=networks, operators=operators, tables=tables, kinds=kinds)
        for line in lines:
            apply(from_line(line), trial)
        before_write()
        extend(_tail(root, version), version.offset, b"".join(lines))
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
    with _lock(root):
        engine = _replay_whole(root, current(root), Code.of(operators, kinds))
        engine.networks[name] = network
        return _publish(root, engine)


def compact(
    root: str | Path, *, operators: Iterable[Operator] = (), kinds: Iterable[Kind] = (), at_least: int = 1
) -> Version:
    """Folds the current tail, and what streams have learnt of operators, into a new base, whose number is at least
    `at_least`.

    Changes go on being appended meanwhile: those that the new base does not hold are the beginning of its tail. If another base
    was published meanwhile, that one stays the current one.
    """
    root = remote_index.own_folder(root)
    with _lock(root, "COMPACTING"):
        version = current(root)
        if not version.offset and not operator_feedback.has_new_feedback(root, version.base):
            return version
        engine = _replay_whole(root, version, Code.of(operators, kinds))
        with _lock(root):
            taken = operator_feedback.apply_feedback(root, version.base, engine)
        aside = root / "compacting"
        base = version.base
        _write(aside, engine, taken, _placement(root, base), _summaries(root, base), _facts(root, base))
        with _lock(root):
            now = current(root)
            if now.base != version.base:
                shutil.rmtree(aside)
                return now
            return _set_current(
                root, aside, read_bytes(_tail(root, now), version.offset, now.offset), at_least
            )


def current(root: str | Path) -> Version:
    """The newest version."""
    root = remote_index.local_root(root)
    base = _current_base(root)
    return Version(base, complete_length(root / f"v{base}.tail"))


def _current_base(root: Path) -> int:
    try:
        return int((root / "CURRENT").read_text())
    except (OSError, ValueError):
        raise IndexFileError(f"{root} holds no index; make one with 'tidings index build'") from None


def drop(root: str | Path, pinned: Iterable[Version] = ()) -> list[int]:
    """Removes the bases that are neither current nor pinned; returns their numbers."""
    root = remote_index.own_folder(root)
    with _lock(root):
        kept = {current(root).base, *(version.base for version in pinned)}
        gone = [n for n in _bases(root) if n not in kept]
        for number in gone:
            _remove(root, number)
        return gone


def discard(root: str | Path, damaged: int) -> None:
    """Removes a base that is damaged and not current any more, so that a reader that pinned it gets no wrong answers."""
    root = remote_index.own_folder(root)
    with _lock(root):
        if current(root).base != damaged:
            _remove(root, damaged)


def last_base(root: str | Path) -> int:
    """The highest number of a base in the folder, whether it is whole or not; 0 without any."""
    return max([0, *_bases(Path(root))])


def is_there(root: str | Path, version: Version) -> bool:
    """Whether a version can be opened, as far as that is known without reading it."""
    try:
        root = remote_index.local_root(root, *version)
        with _tail(root, version).open("rb") as tail:
            tail.seek(max(0, version.offset - 1))
            ends = not version.offset or tail.read(1) == b"\n"
        checksums.refuse_damaged(root, version.base)
        return ends and _folder(root, version).is_dir()
    except (OSError, IndexFileError):
        return False


def try_open(root: str | Path, version: Version, *, operators: Iterable[Operator] = ()) -> None:
    """Opens a version without keeping it; an error says why it cannot be."""
    root = remote_index.local_root(root, *version)
    checksums.refuse_damaged(root, version.base)
    index = _load(_folder(root, version), Code.of(operators, ()))
    if isinstance(index, DividedIndex):
        for number in range(len(index.division.parts)):
            index.part(number)
    _changes(root, 0, version)


def verify(root: str | Path, version: Version) -> bool:
    """Reads all of a version; IndexFileError if any of it is not as it was written. Returns False if its base was
    written before there were checksums."""
    root = remote_index.local_root(root, *version)
    remote_index.fetch_all_parts(root, version.base)
    _changes(root, 0, version)
    return checksums.verify(_folder(root, version))


class _Opened(NamedTuple):
    version: Version
    code: Code
    memory: int | None
    engine: Engine


_opened: dict[Path, _Opened] = {}
_opening = threading.Lock()  # two threads must not replay one tail on the same engine


def open(
    root: str | Path,
    version: Version,
    *,
    operators: Iterable[Operator] = (),
    kinds: Iterable[Kind] = (),
    memory: int | None = None,
) -> Engine:
    """The engine of a version, with the operators that its subscriptions call and the kinds that they are of, beside
    those of installed packages. A `DividedIndex` if its base is divided; `memory` is how many bytes of the files of a
    base may be open at once.

    The last one opened of each root is kept, and a longer tail is replayed on it. So are the rows of tables that were
    published to it: they are no part of a version. The checksums of a base are looked at in a thread: once they were found to
    be wrong, on this host, its versions are refused.
    """
    root, code = remote_index.local_root(root, *version).resolve(), Code.of(operators, kinds)
    checksums.refuse_damaged(root, version.base)
    with _opening:
        kept = _opened.get(root)
        if kept is not None and (kept.code, kept.memory) != (code, memory):
            kept = None
        if kept is None or kept.version != version:
            _opened.pop(root, None)  # a replay that fails midway leaves an engine of no version
            kept = _opened[root] = _Opened(version, code, memory, _replay(root, version, kept, code, memory))
        return kept.engine


def division(root: str | Path, version: Version) -> Division | None:
    """How the base of a version is divided; None if it is not."""
    return Division.read(_folder(remote_index.local_root(root, *version), version))


def choice(root: str | Path, version: Version) -> Choice | None:
    """How the place of a version's base was chosen; None if it was given."""
    return Choice.read(_folder(remote_index.local_root(root, *version), version))


def check_memory(root: str | Path, version: Version, memory: int | None) -> None:
    """Refuses a version of which a process needs more bytes than it is allowed; nothing is opened."""
    if memory is not None:
        root = remote_index.local_root(root, *version)
        refuse_too_large(_folder(root, version), division(root, version), memory)


def check_operators(
    root: str | Path, version: Version, operators: Iterable[Operator], *, since: Version | None = None
) -> None:
    """Refuses operators that do not answer all that the subscriptions of a version call.

    `since` is a version that was not refused: what they have in common is not looked at again.
    """
    catalogue = Catalogue(operators)
    for call in calls(root, version, since=since):
        try:
            catalogue.find(call.name).check(call)
        except SubscriptionError as error:
            raise OperatorError(f"a subscription in {root} cannot be answered: {error}") from None


def calls(root: str | Path, version: Version, *, since: Version | None = None) -> list[Call]:
    """The calls of a version's subscriptions: one of each operator in the base, and those of the tail as they are."""
    root, found, start = remote_index.local_root(root, *version), list[Call](), 0
    folder = _folder(root, version)
    if since is not None and since.base == version.base and since.offset <= version.offset:
        start = since.offset
    else:
        with _reading(folder):
            found += saved_calls(folders.load(front_of(folder) / "operators")[0])
    with _reading(folder):
        prefixes = json.loads((front_of(folder) / "prefixes.json").read_text())
    for change in _changes(root, start, version):
        text = change.text if isinstance(change, Change) else None
        if isinstance(text, StoredQuery):
            found += json_calls(text.json)
        elif isinstance(text, str) and "(" in text:
            where = parse(text, prefixes).where
            found += [leaf for leaf in leaves(where) if isinstance(leaf, Call)]
    return found


def _load(base: Path, code: Code, memory: int | None = None) -> Engine:
    """What a base holds, without its tail."""
    division = Division.read(base)
    if division is not None:
        with _reading(base):
            return DividedIndex.open(
                base, division, operators=code.operators, kinds=code.kinds, memory=memory
            )
    if memory is not None:
        refuse_too_large(base, None, memory)
    return Engine.load(base, operators=code.operators, kinds=code.kinds)


def _replay(root: Path, version: Version, kept: _Opened | None, code: Code, memory: int | None) -> Engine:
    if kept is not None and kept.version.base == version.base and kept.version.offset <= version.offset:
        start, engine = kept.version.offset, kept.engine
    else:
        start, engine = 0, _load(_folder(root, version), code, memory)
        checksums.start_check(root, version.base)
    _replay_changes(_changes(root, start, version), engine)
    return engine


def _replay_whole(root: Path, version: Version, code: Code) -> Engine:
    """One engine of all parts, for a new base: damage must not be copied into it, where new checksums would confirm it."""
    checksums.check(root, version.base)
    checksums.refuse_damaged(root, version.base)
    engine = load_whole(_folder(root, version), operators=code.operators, kinds=code.kinds)
    _replay_changes(_changes(root, 0, version), engine)
    return engine


def _replay_changes(changes: Iterable[Change | NetworkChange], engine: Engine) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the warnings were given when the changes were appended
        for change in changes:
            apply(change, engine)


@contextmanager
def _reading(folder: Path) -> Iterator[None]:
    """Makes one error of all that files with wrong bytes raise."""
    try:
        yield
    except TidingsError:
        raise
    except Exception as error:
        raise IndexFileError(f"{folder} holds no whole index ({error!r:.200}); build it anew") from None


def joins(root: str | Path, version: Version) -> Joins:
    """The subscriptions over tables of a version, and no others."""
    root = remote_index.local_root(root, *version)
    folder = front_of(_folder(root, version))
    with _reading(folder):
        engine = Engine(prefixes=json.loads((folder / "prefixes.json").read_text()))
        engine.joins = Joins.load(folder / "joins", engine.prefixes)
    for change in _changes(root, 0, version):
        if isinstance(change, Change):
            if isinstance(change.text, str) and engine.joins.takes(parse(change.text, engine.prefixes)):
                _replay_changes([change], engine)
            else:
                engine.joins.unsubscribe(change.id)
    return engine.joins


_tried: dict[Path, tuple[Version, dict[str, Network]]] = {}


def _networks(root: Path, version: Version) -> dict[str, Network]:
    """The networks of a version, to try changes on. They are kept for the next time if all changes could be made."""
    kept = _tried.pop(root.resolve(), None)
    if kept is not None and kept[0].base == version.base and kept[0].offset <= version.offset:
        start, trial = kept[0].offset, Engine(networks=kept[1])
    else:
        with _reading(folder := front_of(_folder(root, version))):
            start, trial = 0, Engine(networks=load_networks(folder))
    for change in _changes(root, start, version):
        if isinstance(change, NetworkChange):
            apply(change, trial)
    return trial.networks


def _changes(root: Path, start: int, version: Version) -> list[Change | NetworkChange]:
    return read_changes(_tail(root, version), start, version.offset, version)


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
        base = _current_base(root)
    aside = root / "publishing"
    taken = operator_feedback.apply_feedback(root, base, engine)
    summaries = _summaries(root, base)
    if facts.sample is not None and len(facts.sample):
        summaries = Summaries.collect(engine, facts.sample)
    _write(aside, engine, taken, placement or _placement(root, base), summaries, facts)
    return _set_current(root, aside, b"", at_least)


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


def _summaries(root: Path, base: int | None) -> Summaries | None:
    """What the subscriptions of a base were placed by."""
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
                divide(engine, aside, placement, facts.parents, summaries)
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


def _set_current(root: Path, aside: Path, tail: bytes, at_least: int) -> Version:
    """Gives a base the next number, a tail to begin with, and makes it the current one."""
    number = max(at_least, last_base(root) + 1)
    aside.rename(root / f"v{number}")
    begun = root / f"v{number}.tail"
    begun.write_bytes(tail)
    sync(begun)
    pointer = root / "CURRENT.writing"
    pointer.write_text(str(number))
    sync(pointer)
    pointer.replace(root / "CURRENT")
    sync(root)
    return Version(number, len(tail))


def _bases(root: Path) -> list[int]:
    return [int(p.name[1:]) for p in root.glob("v*") if p.name[1:].isdecimal() and p.is_dir()]


def _remove(root: Path, base: int) -> None:
    shutil.rmtree(root / f"v{base}", ignore_errors=True)
    (root / f"v{base}.tail").unlink(missing_ok=True)
    checksums.forget(root, base)


def _folder(root: Path, version: Version) -> Path:
    folder = root / f"v{version.base}"
    if not folder.is_dir():
        raise IndexFileError(
            f"{root} holds no version {version}: its base was dropped; ask for the current one"
        )
    return folder


def _tail(root: Path, version: Version) -> Path:
    return root / f"v{version.base}.tail"


@contextmanager
def _lock(root: Path, name: str = "LOCK") -> Iterator[Any]:
    """One writer at a time; readers need no lock."""
    if not root.is_dir():
        raise IndexFileError(f"{root} holds no index; make one with 'tidings index build'")
    with (root / name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
