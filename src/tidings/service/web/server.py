"""Runs one service in one process: locks its folder and serves with uvicorn until a signal ends it.

A first signal lets requests and the micro-batch under way end and closes event streams; a second one ends at
once.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI

from tidings.errors import TidingsError
from tidings.service import memory, open_files
from tidings.service.service import Service
from tidings.service.settings import Settings
from tidings.service.telemetry.logs import configure
from tidings.service.web.app import create_app
from tidings.service.web.connections import configuration

PATIENCE = 10  # seconds for requests under way
# An event passes through half a dozen threads; with Python's 5 ms each may wait that long for its turn.
SWITCH_SECONDS = 0.001


def serve(settings: Settings, on_listening: Callable[[Service], None] = lambda service: None) -> None:
    """Serves until SIGINT or SIGTERM. `on_listening` is called when the address answers. The index is opened or built, and
    Spark started, while it does; events that are published meanwhile are matched then."""
    configure(settings.log_format)
    open_files.raise_limit()
    memory.limit_arenas()
    settings.data.mkdir(parents=True, exist_ok=True)
    sys.setswitchinterval(SWITCH_SECONDS)
    with _locked(settings.data), _listening(settings) as listener:
        service = Service(settings)
        preparing = threading.Thread(target=lambda: server.prepare(), name="prepare", daemon=True)
        try:
            # For people the command line prints its own messages.
            level = None if settings.log_format == "json" else "warning"
            app = create_app(service)
            server = _Server(configuration(app, graceful_seconds=PATIENCE, log_level=level), service)
            _build_routes(app)
            service.begin()
            on_listening(service)
            preparing.start()
            server.run([listener])
            if server.failure is not None:
                raise server.failure
        finally:
            if preparing.ident is not None:
                preparing.join(PATIENCE)  # so that it does not meet stores that are closed
            service.stop()


def _build_routes(app: FastAPI) -> None:
    """FastAPI builds its routes when they are first looked through. The first request would wait for that, in a process
    and on a machine that are busy starting."""
    nowhere = {"type": "http", "method": "GET", "path": "/nowhere", "root_path": "", "headers": []}
    for route in app.routes:
        route.matches(nowhere)


class _Server(uvicorn.Server):
    """Tells the service of the first signal, so that endless requests do not delay the end; ends if the service cannot be
    prepared."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self.failure: BaseException | None = None

    def prepare(self) -> None:
        try:
            self._service.prepare()
            memory.collect_less_often()
        except BaseException as error:
            if not self.should_exit:
                self.failure, self.should_exit = error, True
                with suppress(AttributeError):  # it ends before it has begun
                    self._service.begin_to_stop()

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
