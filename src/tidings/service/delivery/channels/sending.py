"""Assigns notifications to messages of channels, and sends the messages when they are due.

All state is in the store: a turn assigns what is new, seals what is due, and hands what may be sent to workers, and any turn may
be the last before the process is killed. A message that was accepted and not yet noted is then sent again, with the same id.
Each kind of channel has workers of its own, and so have those of its channels that failed: a server that hangs delays no others.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from tidings.service.delivery.channels.composing import Composer, schedule_of
from tidings.service.delivery.channels.message import REFUSED, Message, MessageKind, Unavailable
from tidings.service.delivery.channels.schedule import Schedule, allowed, next_due
from tidings.service.delivery.channels.transports import Transports
from tidings.service.delivery.hub import Hub
from tidings.service.delivery.retries import LAST_RETRY, pause
from tidings.service.delivery.webhook_attempts import DELIVERED, FAILED, GONE, Outcome
from tidings.service.model import Channel, ChannelState, QueuedMessage
from tidings.service.store.channel_messages import ChannelMessages, Lane, Settled
from tidings.service.store.channels import Due

log = logging.getLogger(__name__)

AT_ONCE = 50  # of the channels of a kind that work, and as many of those that fail
BATCH = 500  # messages that are read together
ENOUGH = BATCH // 2  # that wait for the workers of a lane: no more are read
SEALED = 5_000  # in a transaction
TICK = 1.0  # seconds between two looks at what is due
REFUSALS = 5  # in a row end a channel
REFUSED_PAUSE = 3_600.0  # at least, after a refusal: a server may be set wrong for a while
GRACE = 5.0  # for what is being sent when the service stops


class Counts(Protocol):
    """The part of the metrics that counts messages."""

    def message(self, kind: str, outcome: str, late: float) -> None: ...


class Sender:
    """Sends the messages of all channels, in an event loop; `wake` may be called from any thread."""

    def __init__(
        self,
        messages: ChannelMessages,
        composer: Composer,
        transports: Transports,
        hub: Hub,
        *,
        counts: Counts | None = None,
        clock: Callable[[], float] = time.time,
        tick: float = TICK,
        seed: int | None = None,
    ) -> None:
        self._messages, self._composer, self._transports, self._hub = messages, composer, transports, hub
        self._counts, self._clock, self._tick = counts, clock, tick
        self._random = random.Random(seed)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken, self._stopping, self._complained = asyncio.Event(), False, False
        self._latest = float("inf")  # that the clock has shown: the store may have later times
        self._queues: dict[Lane, asyncio.Queue[_Job | None]] = {
            Lane(kind, is_failing): asyncio.Queue()
            for kind in (*transports.kinds, None)
            for is_failing in (False, True)
        }
        self._busy: set[str] = set()  # channels whose message is with a worker, or not settled yet
        self._settled: list[Settled] = []

    def wake(self) -> None:
        """Looks again at what is to be done: a channel was made or changed, or the mailbox has news."""
        loop = self._loop
        if loop is not None:
            try:
                loop.call_soon_threadsafe(self._woken.set)
            except RuntimeError:  # it ended just now; a start looks at everything
                pass

    async def test(self, channel: Channel) -> Outcome:
        """Sends a test message now; what waits stays as it is."""
        message = self._composer.message(channel, f"test_{secrets.token_hex(12)}", MessageKind.TEST)
        return await self._attempt(channel.kind, message)

    async def run(self, stop: asyncio.Event) -> None:
        """Sends until `stop` is set, and lets attempts under way end."""
        self._loop = asyncio.get_running_loop()
        self._hub.on_news(lambda news: self.wake())
        workers = [
            asyncio.create_task(self._work(queue)) for queue in self._queues.values() for _ in range(AT_ONCE)
        ]
        turning = asyncio.create_task(self._turns())
        try:
            await stop.wait()
        finally:
            self._stopping, self._loop = True, None
            self._woken.set()
            await turning
            for queue in self._queues.values():
                while not queue.empty():
                    queue.get_nowait()
                for _ in range(AT_ONCE):
                    queue.put_nowait(None)
            await asyncio.wait(workers, timeout=GRACE)
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            await self._settle()
            await self._transports.close()

    async def _turns(self) -> None:
        while not self._stopping:
            self._woken.clear()
            try:
                await self._settle()
                await self._turn()
                self._complained = False
            except Exception as error:  # a store's trouble; a server's is an outcome
                if not self._complained:
                    log.warning("channels cannot go on, trying again: %s", error)
                self._complained = True
                await asyncio.sleep(min(self._tick, TICK))
            try:
                # The clock is looked at again and again, because it may be set, or stand still while a machine sleeps.
                async with asyncio.timeout(self._tick):
                    await self._woken.wait()
            except TimeoutError:
                pass

    async def _turn(self) -> None:
        now = self._clock()
        due = due_at(now)
        if now < self._latest:
            await asyncio.to_thread(self._messages.set_back, due, now)
        self._latest = now
        while await asyncio.to_thread(self._messages.assign, due, now):
            pass
        while await asyncio.to_thread(self._messages.seal, due, now, SEALED) == SEALED:
            pass
        full = [lane for lane, queue in self._queues.items() if queue.qsize() > ENOUGH]
        found = await asyncio.to_thread(self._messages.to_send, now, BATCH + len(self._busy), full)
        ready = []
        for message in found:
            if message.channel.id in self._busy:
                continue
            self._busy.add(message.channel.id)
            moment = now if message.kind == MessageKind.CONFIRMATION else allowed(_schedule(message), now)
            if moment > now:
                self._note(Settled(message, message.channel, now, moment))
            else:
                ready.append(message)
        try:
            composed = await asyncio.to_thread(self._composer.compose, ready) if ready else []
        except BaseException:
            self._busy.difference_update(message.channel.id for message in ready)
            raise
        for queued, made in zip(ready, composed, strict=True):
            if queued.kind == MessageKind.NOTIFICATIONS and not made.items:  # nothing of it is kept any more
                self._note(Settled(queued, queued.channel, now))
            else:
                self._queues[self._lane(queued.channel)].put_nowait((queued, made))

    def _lane(self, channel: Channel) -> Lane:
        kind = channel.kind if channel.kind in self._transports.kinds else None
        return Lane(kind, channel.failures > 0)

    async def _work(self, queue: asyncio.Queue[_Job | None]) -> None:
        while (job := await queue.get()) is not None and not self._stopping:
            queued, message = job
            outcome = await self._attempt(queued.channel.kind, message)
            now = self._clock()
            if self._counts is not None:
                self._counts.message(queued.channel.kind, outcome.result, now - queued.due)
            self._note(self._result(queued, outcome, now))

    async def _attempt(self, kind: str, message: Message) -> Outcome:
        try:
            return await self._transports.of(kind).send(message, self._clock())
        except Unavailable as error:  # the service was started without what it had
            return Outcome(FAILED, str(error), retry_after=LAST_RETRY)
        except Exception as error:
            log.exception("a message could not be sent")
            return Outcome(FAILED, f"the message could not be sent: {type(error).__name__}")

    def _result(self, queued: QueuedMessage, outcome: Outcome, now: float) -> Settled:
        channel, schedule = queued.channel, _schedule(queued)
        if outcome.result == DELIVERED:
            sent = (*channel.sent, now)[-(schedule.at_most or 1) :]
            sent = channel.sent if queued.kind == MessageKind.CONFIRMATION else sent
            return Settled(queued, replace(channel, sent=sent, failures=0, refusals=0, error=None), now)
        failures = channel.failures + 1
        refusals = channel.refusals + 1 if outcome.result == REFUSED else 0
        failed = replace(channel, failures=failures, refusals=refusals, error=outcome.error)
        wait = pause(self._random, failures, outcome.retry_after)
        if outcome.result == REFUSED:
            wait = max(wait, REFUSED_PAUSE)
        moment = now + wait if queued.kind == MessageKind.CONFIRMATION else allowed(schedule, now + wait)
        if outcome.result == GONE or refusals >= REFUSALS:
            failed = replace(
                failed, state=ChannelState.ENDED, reason=outcome.error or "its server refuses messages"
            )
        return Settled(queued, failed, now, moment)

    def _note(self, settled: Settled) -> None:
        self._settled.append(settled)
        self._woken.set()

    async def _settle(self) -> None:
        """Stores what came of attempts, many in one transaction; what cannot be stored now is tried in the next turn."""
        settled = self._settled[:]
        if settled:
            await asyncio.to_thread(self._messages.settle, settled)
            del self._settled[: len(settled)]
            self._busy.difference_update(done.channel.id for done in settled)


_Job = tuple[QueuedMessage, Message]


def _schedule(message: QueuedMessage) -> Schedule:
    return schedule_of(message.channel.schedule)


def due_at(now: float) -> Due:
    """When messages are due, as seen now: what was due already is due as soon as its channel is not muted or quiet."""

    def due(written: str, sent: Sequence[float], first: float) -> float:
        schedule = schedule_of(written)
        # After a clock was set back, some may have been sent later than now.
        moment = next_due(schedule, first, [at for at in sent if at <= now])
        if moment > now:
            return moment
        earliest = allowed(schedule, now)
        return earliest if earliest > now else moment

    return due
