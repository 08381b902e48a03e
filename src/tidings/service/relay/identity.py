"""The id of a service, by which links know each other and loops are found. It is made at the first start and kept."""

from __future__ import annotations

import re
from pathlib import Path

from tidings.errors import TidingsError
from tidings.service.subscriptions import tickets

PATTERN = r"^n[a-z2-7]{20}$"
LONGEST_PATH = 16  # services from a relay to the centre


def service_id(data: Path) -> str:
    """The id of the service that has this folder."""
    path = data / "identity"
    if not path.exists():
        whole = path.with_suffix(".writing")
        whole.write_text(tickets.new_id("n"))
        whole.replace(path)
    id = path.read_text(errors="replace").strip()
    if not re.fullmatch(PATTERN, id):
        raise TidingsError(f"{path} does not hold the id of a service; remove it, and a new one is made")
    return id
