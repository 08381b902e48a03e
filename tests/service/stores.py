"""Stores that are there at once: their tables are made once a process, and copied."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from tidings.service.settings import Settings
from tidings.service.store.database import open_stores


@cache
def _made() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="tidings-stores-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for store in open_stores(Settings(folder)):
        store.close()
    return folder


def opened(settings):
    """(registry, mailbox) of a new folder, empty."""
    shutil.copytree(_made(), settings.data, dirs_exist_ok=True)
    return open_stores(settings)
