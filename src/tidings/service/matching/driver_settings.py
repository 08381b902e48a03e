"""Passes settings to a child process as one line of JSON on its standard input.

Arguments would be readable by every user of the machine, and the store's address may hold a password. A second
line, "go", says that the index exists.
"""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from tidings.service.settings import Settings

GO = b"go\n"
_PATHS = ("data", "taxonomy", "tables")


def to_line(settings: Settings) -> bytes:
    values = {setting.name: getattr(settings, setting.name) for setting in fields(settings)}
    values |= {name: dict(values[name]) for name in ("spark_settings", "prefixes", "networks")}
    return json.dumps(values, default=str).encode() + b"\n"


def from_line(line: bytes) -> Settings:
    values: dict[str, Any] = json.loads(line)
    for name in _PATHS:
        values[name] = None if values[name] is None else Path(values[name])
    values["networks"] = {name: Path(path) for name, path in values["networks"].items()}
    values |= {name: tuple(values[name]) for name in ("operators", "allowed", "upstream")}
    return Settings(**values)
