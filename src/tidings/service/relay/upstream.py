"""The link of a relay to the services above it: events come from the first one that answers.

An event is in the log before the position moves past its packet, so after a kill nothing is missing, and what comes twice is
dropped by its source and id. The next packets are read meanwhile: those that wait are written to the log together. If the first
parent is gone, the relay goes on at the second, from a little before the last event that it has; it returns to the first at the
number where it left it.

    hello ─► packets ─► decode, payloads ─► log ─► position          away: the next parent, after a pause
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tidings.dissemination.network.payloads import Repository
from tidings.dissemination.wire import (
    Frames,
    OtherVersion,
    Packet,
    WireError,
    decode,
    event_of,
    payload_id,
    with_payload,
)
from tidings.errors import TidingsError
from tidings.model.event import Event
from tidings.service.ingest.log_writer import LogWriter, Receipt, Unavailable
from tidings.service.relay.copies import NO_COPIES, Copies
from tidings.service.relay.downstream import read_gap, read_mark
from tidings.service.relay.identity import LONGEST_PATH
from tidings.service.relay.own_filters import OwnFilters
from tidings.service.relay.parent import Parent, ParentAway, ParentRefuses, Welcome
from tidings.service.relay.positions import Positions, read_positions, write_positions
from tidings.service.telemetry.link_metrics import UP, LinkMetrics

HELLO_EVERY = 10.0  # seconds; it also finds out whether the first parent is back
PAUSES = (0.1, 0.3, 1.0, 2.0, 5.0)
TRIES = 2  # of a parent before the other one is tried
_KEPT = 400  # payloads
_KEEP_EVERY = (
    1.0  # seconds between two writings of the position: what came since then comes again after a kill
)

_WORDS = {
    "connected": "is connected",
    "idle": "is not read",
    "away": "is away",
    "refuses": "refuses the link",
}

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class ParentState:
    """What is known of a parent. `status` is "connected", "away", "refuses" or "idle"."""

    url: str
    status: str = "idle"
    message: str = ""
    since: float = 0.0
    service: str = ""
    messages: int = 0
    bytes: int = 0
    duplicates: int = 0
    stripped: int = 0
    copies: Copies = NO_COPIES  # what its events would have been without this relay and those below
    caught_up: float = 0.0  # when it last had everything


@dataclass(slots=True)
class _Reading:
    """One run of a link."""

    parent: Parent
    state: ParentState
    welcome: Welcome
    frames: Frames = field(default_factory=Frames)
    last: Future[Receipt] | None = None  # the latest call to the log
    failure: BaseException | None = None  # of the log


@dataclass(slots=True)
class _Arrival:
    """What came in one piece: events, the number up to which that is all, and what is counted."""

    size: int
    events: list[Event] = field(default_factory=list)
    number: int | None = None
    payloads: list[bytes] = field(default_factory=list)
    stripped: int = 0
    caught_up: float | None = None


class Upstream:
    """Threads that follow the parents. `on_welcome` is called when the parent in use answers; `on_gap` with the id of a service and a
    number there up to which events may be missing, before the position moves past it."""

    def __init__(
        self,
        parents: Sequence[Parent],
        own: OwnFilters,
        log_writer: LogWriter,
        metrics: LinkMetrics,
        data: Path,
        *,
        name: str,
        address: str,
        on_welcome: Callable[[Parent, Welcome], None],
        on_gap: Callable[[str, int], None],
        clock: Callable[[], float],
    ) -> None:
        self._parents, self._own, self._log_writer, self._metrics = parents, own, log_writer, metrics
        self._on_welcome, self._on_gap = on_welcome, on_gap
        self._clock, self._file = clock, data / "upstream.json"
        self._positions: Positions = read_positions(self._file)
        self._read_before = frozenset(self._positions.numbers)
        self._kept, self._kept_at = self._positions, 0.0
        self._moving, self._counting = threading.Lock(), threading.Lock()
        self._name, self._address = name or socket.gethostname(), address
        own.before_first = self._meet
        self.states = [ParentState(parent.url, since=clock()) for parent in parents]
        self._path: dict[Parent, tuple[str, ...]] = {}
        self._payloads = Repository(_KEPT)
        self._unreadable = b""  # the hash of the last frame that could not be read
        self._stopping = threading.Event()
        self._current = 0
        self._returning = False
        self._threads = [
            threading.Thread(target=step, name=name, daemon=True)
            for step, name in ((self._run, "upstream"), (self._keep_hello, "upstream-hello"))
        ]

    def path(self) -> list[str]:
        """The ids of the services above, the nearest first."""
        return list(dict.fromkeys(id for path in list(self._path.values()) for id in path))

    def lag(self) -> dict[str, float]:
        """For the parent in use: how long ago this relay had everything that it has."""
        state = self.states[self._current]
        return {state.service or state.url: self._clock() - (state.caught_up or state.since)}

    def add_copies(self, copies: Copies) -> None:
        """Counts what subscribers below were notified of. Callable from any thread."""
        if not copies.notifications:
            return
        state = self.states[self._current]
        with self._counting:
            state.copies = state.copies + copies
        self._metrics.copied(UP, state.service or state.url, copies.notifications, copies.bytes)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for parent in self._parents:
            parent.interrupt()
        for thread in self._threads:
            thread.join(20)
        with self._moving:
            self._keep()
        for parent in self._parents:
            parent.close()

    # --- the link

    def _run(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            parent, state = self._parents[self._current], self.states[self._current]
            before = state.messages
            try:
                self._follow(parent, state)
            except ParentAway as error:
                if self._returning:
                    self._set(state, "idle")
                    self._current, self._returning, failures = 0, False, 0
                    continue
                if self._stopping.is_set():  # this relay has closed the link
                    return
                self._set(state, "away", str(error))
            except (ParentRefuses, WireError) as error:
                self._metrics.refused(1, "packet" if isinstance(error, WireError) else "link")
                self._set(state, "refuses", str(error))
                failures = max(failures, TRIES)  # trying again soon is of no use
            except TidingsError as error:  # of the log: it is full, or the service ends
                self._set(state, "away", str(error))
            except Exception:
                logger.exception("the link to %s has failed", parent.url)
                self._set(state, "away", f"the link to {parent.url} has failed; the log says why")
            failures = 1 if state.messages > before else failures + 1
            if failures >= TRIES and len(self._parents) > 1 and not self._stopping.is_set():
                self._current = 1 - self._current
                logger.warning("the relay goes on at %s", self._parents[self._current].url)
                failures = 0
                self._stopping.wait(PAUSES[0])
            else:
                self._stopping.wait(PAUSES[min(failures, len(PAUSES)) - 1])

    def _follow(self, parent: Parent, state: ParentState) -> None:
        """Reads a parent until it is gone, or the link is interrupted."""
        welcome = self._hello(parent)
        reading = _Reading(parent, state, welcome)
        state.service = welcome.service
        self._own.register_anew(parent)
        self._set(state, "connected")
        self._returning = False
        try:
            for chunk in parent.packets(**self._start(welcome)):
                if self._stopping.is_set():
                    return
                self._take(reading, reading.frames.feed(chunk), len(chunk))
        except ParentAway:
            if reading.failure is not None:
                raise reading.failure from None
            raise
        finally:
            wait([reading.last] if reading.last else [])

    def _hello(self, parent: Parent) -> Welcome:
        welcome = self._say_hello(parent)
        if parent.relay in welcome.path:
            raise ParentRefuses(
                f"{parent.url} gets its events from this relay; give an upstream that is nearer to the centre"
            )
        if len(welcome.path) >= LONGEST_PATH:
            raise ParentRefuses(
                f"{parent.url} is {len(welcome.path)} services away from the centre; at most {LONGEST_PATH} may follow each other"
            )
        self._path[parent] = welcome.path
        self._note_last(welcome)
        if parent is self._parents[self._current]:
            self._on_welcome(parent, welcome)
        return welcome

    def _say_hello(self, parent: Parent) -> Welcome:
        state = self.states[self._parents.index(parent)]
        return parent.hello(self._name, self._address, state.copies)

    def _meet(self, parent: Parent) -> bool:
        """Says hello before a parent is given filters. Returns whether it was read before this start."""
        welcome = self._say_hello(parent)
        self._note_last(welcome)
        return welcome.service in self._read_before

    def _note_last(self, welcome: Welcome) -> None:
        """Keeps where a parent was before it had filters of this relay. As long as no event has come from anywhere, only that
        says where to begin at it."""
        with self._moving:
            positions = self._positions
            if positions.event is None and welcome.service not in positions.numbers:
                self._positions = replace(
                    positions, numbers={**positions.numbers, welcome.service: welcome.last}
                )
                self._keep()

    def _start(self, welcome: Welcome) -> dict[str, object]:
        """Where to go on: at the number that was read last there; near the last event if that came from elsewhere; or with
        what comes from now on. The first parent is given both: it may have deleted what came from elsewhere."""
        positions = self._positions
        number = positions.numbers.get(welcome.service)
        if number is not None and number > welcome.last:  # the parent has lost what it had
            number = None
        if positions.event is None:
            return {"after": welcome.last if number is None else number}
        if number is not None and positions.service == welcome.service:
            return {"after": number}
        source, id = positions.event
        after = number if self._current == 0 else None
        return {"after": after, "source": source, "id": id, "since": positions.at}

    def _take(self, reading: _Reading, frames: Sequence[bytes], size: int) -> None:
        """Has the events of some frames written to the log. A frame that cannot be read ends the link, after those before it
        are taken; when it comes again, it is left out."""
        arrival, fault = _Arrival(size), None
        for data in frames:
            if (mark := read_mark(data)) is not None:
                arrival.number, arrival.caught_up = mark[0], self._clock()
                continue
            if (gap := read_gap(data)) is not None:
                self._on_gap(reading.welcome.service, gap)
                continue
            try:
                packet = decode(data)
                arrival.events.append(event_of(self._complete(reading.parent, packet)))
            except WireError as error:
                if self._unreadable != (hashed := payload_id(data)) or isinstance(error, OtherVersion):
                    self._unreadable, fault = hashed, error
                    break
                logger.error("a packet of %s is left out: %s", reading.parent.url, error)
                self._metrics.refused(1, "packet")
                continue
            arrival.payloads += [payload.id for payload in packet.payloads if payload.content is not None]
            arrival.stripped += len(packet.missing)
            arrival.number = packet.sequence
        reading.last = self._accept(arrival.events)
        reading.last.add_done_callback(partial(self._taken, reading, arrival))
        if arrival.payloads:
            reading.parent.acknowledge(arrival.payloads)
        if fault is not None:
            raise fault

    def _taken(self, reading: _Reading, arrival: _Arrival, written: Future[Receipt]) -> None:
        """What came is in the log, or could not be written: then the link ends, and what follows on it does not count, so that
        all of it comes again. In the thread of the log's writer."""
        if reading.failure is not None:
            return
        if (failure := written.exception()) is not None:
            reading.failure = failure
            reading.parent.interrupt()
            return
        duplicates = written.result().duplicates
        state, events = reading.state, len(arrival.events)
        state.messages, state.bytes = state.messages + events, state.bytes + arrival.size
        state.duplicates, state.stripped = state.duplicates + duplicates, state.stripped + arrival.stripped
        state.caught_up = arrival.caught_up or state.caught_up
        self._metrics.received(
            reading.welcome.service, events, arrival.size, stripped=arrival.stripped, duplicates=duplicates
        )
        if arrival.number is not None:
            self._move(reading.welcome.service, arrival.number, arrival.events)

    def _complete(self, parent: Parent, packet: Packet) -> Packet:
        """The packet with the payloads that were left out, from here or from the parent."""
        for payload in packet.payloads:
            if payload.content is not None:
                self._payloads.put(payload.id, payload.content)
        contents = []
        for payload in packet.missing:
            content = self._payloads.get(payload.id)
            if content is None:
                content = parent.payload(payload.id, packet.sequence)
                self._payloads.put(payload.id, content)
            contents.append(content)
        return with_payload(packet, *contents) if contents else packet

    def _accept(self, events: Sequence[Event]) -> Future[Receipt]:
        """Hands events to the writer of the log. It waits while the log takes no more."""
        while True:
            try:
                return self._log_writer.accept_later(events)
            except Unavailable as error:
                if self._stopping.wait(min(error.retry_after, 1.0)):
                    raise

    def _move(self, service: str, number: int, events: Sequence[Event]) -> None:
        with self._moving:
            positions = self._positions
            if events:
                positions = replace(positions, event=(events[-1].source, events[-1].id), at=self._clock())
            self._positions = replace(
                positions, numbers={**positions.numbers, service: number}, service=service
            )
            if time.monotonic() - self._kept_at >= _KEEP_EVERY:
                self._keep()

    def _keep(self) -> None:
        if self._positions != self._kept:
            write_positions(self._file, self._positions)
            self._kept, self._kept_at = self._positions, time.monotonic()

    # --- hello, again and again

    def _keep_hello(self) -> None:
        """Renews the filters at all parents, finds loops, and goes back to the first parent when it answers again."""
        while not self._stopping.wait(HELLO_EVERY):
            for at, parent in enumerate(self._parents):
                try:
                    self._hello(parent)
                except ParentRefuses as error:
                    if at == self._current and self.states[at].status == "connected":
                        self._set(self.states[at], "refuses", str(error))
                        parent.interrupt()
                    continue
                except TidingsError:
                    self._own.was_away(parent)
                    continue
                if at == 0 and self._current and parent not in self._own.faults:
                    logger.info("%s answers again", parent.url)
                    self._returning = True
                    self._parents[self._current].interrupt()

    def _set(self, state: ParentState, status: str, message: str = "") -> None:
        if (state.status, state.message) != (status, message):
            state.status, state.message, state.since = status, message, self._clock()
            level = logging.INFO if status in ("connected", "idle") else logging.WARNING
            logger.log(level, "the upstream service %s: %s", _WORDS[status], message or state.url)
