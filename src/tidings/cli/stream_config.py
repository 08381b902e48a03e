"""Reads the configuration of `tidings run`. Every key is checked, and paths are relative to the file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidings.cli.options import is_address
from tidings.errors import TidingsError, nearest

_KINDS = {str: "a text", int: "a whole number", list: "a list of texts", dict: "a table"}
_TOP: dict[str, type] = {
    "data": str,
    "subscriptions": str,
    "taxonomy": str,
    "index": str,
    "log": str,
    "output": str,
    "checkpoint": str,
    "prefixes": dict,
    "networks": dict,
    "operators": list,
    "sources": dict,
    "spark": dict,
}
_SOURCES: dict[str, type] = {"feeds": list, "folders": list, "every": int}
_SPARK: dict[str, type] = {"master": str, "interval": str, "max_events": int, "settings": dict}


@dataclass(frozen=True, slots=True)
class StreamConfig:
    """The configuration of a stream: its folders, its sources, and the settings of Spark."""

    index: Path | str  # a folder, or an address
    log: Path
    output: Path
    checkpoint: Path
    states: Path  # what the sources remember
    subscriptions: Path | None = None
    taxonomy: Path | None = None
    prefixes: dict[str, str] = field(default_factory=dict)
    networks: dict[str, Path] = field(default_factory=dict)
    operators: tuple[str, ...] = ()  # files, or modules
    feeds: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()
    every: int = 900
    master: str = "local[*,4]"
    interval: str | None = None
    max_events: int = 100_000
    settings: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> StreamConfig:
        """Reads a TOML file; an error names its key."""
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise TidingsError(f"{path} is not readable as TOML: {error}") from None
        _check(path, "", content, _TOP)
        sources, spark = content.get("sources", {}), content.get("spark", {})
        _check(path, "sources.", sources, _SOURCES)
        _check(path, "spark.", spark, _SPARK)
        networks = _texts(path, "networks", content.get("networks", {}))
        base = path.absolute().parent
        data = base / content.get("data", "data")
        places = {
            name: base / content[name] if name in content else data / name
            for name in ("index", "log", "output", "checkpoint")
        }
        index = places.pop("index")
        return cls(
            index=content["index"] if is_address(content.get("index")) else index,
            **places,
            states=data,
            subscriptions=base / content["subscriptions"] if "subscriptions" in content else None,
            taxonomy=base / content["taxonomy"] if "taxonomy" in content else None,
            prefixes=_texts(path, "prefixes", content.get("prefixes", {})),
            networks={name: base / place for name, place in networks.items()},
            operators=tuple(
                str(base / each) if each.endswith(".py") else each for each in content.get("operators", ())
            ),
            feeds=tuple(sources.get("feeds", ())),
            folders=tuple(base / folder for folder in sources.get("folders", ())),
            **{name: sources[name] for name in ("every",) if name in sources},
            **{name: spark[name] for name in ("master", "interval", "max_events") if name in spark},
            settings=_texts(path, "spark.settings", spark.get("settings", {})),
        )


def _check(path: Path, prefix: str, table: dict[str, Any], known: dict[str, type]) -> None:
    for key, value in table.items():
        if key not in known:
            near = nearest(key, known)
            advice = (
                f"did you mean {prefix}{near}?"
                if near is not None
                else f"there are {', '.join(prefix + k for k in known)}"
            )
            raise TidingsError(f"{path}: {prefix}{key} is not known; {advice}")
        wrong = not isinstance(value, known[key]) or isinstance(value, bool)
        if wrong or (isinstance(value, list) and not all(isinstance(item, str) for item in value)):
            raise TidingsError(f"{path}: {prefix}{key} is {value!r}; it must be {_KINDS[known[key]]}")


def _texts(path: Path, key: str, table: dict[str, Any]) -> dict[str, str]:
    for name, value in table.items():
        if not isinstance(value, str):
            raise TidingsError(f"{path}: {key}.{name} is {value!r}; it must be a text")
    return dict(table)
