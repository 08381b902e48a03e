"""The JVM's class archive: Spark's classes, parsed and checked once a machine instead of at every start.

The first session leaves an archive in the user's cache when its JVM ends; later ones map it and start in half the
time. Java ignores an archive that does not fit its build or its class path, so a wrong one costs only the gain.
"""

from __future__ import annotations

import os
import shutil
import time
from hashlib import blake2b
from pathlib import Path

import pyspark

# A JVM that is ending writes for a second or two; what is older is complete.
_SETTLED = 15.0


def java_options() -> str:
    """Options for the driver's JVM: use the archive, or make one at the end."""
    binary = java()
    if binary is None:
        return ""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidings"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        archive = folder / f"spark-{_key(binary)}.jsa"
        _adopt(archive)
    except OSError:
        return ""
    # Every class that cannot be archived would be remarked on, on standard output.
    quiet = "-Xshare:auto -Xlog:disable"
    if archive.exists():
        return f'"-XX:SharedArchiveFile={archive}" {quiet}'
    return f'"-XX:ArchiveClassesAtExit={archive.with_suffix(f".{os.getpid()}")}" {quiet}'


def _adopt(archive: Path) -> None:
    """Make a complete archive that an earlier session left under its own name the one for all."""
    for made in archive.parent.glob(f"{archive.stem}.[0-9]*"):
        if time.time() - made.stat().st_mtime > _SETTLED:
            made.rename(archive)


def java() -> Path | None:
    """The Java that Spark will start: the one of JAVA_HOME, or the first on the path."""
    home = os.environ.get("JAVA_HOME")
    found = Path(home) / "bin" / "java" if home else shutil.which("java")
    return Path(found).resolve() if found and Path(found).exists() else None


def _key(java: Path) -> str:
    """One archive for each Java and each installed Spark."""
    where = Path(pyspark.__file__).parent
    told = f"{java}\0{java.stat().st_mtime_ns}\0{where}\0{pyspark.__version__}\0{where.stat().st_mtime_ns}"
    return blake2b(told.encode(), digest_size=8).hexdigest()
