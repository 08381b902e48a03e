"""An engine of the files that options name, on the command line and in the settings of the service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from tidings.engine.engine import Engine
from tidings.kinds.joins.schema.declarations import read_tables
from tidings.kinds.networks.files.sources import read_network
from tidings.kinds.operators.functions.operator import Operator
from tidings.model.taxonomy import Taxonomy


def engine_of_files(
    *,
    taxonomy: Path | None,
    prefixes: Mapping[str, str],
    networks: Mapping[str, Path],
    operators: Iterable[Operator],
    tables: Path | None,
) -> Engine:
    """An engine with everything but subscriptions."""
    return Engine(
        taxonomy=None if taxonomy is None else Taxonomy.from_file(taxonomy),
        prefixes=prefixes,
        networks={name: read_network(path) for name, path in networks.items()},
        operators=operators,
        tables=[] if tables is None else read_tables(tables),
    )
