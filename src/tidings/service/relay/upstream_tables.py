"""The tables of an upstream service, which a relay declares as they are there.

They are read when a relay starts and kept in its folder, so that it also starts while no upstream service answers; and again
when it connects, or the definitions there change.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path

from tidings.errors import TidingsError
from tidings.kinds.joins.schema.declarations import read_tables
from tidings.service.relay.parent import Parent, ParentAway, ParentRefuses

_FILE = "upstream-tables.json"

logger = logging.getLogger(__name__)


def upstream_tables(urls: Sequence[str], token: str | None, data: Path) -> Path | None:
    """The file that declares the tables of the first of these services that answers; None if there are none."""
    file = data / _FILE
    for url in urls:
        parent = Parent(url, token, "")
        try:
            declared = _declared_at(parent)
        except (ParentAway, ParentRefuses) as error:
            logger.warning("the tables of the upstream service are not known: %s", error)
            continue
        except (ValueError, LookupError, TypeError):
            logger.warning("%s answers like no service that relays can be linked to", url)
            continue
        finally:
            parent.close()
        if not declared:
            file.unlink(missing_ok=True)
            break
        try:
            _keep(file, declared)
        except TidingsError as error:
            logger.warning("the tables of the upstream service cannot be used: %s", error)
        break
    return file if file.exists() else None


def tables_of(parent: Parent, data: Path) -> Path | None:
    """The file that declares the tables of a service now; None if it has none. ValueError, LookupError or TypeError if it
    answers something else."""
    declared = _declared_at(parent)
    if not declared:
        return None
    _keep(data / _FILE, declared)
    return data / _FILE


def _declared_at(parent: Parent) -> dict[str, object]:
    return {
        found["name"]: {"columns": found["columns"], "key": found["key"], "payload": found["payload"]}
        for found in parent.get("/api/tables")["items"]
    }


def _keep(file: Path, declared: object) -> None:
    """Writes declarations; TidingsError if they cannot be read."""
    aside = file.with_name("upstream-tables.writing.json")
    aside.write_text(json.dumps(declared))
    try:
        read_tables(aside)
    except TidingsError:
        aside.unlink()
        raise
    aside.replace(file)
