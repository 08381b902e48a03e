"""Calls operators and turns what they answer into outcomes: together if they are async, in bulk if they ask for it.

Sync operators are called one after another in the thread that asks; async ones run together on one event loop in the
background. Timeouts, retries and batches that fail are settled here, so that every request gets exactly one answer.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from tidings.kinds.operators.functions.operator import Operator
from tidings.kinds.operators.functions.outcome import MAX_ROWS, Outcome, Unfit
from tidings.kinds.operators.functions.threads import Background, Late, Room
from tidings.model.event import Event

MAX_BATCH = 1_000
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
# Backgrounds of the process that this one was forked from: their loops must not be closed here.
_INHERITED: list[Background] = []


class Request(NamedTuple):
    """One evaluation: its inputs are Python values (`Operator.read_inputs`), its token comes back with the answer."""

    operator: Operator
    event: Event
    inputs: tuple[Any, ...] = ()
    token: Any = None


class Answer(NamedTuple):
    """An outcome and the seconds that it took: all tries of the call, or its share of a batch."""

    token: Any
    outcome: Outcome
    seconds: float


class Caller:
    """Makes the calls of one engine.

    `run` may be used by several threads at once, `submit` and `collect` by one. Threads are started when they are
    first needed, and end with the caller.
    """

    def __init__(self, concurrency: int = 100) -> None:
        """At most `concurrency` calls of async operators, or batches of them, are under way at once."""
        self._concurrency = concurrency
        self._background = Background(concurrency)
        self._flight = _Flight(self._background)

    def run(self, requests: Sequence[Request]) -> list[Answer]:
        """The answers to all requests, in their order."""
        if all(request.operator.is_plain for request in requests):
            return [_call(*request) for request in requests]
        self._settle_in()
        flight = _Flight(self._background)
        flight.submit([request._replace(token=place) for place, request in enumerate(requests)])
        found: dict[int, Answer] = {}
        while flight.outstanding:
            found.update((answer.token, answer) for answer in flight.collect())
        return [found[place]._replace(token=request.token) for place, request in enumerate(requests)]

    def submit(self, requests: Iterable[Request]) -> None:
        """Starts the calls of async operators; the others are made when `collect` has nothing else to do."""
        self._settle_in()
        self._flight.submit(requests)

    def collect(self) -> list[Answer]:
        """What is finished, as soon as anything is; an empty list only if nothing is outstanding."""
        self._settle_in()
        return self._flight.collect()

    @property
    def outstanding(self) -> int:
        """How many submitted requests were not collected yet."""
        self._settle_in()
        return self._flight.outstanding

    def close(self) -> None:
        """Ends the threads; async calls under way are cancelled, and answered by that."""
        if self._background.pid == os.getpid():
            self._background.close()

    def _settle_in(self) -> None:
        """Starts anew in a process that was forked."""
        if self._background.pid != os.getpid():
            _INHERITED.append(self._background)
            self._background = Background(self._concurrency)
            self._flight = _Flight(self._background)


class _Work(NamedTuple):
    """What is called at once: one request, or a batch of them."""

    operator: Operator
    requests: list[Request]
    tries: int


class _Flight:
    """Requests under way, and the answers that were not collected yet."""

    def __init__(self, background: Background) -> None:
        self.outstanding = 0
        self._background = background
        self._waiting: deque[_Work] = deque()
        self._finished: SimpleQueue[tuple[_Work, list[Answer] | BaseException]] = SimpleQueue()

    def submit(self, requests: Iterable[Request]) -> None:
        together: list[_Work] = []
        for work in _works(requests):
            self.outstanding += len(work.requests)
            if work.operator.is_async:
                together.append(work)
            elif not (work.operator.batch and self._joins(work)):
                self._waiting.append(work)
        if together:
            self._background.launch(_start, together, self._finished)

    def _joins(self, work: _Work) -> bool:
        """Puts a batch to one of the same operator that waits, if there is room."""
        for other in self._waiting:
            if other.operator is work.operator and len(other.requests) + len(work.requests) <= MAX_BATCH:
                other.requests.extend(work.requests)
                return True
        return False

    def collect(self) -> list[Answer]:
        answers: list[Answer] = []
        while True:
            must_wait = not answers and not self._waiting and self.outstanding > 0
            try:
                work, found = self._finished.get(block=must_wait)
            except Empty:
                break
            self.outstanding -= len(work.requests)
            if isinstance(found, BaseException):
                raise found
            answers += found
        if not answers and self._waiting:
            work = self._waiting.popleft()
            self.outstanding -= len(work.requests)
            answers = _answers(work, self._background)
        return answers


def _works(requests: Iterable[Request]) -> list[_Work]:
    """Requests of one batch operator put together, as far as they fit into one batch."""
    works: list[_Work] = []
    batches: dict[Operator, list[Request]] = {}
    for request in requests:
        operator = request.operator
        batch = batches.get(operator)
        if batch is None or len(batch) == MAX_BATCH:
            batch = []
            works.append(_Work(operator, batch, 1 + operator.retries))
            if operator.batch:
                batches[operator] = batch
        batch.append(request)
    return works


def _call(operator: Operator, event: Event, inputs: tuple[Any, ...], token: Any) -> Answer:
    """The shortest way, for an operator that is nothing but a function."""
    start = time.perf_counter()
    try:
        outcome = Outcome.of(operator, operator.prepared(event, *inputs))
    except Exception as error:
        outcome = Outcome.failure(operator, error)
    return Answer(token, outcome, time.perf_counter() - start)


def _answers(work: _Work, background: Background) -> list[Answer]:
    """The answers of a sync operator."""
    if work.operator.is_plain:
        return [_call(*work.requests[0])]
    start = time.perf_counter()
    found = _try(work, background)
    share = (time.perf_counter() - start) / len(work.requests)
    if _is_to_be_split(work, found):
        return [_later(answer, share) for one in _singles(work) for answer in _answers(one, background)]
    return _assigned(work, found, share)


def _try(work: _Work, background: Background) -> list[Outcome] | Exception:
    timeout, attempt = work.operator.timeout, partial(_attempt, work)
    failure: Exception = Late()
    for pause in _pauses(work.tries):
        if pause:
            time.sleep(pause)
        try:
            return attempt() if timeout is None else background.call(attempt, timeout)
        except Unfit as error:
            return error  # it answered, and would answer so again
        except Exception as error:
            failure = error
    return failure


def _attempt(work: _Work) -> list[Outcome]:
    operator = work.operator
    if operator.batch:
        return _unpacked(work, operator.prepared(_batch(work)))
    return [Outcome.of(operator, operator.prepared(work.requests[0].event, *work.requests[0].inputs))]


def _start(room: Room, works: list[_Work], finished: SimpleQueue[Any]) -> None:
    """Makes tasks of async work; on the event loop."""

    def finish(work: _Work, task: asyncio.Task[list[Answer] | BaseException]) -> None:
        room.tasks.discard(task)
        if task.cancelled():
            finished.put((work, _assigned(work, Unfit("was cancelled, because its caller was closed"), 0.0)))
        else:
            finished.put((work, task.exception() or task.result()))

    for work in works:
        task = asyncio.create_task(_answers_async(work, room.slots))
        room.tasks.add(task)
        task.add_done_callback(partial(finish, work))


async def _answers_async(work: _Work, slots: asyncio.Semaphore) -> list[Answer] | BaseException:
    """The answers of an async operator, or what is to end the program."""
    async with slots:
        start = time.perf_counter()
        try:
            found = await _try_async(work)
        except (KeyboardInterrupt, SystemExit) as interruption:
            return interruption  # raised here, it would end the loop and everyone's calls on it
        share = (time.perf_counter() - start) / len(work.requests)
    if not _is_to_be_split(work, found):
        return _assigned(work, found, share)
    answers: list[Answer] = []
    for part in await asyncio.gather(*[_answers_async(one, slots) for one in _singles(work)]):
        if isinstance(part, BaseException):
            return part
        answers += [_later(answer, share) for answer in part]
    return answers


async def _try_async(work: _Work) -> list[Outcome] | BaseException:
    failure: BaseException = Late()
    for pause in _pauses(work.tries):
        if pause:
            await asyncio.sleep(pause)
        try:
            async with asyncio.timeout(work.operator.timeout) as limit:
                return await _attempt_async(work)
        except Unfit as error:
            return error
        except Exception as error:
            failure = Late() if limit.expired() else error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            failure = error  # something that the operator awaited was cancelled
    return failure


async def _attempt_async(work: _Work) -> list[Outcome]:
    operator = work.operator
    if operator.batch:
        return _unpacked(work, await operator.prepared(_batch(work)))
    answer = operator.prepared(work.requests[0].event, *work.requests[0].inputs)
    if not hasattr(answer, "__aiter__"):
        answer = await answer
    if hasattr(answer, "__aiter__"):
        bindings = []
        async for binding in answer:
            bindings.append(binding)
            if len(bindings) > MAX_ROWS:
                break
        answer = bindings
    return [Outcome.of(operator, answer)]


def _batch(work: _Work) -> list[tuple[Any, ...]]:
    return [(request.event, *request.inputs) for request in work.requests]


def _unpacked(work: _Work, answers: Any) -> list[Outcome]:
    """The outcomes of a batch; `Unfit` if it has not one answer for each call."""
    calls = len(work.requests)
    if not isinstance(answers, Iterable) or isinstance(answers, str | bytes | Mapping):
        raise Unfit(f"returned {answers!r:.80} for a batch; return a list with an answer for each call")
    found = list(islice(answers, calls + 1))
    if len(found) != calls:
        number = len(found) if len(found) < calls else f"more than {calls}"
        raise Unfit(f"returned {number} answers for {calls} calls; return one for each, in order")
    outcomes = []
    for answer in found:
        try:
            outcomes.append(Outcome.of(work.operator, answer))
        except Exception as error:
            outcomes.append(Outcome.failure(work.operator, error))
    return outcomes


def _is_to_be_split(work: _Work, found: list[Outcome] | BaseException) -> bool:
    """Whether one bad event may have spoilt a batch. One that is late is not tried again event by event."""
    return len(work.requests) > 1 and isinstance(found, BaseException) and not isinstance(found, Late)


def _singles(work: _Work) -> list[_Work]:
    return [_Work(work.operator, [request], 1) for request in work.requests]


def _later(answer: Answer, seconds: float) -> Answer:
    return answer._replace(seconds=answer.seconds + seconds)


def _assigned(work: _Work, found: list[Outcome] | BaseException, share: float) -> list[Answer]:
    if isinstance(found, BaseException):
        if isinstance(found, Late):
            outcome = Outcome.late(work.operator)
        elif isinstance(found, Unfit):
            outcome = Outcome.unfit(work.operator, found)
        else:
            outcome = Outcome.failure(work.operator, found)
        found = [outcome] * len(work.requests)
    return [Answer(r.token, outcome, share) for r, outcome in zip(work.requests, found, strict=True)]


def _pauses(tries: int) -> Iterator[float]:
    """How long to wait before each try."""
    yield 0.0
    for again in range(tries - 1):
        yield min(_FIRST_PAUSE * 2**again, _LONGEST_PAUSE)
