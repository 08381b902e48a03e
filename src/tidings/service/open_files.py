"""The limit of open files of this process: raised as far as the system lets it, and shared out.

Every connection is an open file, and every stream a connection. What the stores, the log and the index need is kept
free, so that no number of connections makes them fail.
"""

from __future__ import annotations

import resource

_MOST = 65_536  # where the system names no limit
_RESERVED = 512  # for everything but connections
_FEWEST = 64  # connections, however low the limit


def raise_limit() -> None:
    """Raises the soft limit to the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        pass  # a container may forbid it; the limits of connections follow from what there is


def max_connections() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(_FEWEST, (_MOST if soft == resource.RLIM_INFINITY else min(soft, _MOST)) - _RESERVED)


def max_streams() -> int:
    """Of server-sent events, open at once: a quarter of the connections is left for requests."""
    return max_connections() * 3 // 4
