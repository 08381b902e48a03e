"""Manages the JVM's class archive: Spark's classes, parsed and verified once per machine instead of at every start.

The first session makes an archive while its JVM ends; later ones map it and start in half the time. Java ignores
an archive of another build or class path, but crashes on a truncated one: an archive is kept only if its JVM
ended well, and a session that cannot start with it deletes it and starts without.

    python -m tidings.spark.class_archive    makes one before many sessions are started at once, of which each would
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import time
from hashlib import blake2b
from pathlib import Path

import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession

# Every class that cannot be archived would be remarked on, on standard output.
_QUIET = "-Xshare:auto -Xlog:disable"
_PATIENCE = 60.0


def locate() -> Path | None:
    """The path of this Java's archive of this Spark; None without a Java or a folder for it."""
    binary = java()
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidings"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob("*.making"):
            if time.time() - left.stat().st_mtime > 10 * _PATIENCE:
                left.unlink()
        return folder / f"spark-{_key(binary)}.jsa" if binary else None
    except OSError:
        return None


def java_options(archive: Path | None) -> str:
    """Options for the driver's JVM: use the archive, or make one at the end."""
    if archive is None:
        return ""
    if archive.exists():
        return f'"-XX:SharedArchiveFile={archive}" {_QUIET}'
    return f'"-XX:ArchiveClassesAtExit={_making(archive)}" {_QUIET}'


def keep_at_exit(archive: Path, jvm: subprocess.Popen[bytes]) -> None:
    """Waits at the end of this program for the JVM's archive, and keeps it."""
    atexit.register(_keep, archive, jvm)


def java() -> Path | None:
    """The Java that Spark will start: the one of JAVA_HOME, or the first on the path."""
    home = os.environ.get("JAVA_HOME")
    found = Path(home) / "bin" / "java" if home else shutil.which("java")
    return Path(found).resolve() if found and Path(found).exists() else None


def _keep(archive: Path, jvm: subprocess.Popen[bytes], seconds: float = _PATIENCE) -> None:
    if (active := SparkSession.getActiveSession()) is not None:
        active.stop()
    try:
        if jvm.stdin is not None:
            jvm.stdin.close()  # the JVM ends when its input does
        if jvm.wait(seconds) == 0:
            _making(archive).rename(archive)
    except (OSError, subprocess.TimeoutExpired):
        return


def _making(archive: Path) -> Path:
    return archive.with_suffix(f".{os.getpid()}.making")


def _key(java: Path) -> str:
    """One archive for each Java and each installed Spark."""
    jars = Path(pyspark.__file__).parent / "jars"
    text = f"{java}\0{java.stat().st_mtime_ns}\0{jars}\0{pyspark.__version__}\0{jars.stat().st_mtime_ns}"
    return blake2b(text.encode(), digest_size=8).hexdigest()


def main() -> None:
    """Runs a small job, so that the classes of its plan are in the archive too."""
    from tidings.spark.settings import session

    if (archive := locate()) is None or archive.exists():
        return
    spark = session("local[1,4]", settings={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})
    spark.range(1_000).groupBy("id").count().collect()
    _keep(archive, SparkContext._gateway.proc, seconds=600.0)  # type: ignore[union-attr]


if __name__ == "__main__":
    main()
