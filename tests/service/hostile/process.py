"""A service in a process of its own, so that its memory can be measured: it prints its port, and ends with its input.

python -m tests.service.hostile.process DATA
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tests.service.conftest import Running
from tidings.service import memory


class ServiceProcess(NamedTuple):
    port: int
    pid: int

    def resident(self) -> int:
        """Bytes of memory."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS"))

    def open_files(self) -> int:
        """Without the arrays of the index, each mapped once: the more kinds of subscriptions there are, the more it has."""
        found = []
        for file in Path(f"/proc/{self.pid}/fd").iterdir():
            with suppress(OSError):
                found.append(os.readlink(file))
        return len(found) - len({path for path in found if path.endswith(".npy")})

    def threads(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/task").iterdir()))

    def processor_seconds(self) -> float:
        words = Path(f"/proc/{self.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(words[11]) + int(words[12])) / 100.0


@contextmanager
def service_process(data: Path) -> Iterator[ServiceProcess]:
    errors = (data.parent / "errors").open("wb")
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, str(data)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        cwd=Path(__file__).parents[3],
    )
    try:
        assert process.stdout is not None
        port = process.stdout.readline()
        assert port.strip().isdigit(), (data.parent / "errors").read_text()[-2_000:]
        yield ServiceProcess(int(port), process.pid)
        assert process.poll() is None, "the service has ended"
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
        errors.close()


def main() -> None:
    memory.limit_arenas()  # as `tidings serve` does
    with Running(data=Path(sys.argv[1])) as served:
        print(served.service.settings.port, flush=True)
        sys.stdin.read()
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join(5)


if __name__ == "__main__":
    main()
