"""The tables of an upstream service, which a relay declares as they are there.

They are read when a relay starts and kept in its folder, so that it also starts while no upstream service answers.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path

from tidings.errors import TidingsError
from tidings.kinds.joins.schema.declarations import read_tables
from tidings.service.relay.parent import Parent, ParentAway, ParentRefuses

logger = logging.getLogger(__name__)


def upstream_tables(urls: Sequence[str], token: str | None, data: Path) -> Path | None:
    """The file that declares the tables of the first of these services that answers; None if there are none."""
    file = data / "upstream-tables.json"
    for url in urls:
        parent = Parent(url, token, "")
        try:
            found = json.loads(parent.get("/api/tables"))["items"]
            declared = {
                one["name"]: {"columns": one["columns"], "key": one["key"], "payload": one["payload"]}
                for one in found
            }
        except (ParentAway, ParentRefuses) as error:
            logger.warning("the tables of the upstream service are not known: %s", error)
            continue
        except (ValueError, LookupError, TypeError):
            logger.warning("%s answers like no service that relays can be linked to", url)
            continue
        finally:
            parent.close()
        _keep(file, declared)
        break
    return file if file.exists() else None


def _keep(file: Path, declared: object) -> None:
    """Writes declarations that can be read; without tables there is no file."""
    if not declared:
        file.unlink(missing_ok=True)
        return
    aside = file.with_name("upstream-tables.writing.json")
    aside.write_text(json.dumps(declared))
    try:
        read_tables(aside)
    except TidingsError as error:
        aside.unlink()
        logger.warning("the tables of the upstream service cannot be used: %s", error)
        return
    aside.replace(file)
