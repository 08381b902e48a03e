"""Versions of an index as folders: a base that is mapped into memory, and a tail of changes behind it.

    ROOT/CURRENT     the number of the newest base
    ROOT/v3/         a base: the folder of a saved engine, or of several if its subscriptions are divided (division.py)
    ROOT/v3.tail     changes since, one JSON object a line, only ever appended to
    ROOT/checked/    what checks of bases have found (checksums.py)
    ROOT/learnt/     what streams have learnt of operators (operator_feedback.py), which the next base begins with
    ROOT/visits/     what streams have counted in parts (part_loads.py), by which those of the next base are balanced
    ROOT/LOCK        held while a tail grows or CURRENT is replaced; ROOT/COMPACTING while a tail is folded

A version is a base and a number of bytes of its tail, so it names one state of subscriptions and networks for good:
it gives the same answers today and after a crash. A base is written aside and renamed, CURRENT is replaced,
the tail is flushed to disk before its new length is returned. Bases that are not pinned any more can be dropped. A base
number is given once: a caller that may lose the folder keeps the last number elsewhere, and requires a higher one.

version_folders.py has this folder, version_writing.py what changes it, version_opening.py what reads it. What reads takes an
address, such as s3://bucket/index, in place of a folder, and so does `publish` (remote_index.py).
"""

from __future__ import annotations

from tidings.storage.division import Division, Placement
from tidings.storage.tail_changes import Change, NetworkChange
from tidings.storage.version_folders import Version, current, discard, drop, last_base
from tidings.storage.version_opening import (
    Code,
    calls,
    check_memory,
    check_operators,
    choice,
    division,
    is_placed,
    is_there,
    joins,
    number_of_parts,
    open,
    try_open,
    verify,
)
from tidings.storage.version_writing import (
    append,
    compact,
    publish,
    publish_parts,
    set_network,
    switch,
    write_aside,
)

__all__ = [
    "Change",
    "Code",
    "Division",
    "NetworkChange",
    "Placement",
    "Version",
    "append",
    "calls",
    "check_memory",
    "check_operators",
    "choice",
    "compact",
    "current",
    "discard",
    "division",
    "drop",
    "is_placed",
    "is_there",
    "joins",
    "last_base",
    "number_of_parts",
    "open",
    "publish",
    "publish_parts",
    "set_network",
    "switch",
    "try_open",
    "verify",
    "write_aside",
]
