"""Cache folders of tests' own, in which only the machine code of compiled loops is that of the user."""

from __future__ import annotations

import os
from pathlib import Path


def own_cache(folder: Path) -> Path:
    """A folder for XDG_CACHE_HOME."""
    users = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidings"
    mine = folder / "tidings"
    mine.mkdir(parents=True, exist_ok=True)
    for name in ("loops",):
        if not (mine / name).exists() and (users / name).exists():
            (mine / name).symlink_to(users / name)
    return folder
