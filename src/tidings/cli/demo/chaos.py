"""`tidings demo --chaos`: kills one process of the service after the other while a counter is published and listened to.

Every event carries the next number. A publisher sends it until it is accepted, and a listener hears the numbers over as
many connections as it takes. At the end nothing may be lost, nothing may come twice, and the order is that of counting.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from tidings.cli.demo.command import Demo
from tidings.errors import TidingsError

if TYPE_CHECKING:
    from tidings.client import Client, Subscription

PATIENCE = 300.0  # seconds for whatever is waited for; Spark may start twice in them
EVERY = 0.05  # seconds from one number to the next
QUIET = 3.0  # seconds between two kills
_PROCESSES = (  # what is killed, and a part of its command line
    ("a Python worker", "-m tidings.spark.daemon"),
    ("the JVM", "SparkSubmit"),
    ("the driver", "tidings.service.matching.driver"),
    ("the service", ""),
)


class Chaos(Demo):
    """The steps of the demo with kills, in order."""

    def play(self) -> None:
        if not Path("/proc/self/stat").exists():
            raise TidingsError("'--chaos' finds the processes in /proc; run it on Linux")
        self._say("Chaos", "a counter is published and listened to; one process after the other is killed")
        self.options += ["--small-batch", "0"]  # so that workers match
        self._start()
        counter = Counted(self.client, self.client.subscribe("WHERE counter >= 1", title="counter"))
        self.stack.callback(counter.stop)
        counter.start()
        with self._working("waiting for the first number"):
            self._wait_for(counter, 1)
        for name, words in _PROCESSES:
            with self._working(f"killing {name} in a moment"):
                time.sleep(QUIET)
            self._kill(counter, name, words)
        with self._working("waiting for the last number"):
            counter.finish(PATIENCE)
        self._judge(counter)

    def _kill(self, counter: Counted, name: str, words: str) -> None:
        """Kills a process, and reports how long it took until a number was heard that was published afterwards."""
        pid = self.process.pid if not words else self._find(words)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        began, number = time.perf_counter(), counter.published + 1
        if not words:
            self.process.wait()
            self._launch()
        with self._working(f"{name} was killed; the counter goes on after {counter.last}"):
            self._wait_for(counter, number)
        took = time.perf_counter() - began
        heard = f"{counter.last:,} heard, next notification after {took:.1f} s"
        self._print(Text.assemble("  ", (f"killed {name:<16}", "bold red"), f"process {pid:<8}", heard))

    def _find(self, words: str) -> int:
        """The process of the driver's session with these words in its command line."""
        from tidings.service.matching import process_session

        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            driver = next(iter(_children(self.process.pid, "tidings.service.matching.driver")), 0)
            for pid in process_session.living(driver):
                if words in _command(pid):
                    return pid
            time.sleep(0.1)
        raise TidingsError(f"no process of the service has {words!r} in its command line; see {self.folder}")

    def _wait_for(self, counter: Counted, number: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while counter.last < number:
            if time.monotonic() > deadline:
                raise TidingsError(
                    f"number {number} did not come; the last line of the service's log: {self._last_words()}"
                )
            time.sleep(0.01)

    def _judge(self, counter: Counted) -> None:
        published, heard = counter.published, counter.heard
        lost = published - len(set(heard))
        doubled = sum(count - 1 for count in Counter(heard).values())
        result = f"published {published:,}, received {len(heard):,}, lost {lost}, doubled {doubled}"
        self._say("Result", f"{result}{'' if heard == sorted(heard) else ', not in order'}")
        if lost or doubled or heard != sorted(heard):
            raise TidingsError("the counter has gaps; this is a defect of Tidings, please report it")


class Counted:
    """Publishes numbers and listens to them, in a thread each."""

    def __init__(self, client: Client, subscription: Subscription) -> None:
        self._client, self._subscription = client, subscription
        self.published = 0
        self.heard: list[int] = []
        self._stopping = threading.Event()
        self._publisher = threading.Thread(target=self._publish, name="counter", daemon=True)
        self._listener = threading.Thread(target=self._listen, name="listener", daemon=True)

    @property
    def last(self) -> int:
        """The last number that was heard."""
        return self.heard[-1] if self.heard else 0

    def start(self) -> None:
        self._publisher.start()
        self._listener.start()

    def stop(self) -> None:
        self._stopping.set()

    def finish(self, seconds: float) -> None:
        """Publishes no more; waits until everything is heard, and a moment for what may come twice."""
        self._stopping.set()
        self._publisher.join(seconds)
        deadline = time.monotonic() + seconds
        while self.last < self.published and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1.0)

    def _publish(self) -> None:
        from tidings.client import ServiceError
        from tidings.model.event import Event

        while not self._stopping.wait(EVERY):
            number = self.published + 1
            event = Event(id=str(number), source="counter", attributes={"counter": number})
            while True:
                try:
                    self._client.publish(event)
                except ServiceError:  # the same event again, until it is accepted
                    time.sleep(0.1)
                except RuntimeError:  # the client is closed: the demo ends
                    return
                else:
                    break
            self.published = number

    def _listen(self) -> None:
        from tidings.client import ServiceError

        seen = 0
        while True:
            with suppress(ServiceError, RuntimeError):  # the service is away, or the client is closed
                for notification in self._client.listen(self._subscription, after=seen):
                    if notification.event is not None:
                        self.heard.append(int(notification.event["attributes"]["counter"]))
                    seen = max(seen, notification.number)
            if self._stopping.wait(0.1):
                return


def _children(parent: int, words: str) -> list[int]:
    """The child processes that have these words in their command lines."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            of = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if of == parent and words in _command(int(folder.name)):
                found.append(int(folder.name))
    return found


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""
