"""A real PostgreSQL server of the system's packages, started by whoever asks for one: tests, and the benchmarks.

It runs on a folder of its own, is reached by a socket in it, and is stopped; nothing of it is left.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_FOLDERS = ("/usr/lib/postgresql", "/usr/local/pgsql", "/usr/pgsql", "/opt/homebrew/opt")
_SETTINGS = {"listen_addresses": "''", "fsync": "off", "synchronous_commit": "off", "jit": "off"}
USER = "tidings"


def programs() -> Path | None:
    """The folder of the newest PostgreSQL on this machine."""
    found = [path.parent for folder in _FOLDERS for path in Path(folder).glob("**/bin/initdb")]
    if not found and (path := shutil.which("initdb")):
        found = [Path(path).resolve().parent]
    return max(found, default=None, key=lambda folder: _version(folder))


def _version(folder: Path) -> int:
    said = subprocess.run([folder / "initdb", "--version"], capture_output=True, text=True, check=True)
    return int(said.stdout.split()[-1 if "(" not in said.stdout else 2].split(".")[0])


class Server:
    """A server with an empty database. As root it runs under an account that may: PostgreSQL refuses root."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None):
        self.programs = folder
        self.home = Path(tempfile.mkdtemp(prefix="tidings-postgres-"))
        self.account: dict[str, object] = {}
        if os.geteuid() == 0:
            owner = next(one for one in pwd.getpwall() if one.pw_name in ("postgres", "nobody"))
            os.chown(self.home, owner.pw_uid, owner.pw_gid)
            self.account = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        chosen = " ".join(f"-c {name}={value}" for name, value in {**_SETTINGS, **(settings or {})}.items())
        try:
            self._run("initdb", "-D", f"{self.home}/data", "-A", "trust", "-U", USER, "-E", "UTF8", "-N")
            self._options = f"-k {self.home} {chosen}"
            self._start()
        except BaseException:
            self.close()
            raise

    def sql(self, text: str, given: bytes | None = None) -> bytes:
        """What psql prints for some statements; `given` is what a COPY reads."""
        words = ["-h", str(self.home), "-U", USER, "-d", "postgres", "-X", "-q", "-A", "-t"]
        return self._run("psql", *words, "-v", "ON_ERROR_STOP=1", "-c", text, given=given)

    def create(self, name: str, options: str = "") -> str:
        """A new, empty database. Returns its address."""
        self.sql(f"CREATE DATABASE {name} {options}")
        return f"postgresql://{USER}@/{name}?host={self.home}"

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Away for a while."""
        self._stop()
        try:
            yield
        finally:
            self._start()

    def close(self) -> None:
        if (self.home / "data" / "postmaster.pid").exists():
            self._stop()
        shutil.rmtree(self.home)

    def _start(self) -> None:
        words = ("-l", f"{self.home}/log", "-w", "-o", self._options)
        self._run("pg_ctl", "-D", f"{self.home}/data", *words, "start")

    def _stop(self) -> None:
        self._run("pg_ctl", "-D", f"{self.home}/data", "-m", "immediate", "-w", "stop")

    def _run(self, program: str, *words: str, given: bytes | None = None) -> bytes:
        # pg_ctl's server keeps its output open: a pipe would never end.
        out = subprocess.PIPE if program == "psql" else subprocess.DEVNULL
        done = subprocess.run(
            [self.programs / program, *words],
            input=given,
            stdout=out,
            stderr=subprocess.PIPE if program == "psql" else subprocess.DEVNULL,
            cwd=self.home,
            **self.account,  # type: ignore[call-overload]
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {(done.stderr or b'').decode().strip()}")
        return bytes(done.stdout or b"")
