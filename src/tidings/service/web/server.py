"""Runs one service in one process: locks its folder and serves with uvicorn until a signal ends it.

A first signal lets requests and the micro-batch under way end and closes event streams; a second one ends at
once.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import uvicorn

from tidings.errors import TidingsError
from tidings.service import memory, open_files
from tidings.service.service import Service
from tidings.service.settings import Settings
from tidings.service.telemetry.logs import configure
from tidings.service.web.app import create_app
from tidings.service.web.connections import configuration

PATIENCE = 10  # seconds for requests under way


def serve(settings: Settings, on_listening: Callable[[Service], None] = lambda service: None) -> None:
    """Serves until SIGINT or SIGTERM. `on_listening` is called when the address answers; matching begins a moment
    later."""
    configure(settings.log_format)
    open_files.raise_limit()
    memory.limit_arenas()
    settings.data.mkdir(parents=True, exist_ok=True)
    with _locked(settings.data), _listening(settings) as listener:
        service = Service(settings)
        try:
            service.start()
            # For people the command line prints its own messages.
            level = None if settings.log_format == "json" else "warning"
            config = configuration(create_app(service), graceful_seconds=PATIENCE, log_level=level)
            memory.collect_less_often()
            on_listening(service)
            _Server(config, service).run([listener])
        finally:
            service.stop()


class _Server(uvicorn.Server):
    """Tells the service of the first signal, so that endless requests do not delay the end."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._service.begin_to_stop()
        super().handle_exit(sig, frame)


@contextmanager
def _locked(data: Path) -> Iterator[None]:
    """Locks the folder: one service is the only writer of the log, the index and the registry."""
    file = os.open(data / "LOCK", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(file, 32, 0).decode(errors="replace").strip() or "unknown"
            raise TidingsError(
                f"process {holder} serves {data} already; stop it first, or name another folder by --data"
            ) from None
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
        yield
        os.ftruncate(file, 0)
    finally:
        os.close(file)


@contextmanager
def _listening(settings: Settings) -> Iterator[socket.socket]:
    """Opens the socket before anything is started, so that a used port is an error at once."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, settings.port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                what = f"port {settings.port} of {settings.host} is in use; name another by --port"
            elif error.errno == errno.EACCES:
                what = f"port {settings.port} may not be used by this account; name one above 1023 by --port"
            else:
                what = f"{settings.host} is no address of this machine ({error.strerror or error}); name one by --host"
            raise TidingsError(what) from None
        yield listener
