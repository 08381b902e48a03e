"""Reads declarations of tables from a TOML or JSON file: one section for each table, its columns in order.

[stocks]
columns = { symbol = "text", per = "number", note = "text" }
key = ["symbol"]
payload = ["note"]
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tidings.errors import did_you_mean
from tidings.kinds.joins.schema.table import Table, TableError

_MEMBERS = ("columns", "key", "payload")
_FORM = '[stocks] and columns = { symbol = "text", per = "number" }'


def read_tables(path: str | Path) -> list[Table]:
    """The tables that a .toml or .json file declares; a TableError says what is wrong with it."""
    path = Path(path)
    try:
        content = path.read_bytes().decode("utf-8-sig")
        declared = json.loads(content) if path.suffix.lower() == ".json" else tomllib.loads(content)
    except OSError as error:
        raise TableError(f"{path}: {error.strerror}; name a file that declares tables") from None
    except (ValueError, RecursionError) as error:
        form = "JSON" if path.suffix.lower() == ".json" else "TOML"
        raise TableError(f"{path} is not readable as {form}: {error}") from None
    if not isinstance(declared, dict) or not declared:
        raise TableError(f"{path} declares no table; write {_FORM}")
    try:
        return [_table(name, members) for name, members in declared.items()]
    except TableError as error:
        raise TableError(f"{path}: {error}") from None


def saved_tables(facts: Iterable[dict[str, Any]]) -> list[Table]:
    """The tables that were saved with an index."""
    return [Table(fact["name"], fact["columns"], fact["key"], fact["payload"]) for fact in facts]


def _table(name: str, members: Any) -> Table:
    if not isinstance(members, dict):
        raise TableError(f"{name} is {members!r}, which declares no table; write {_FORM}")
    for member in members:
        if member not in _MEMBERS:
            advice = did_you_mean(member, _MEMBERS, f"there are {', '.join(_MEMBERS)}")
            raise TableError(f"table '{name}' has {member!r}, which is not known; {advice}")
    columns = members.get("columns")
    if not isinstance(columns, dict) or not columns:
        raise TableError(f"table '{name}' has no columns; write {_FORM}")
    for role in ("key", "payload"):
        given = members.get(role, [])
        if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
            raise TableError(
                f"the {role} of table '{name}' is {given!r}; give a list of columns such as {list(columns)[:1]!r}"
            )
    return Table(name, columns, members.get("key", ()), members.get("payload", ()))
