"""How far the stream is behind, and whether events that are published now are matched now."""

from __future__ import annotations

from tidings.arrays import loop_cache
from tidings.service.ingest.log_writer import Backlog, LogWriter
from tidings.service.matching.local_stream import LocalStream
from tidings.service.matching.stream_position import answered, positions
from tidings.service.matching.supervisor import Supervisor
from tidings.service.settings import Settings
from tidings.service.store.mailbox import Mailbox
from tidings.storage.event_log import EventLog, Offset

_DOES = {"starting": "is starting", "failed": "has failed", "stopped": "is stopped"}


class StreamHealth:
    """The health of the stream of one service."""

    def __init__(
        self,
        supervisor: Supervisor | LocalStream,
        mailbox: Mailbox,
        log: EventLog,
        log_writer: LogWriter,
        settings: Settings,
    ) -> None:
        self._supervisor, self._log_writer = supervisor, log_writer
        self._stream = settings.data / "checkpoint", mailbox, log
        self._max_lag = settings.max_lag

    def answered(self) -> Offset:
        """The offset up to which every query has answered."""
        return answered(*self._stream)

    def lag(self) -> Backlog:
        """What the slowest query has not answered."""
        return self._log_writer.lag(self.answered())

    def waiting(self) -> list[str]:
        """The queries that have events to answer."""
        reached = positions(*self._stream)
        return [query for query, offset in reached.items() if self._log_writer.lag(offset).events]

    def fault(self, lag: Backlog) -> str | None:
        """Why events that are published now are not matched now, given the present lag; None if they are."""
        state = self._supervisor.state
        if state.status != "running":
            why = f": {state.message}" if state.message else ""
            return f"the stream {_DOES[state.status]}{why}; {_compiling()}events are accepted, and wait"
        if lag.events and not state.matching:
            return (
                f"the stream has started and has yet to match its first events; {_compiling()}{_waiting(lag)}"
            )
        if lag.seconds > self._max_lag:
            return f"the stream is {lag.seconds:.0f} s behind; {_waiting(lag)}"
        return None


def _compiling() -> str:
    return (
        ""
        if loop_cache.is_complete()
        else "the matching loops are being compiled, once; this may take a minute; "
    )


def _waiting(lag: Backlog) -> str:
    return f"{lag.events:,} event{' waits' if lag.events == 1 else 's wait'}"
