"""What `run` and `demo` share: a Spark session with a sentence for what is missing, and batches as they are done."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from tidings.errors import TidingsError

if TYPE_CHECKING:
    from tidings.spark import Batch, Stream


def start_spark(master: str, index: Path, settings: Mapping[str, str] | None = None) -> Any:
    """A session whose workers have the index open from the start."""
    if find_spec("pyspark") is None:
        raise TidingsError("this command needs PySpark; install it with: pip install 'tidings[spark]'")
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=f"{home}/bin" if home else None) is None:
        where = f"there is none in JAVA_HOME={home}" if home else "there is none on the PATH"
        raise TidingsError(
            f"Spark needs Java 17 or newer, and {where}; install a JDK, or set JAVA_HOME to one"
        )
    from tidings.spark import session

    interrupt = signal.getsignal(signal.SIGINT)
    try:
        return session(master, name="tidings", preload=index, settings=settings)
    except Exception as error:
        if "JAVA_GATEWAY_EXITED" not in str(error):
            raise
        raise TidingsError("Java ended before Spark had started; Spark needs Java 17 or newer") from None
    finally:
        # Spark puts in a handler that cancels all jobs, and a stream whose job is cancelled ends in an error.
        signal.signal(signal.SIGINT, interrupt)


class Batches:
    """The micro-batches of a stream, handed from Spark's thread to the one that prints."""

    def __init__(self) -> None:
        self._done: SimpleQueue[Batch] = SimpleQueue()

    def __call__(self, batch: Batch) -> None:
        self._done.put(batch)

    def ready(self, seconds: float) -> Iterator[Batch]:
        """Those that are done; waits for the first of them, at most so long."""
        try:
            yield self._done.get(timeout=seconds)
            while True:
                yield self._done.get_nowait()
        except Empty:
            return

    def until(self, events: int, stream: Stream) -> Iterator[Batch]:
        """Those that answer the next `events` events; a stream that fails meanwhile raises its error."""
        while events > 0:
            for batch in self.ready(0.5):
                events -= batch.events
                yield batch
            if events > 0 and not stream.is_active:
                stream.wait(1)
                raise TidingsError("the stream ended before all events were answered")
