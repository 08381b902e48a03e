"""A Tidings service in a process of its own, without Spark, and a delegate's token for a site."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

from tests.service.conftest import Running
from tidings.service.model import Role


@contextmanager
def running_service(folder: Path) -> Iterator[tuple[str, str]]:
    """The address and the token."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(folder, there), daemon=True)
    process.start()
    try:
        assert here.poll(120), "the service did not start"
        yield here.recv()
    finally:
        here.send("stop")
        process.join(timeout=30)


def _serve(folder: Path, there: Connection) -> None:
    with Running(data=folder, matching="process", open=False, allowed=("127.0.0.0/8",)) as served:
        _, token = served.service.access.grant(
            "website", Role.DELEGATE, requests_per_second=100_000, events_per_second=100_000
        )
        there.send((served.url, token))
        there.recv()
