"""Writes the statistics of operators to a file, as a picture or a table by its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tidings.kinds.operators.statistics import Statistics

PICTURES, TABLES = (".png", ".svg"), (".txt", ".csv", ".json")


def check_stats_file(path: Path) -> None:
    """Refuses a file name with an unknown extension, before any work is done."""
    if path.suffix.lower() not in PICTURES + TABLES:
        raise click.BadParameter(
            f"{str(path)!r} does not say what to write; name a file {', '.join(PICTURES + TABLES)}",
            param_hint="'--stats'",
        )


def write_stats(statistics: Statistics, path: Path) -> None:
    suffix = path.suffix.lower()
    if suffix in PICTURES:
        statistics.plot(path)
    elif suffix == ".csv":
        from pyarrow import csv

        csv.write_csv(statistics.table(), path)
    elif suffix == ".json":
        path.write_text(json.dumps(statistics.table().to_pylist(), indent=1, ensure_ascii=False) + "\n")
    else:
        path.write_text(f"{statistics}\n", encoding="utf-8")
