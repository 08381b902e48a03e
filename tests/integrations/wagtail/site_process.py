"""The example site in a process of its own, as visitors and editors use it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integrations.wagtail.conftest import FOLDER, Mailbox, free_port
from tests.service.conftest import Served
from tidings.service.model import Role

ROOT = FOLDER.parents[1]


@contextmanager
def running_site(folder: Path, served: Served, smtp: Mailbox, database: str, settings: str) -> Iterator[str]:
    """The address of a site that uses this service and this mail server."""
    port = free_port()
    _, token = served.service.access.grant("website", Role.DELEGATE)
    paths = (ROOT, ROOT / "src", FOLDER, FOLDER / "example")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "DJANGO_SETTINGS_MODULE": settings,
        "NEWSROOM_DATABASE": database,
        "NEWSROOM_SMTP": f"127.0.0.1:{smtp.port}",
        "NEWSROOM_URL": f"http://127.0.0.1:{port}",
        "TIDINGS_URL": served.url,
        "TIDINGS_TOKEN": token,
    }
    log = folder / "site.log"
    command = [sys.executable, "-m", "tests.integrations.wagtail.serve", str(port)]
    with log.open("w") as out:
        process = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 120
        while "ready" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=20)
        print(log.read_text())
