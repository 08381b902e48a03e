"""Starts Spark for the command line and the service, with clear errors for a missing Java or a dead JVM."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tidings.errors import TidingsError

_MOMENT = 0.5  # seconds


def start_spark(master: str, index: str | Path, settings: Mapping[str, str] | None = None) -> Any:
    """A session whose workers have the index open from the start."""
    need_spark()
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
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupt)


def need_spark() -> None:
    """Raises an error that names what is missing, before anything is started."""
    if find_spec("pyspark") is None:
        raise TidingsError("this command needs PySpark; install Tidings with the extra 'spark'")
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=f"{home}/bin" if home else None) is None:
        where = f"there is none in JAVA_HOME={home}" if home else "there is none on the PATH"
        raise TidingsError(
            f"Spark needs Java 17 or newer, and {where}; install a JDK, or set JAVA_HOME to one"
        )


def end_java(seconds: float) -> None:
    """Has the JVM of this process end, as it does when the process has ended, and waits for it."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None:
        with suppress(OSError, subprocess.TimeoutExpired):
            process.stdin.close()
            process.wait(seconds)


def java_has_ended() -> bool:
    """Whether the JVM of the session is gone: calls to it then fail without a reason, possibly a moment before its
    process has ended."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    try:
        process.wait(_MOMENT)
    except subprocess.TimeoutExpired:
        return False
    return True
