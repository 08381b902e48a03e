"""Checks that Spark's Python workers have this package, once for each session and before any job needs it.

A session that somebody else has started may run its workers with another Python: the first job would end in the traceback of
a worker, several times over.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidings.errors import TidingsError

_PACKAGE = "tidings"
_checked: set[str] = set()  # applications whose workers have the package


def need_package(spark: SparkSession) -> None:
    """Raises an error with what to set if the workers of a session cannot import this package."""
    try:
        context = spark.sparkContext
    except PySparkException:  # of a session over Spark Connect, where nobody here starts the workers
        return
    if context.applicationId in _checked:
        return
    python = context.pythonExec
    if not (str(context.master).startswith("local") and _is_this(python)):
        try:
            (missing,) = context.parallelize([0], 1).map(_probe()).collect()
        except Exception as error:
            missing = python if _is_about_python(str(error)) else ""
            if not missing:
                raise
        if missing:
            raise TidingsError(
                f"Spark's Python workers run {missing}, which has no package {_PACKAGE}; install it there, or set"
                f" PYSPARK_PYTHON={sys.executable} in the environment (or spark.pyspark.python for spark-submit) before the"
                " session starts, or let tidings.spark.session() start it"
            ) from None
    _checked.add(context.applicationId)


def _is_this(python: str) -> bool:
    """Whether a command is the Python that runs this, or another name of it in the same environment."""
    found = shutil.which(python)
    return found is not None and os.path.dirname(os.path.abspath(found)) == os.path.dirname(sys.executable)


def _probe() -> Callable[[object], str]:
    """What a worker runs: the path of its Python if that lacks the package. A nested function is pickled by value; one of
    this module would need the package itself."""
    package = _PACKAGE

    def missing(_: object) -> str:
        import importlib.util
        import sys

        spec = importlib.util.find_spec(package)
        # A folder of the same name without code is found too, as a namespace.
        return sys.executable if spec is None or spec.origin is None else ""

    return missing


def _is_about_python(error: str) -> bool:
    """Whether a job failed because of its Python: another version, none at all, or a daemon that lacks the package."""
    marks = ("PYTHON_VERSION_MISMATCH", "Cannot run program", f"No module named '{_PACKAGE}'")
    return any(mark in error for mark in marks)
