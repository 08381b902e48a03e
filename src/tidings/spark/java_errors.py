"""Shortens errors of Java that Python code gives back to Java.

When a query is stopped, the Java call that its micro-batch waits for is interrupted, and the error comes back to Spark as the
text of a Python traceback. Spark looks for the interruption in it by a regular expression that needs stack for each
character: a long Java stack in the text ended in a StackOverflowError of a thousand lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError

_LENGTH = 1_000  # characters


class _ShortError(Py4JJavaError):
    def __init__(self, text: str) -> None:
        Exception.__init__(self, text)

    def __str__(self) -> str:
        return str(self.args[0])


# Spark looks for this name in a traceback.
_ShortError.__module__, _ShortError.__qualname__ = Py4JJavaError.__module__, Py4JJavaError.__qualname__


@contextmanager
def short_java_errors() -> Iterator[None]:
    """Errors of Java that leave the block have no stack."""
    try:
        yield
    except Py4JJavaError as error:
        lines = [line for line in str(error).splitlines() if not line.startswith("\tat ")]
        raise _ShortError("\n".join(lines)[:_LENGTH]) from None
