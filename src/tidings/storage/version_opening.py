"""Opens versions of an index, and reads what is asked of them without opening them: how they are divided, which operators they call, their
subscriptions over tables.

A process keeps the last version that it has opened of each folder, and replays a longer tail on it.
"""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tidings.arrays import folders
from tidings.engine.contracts import Kind
from tidings.engine.engine import Engine
from tidings.errors import IndexFileError, SubscriptionError
from tidings.kinds.joins.kind import Joins
from tidings.kinds.operators.functions.catalogue import Catalogue
from tidings.kinds.operators.functions.operator import Operator
from tidings.kinds.operators.functions.signature import OperatorError
from tidings.kinds.operators.table import saved_calls
from tidings.language.parser import parse
from tidings.language.query import Call, leaves
from tidings.language.query_json import json_calls
from tidings.storage import checksums, remote_index
from tidings.storage.divided_index import DividedIndex
from tidings.storage.division import Division, front_of, load_whole, refuse_too_large
from tidings.storage.placement_choice import Choice
from tidings.storage.tail_changes import Change, NetworkChange, StoredQuery, apply
from tidings.storage.version_folders import Version, changes_of, current, folder_of, reading, tail_of


class Code(NamedTuple):
    """What an index needs and does not hold: the operators and the kinds of the user's own."""

    operators: tuple[Operator, ...]
    kinds: tuple[Kind, ...]

    @classmethod
    def of(cls, operators: Iterable[Operator], kinds: Iterable[Kind]) -> Code:
        return cls(tuple(operators), tuple(kinds))


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
            for gone in [other for other in _opened if not (other / "CURRENT").exists()]:
                del _opened[gone]  # it would keep its mapped files open
            kept = _opened[root] = _Opened(version, code, memory, _replay(root, version, kept, code, memory))
        return kept.engine


def division(root: str | Path, version: Version) -> Division | None:
    """How the base of a version is divided; None if it is not."""
    return Division.read(folder_of(remote_index.local_root(root, *version), version))


def choice(root: str | Path, version: Version) -> Choice | None:
    """How the place of a version's base was chosen; None if it was given."""
    return Choice.read(folder_of(remote_index.local_root(root, *version), version))


def number_of_parts(root: str | Path) -> int:
    """Into which the current base is divided; 0 if it is not."""
    found = division(root, current(root))
    return 0 if found is None else len(found.parts)


def is_placed(root: str | Path) -> bool:
    """Whether the current base is divided, or is whole because that was found to be best."""
    version = current(root)
    return division(root, version) is not None or choice(root, version) is not None


def check_memory(root: str | Path, version: Version, memory: int | None) -> None:
    """Refuses a version of which a process needs more bytes than it is allowed; nothing is opened."""
    if memory is not None:
        root = remote_index.local_root(root, *version)
        refuse_too_large(folder_of(root, version), division(root, version), memory)


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
    folder = folder_of(root, version)
    if since is not None and since.base == version.base and since.offset <= version.offset:
        start = since.offset
    else:
        with reading(folder):
            found += saved_calls(folders.load(front_of(folder) / "operators")[0])
    with reading(folder):
        prefixes = json.loads((front_of(folder) / "prefixes.json").read_text())
    for change in changes_of(root, start, version):
        text = change.text if isinstance(change, Change) else None
        if isinstance(text, StoredQuery):
            found += json_calls(text.json)
        elif isinstance(text, str) and "(" in text:
            where = parse(text, prefixes).where
            found += [leaf for leaf in leaves(where) if isinstance(leaf, Call)]
    return found


def joins(root: str | Path, version: Version) -> Joins:
    """The subscriptions over tables of a version, and no others."""
    root = remote_index.local_root(root, *version)
    folder = front_of(folder_of(root, version))
    with reading(folder):
        engine = Engine(prefixes=json.loads((folder / "prefixes.json").read_text()))
        engine.joins = Joins.load(folder / "joins", engine.prefixes)
    for change in changes_of(root, 0, version):
        if isinstance(change, Change):
            if isinstance(change.text, str) and engine.joins.takes(parse(change.text, engine.prefixes)):
                replay_changes([change], engine)
            else:
                engine.joins.unsubscribe(change.id)
    return engine.joins


def is_there(root: str | Path, version: Version) -> bool:
    """Whether a version can be opened, as far as that is known without reading it."""
    try:
        root = remote_index.local_root(root, *version)
        with tail_of(root, version).open("rb") as tail:
            tail.seek(max(0, version.offset - 1))
            ends = not version.offset or tail.read(1) == b"\n"
        checksums.refuse_damaged(root, version.base)
        return ends and folder_of(root, version).is_dir()
    except (OSError, IndexFileError):
        return False


def try_open(root: str | Path, version: Version, *, operators: Iterable[Operator] = ()) -> None:
    """Opens a version without keeping it; an error says why it cannot be."""
    root = remote_index.local_root(root, *version)
    checksums.refuse_damaged(root, version.base)
    index = _load(folder_of(root, version), Code.of(operators, ()))
    if isinstance(index, DividedIndex):
        for number in range(len(index.division.parts)):
            index.part(number)
    changes_of(root, 0, version)


def verify(root: str | Path, version: Version) -> bool:
    """Reads all of a version; IndexFileError if any of it is not as it was written. Returns False if its base was
    written before there were checksums."""
    root = remote_index.local_root(root, *version)
    remote_index.fetch_all_parts(root, version.base)
    changes_of(root, 0, version)
    return checksums.verify(folder_of(root, version))


def _load(base: Path, code: Code, memory: int | None = None) -> Engine:
    """What a base holds, without its tail."""
    division = Division.read(base)
    if division is not None:
        with reading(base):
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
        start, engine = 0, _load(folder_of(root, version), code, memory)
        checksums.start_check(root, version.base)
    replay_changes(changes_of(root, start, version), engine)
    return engine


def replay_whole(root: Path, version: Version, code: Code) -> Engine:
    """One engine of all parts, for a new base: damage must not be copied into it, where new checksums would confirm it."""
    checksums.check(root, version.base)
    checksums.refuse_damaged(root, version.base)
    engine = load_whole(folder_of(root, version), operators=code.operators, kinds=code.kinds)
    replay_changes(changes_of(root, 0, version), engine)
    return engine


def replay_changes(changes: Iterable[Change | NetworkChange], engine: Engine) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the warnings were given when the changes were appended
        for change in changes:
            apply(change, engine)
