"""Calls operators and turns their answers into outcomes; handles timeouts, retries and batches.

Sync operators are called one after another in the calling thread; async ones run concurrently on one event loop in a
background thread; batch operators get several requests in one call. Every request gets exactly one answer.
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
from tidings.kinds.operators.functions.outcome import MAX_ROWS, Outcome, UnusableAnswer
from tidings.kinds.operators.functions.threads import CallerThreads, CallTimeout, LoopTasks
from tidings.model.event import Event

MAX_BATCH = 1_000
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
_FAILURES = (
    Exception,
    SystemExit,
)  # sys.exit() in an operator must not end the process that matches; Ctrl-C does
# Threads of the process that this one was forked from: their loops must not be closed here.
_INHERITED_THREADS: list[CallerThreads] = []


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
        self._threads = CallerThreads(concurrency)
        self._pending = _PendingCalls(self._threads)

    def run(self, requests: Sequence[Request]) -> list[Answer]:
        """The answers to all requests, in their order."""
        if all(request.operator.is_plain for request in requests):
            return [_call(*request) for request in requests]
        self._restart_after_fork()
        pending = _PendingCalls(self._threads)
        pending.submit([request._replace(token=position) for position, request in enumerate(requests)])
        found: dict[int, Answer] = {}
        while pending.outstanding:
            found.update((answer.token, answer) for answer in pending.collect())
        return [found[position]._replace(token=request.token) for position, request in enumerate(requests)]

    def submit(self, requests: Iterable[Request]) -> None:
        """Starts the calls of async operators; the others are made when `collect` has nothing else to do."""
        self._restart_after_fork()
        self._pending.submit(requests)

    def collect(self) -> list[Answer]:
        """Waits for finished calls and returns their answers; an empty list only if nothing is outstanding."""
        self._restart_after_fork()
        return self._pending.collect()

    @property
    def outstanding(self) -> int:
        """The number of submitted requests that were not collected yet."""
        self._restart_after_fork()
        return self._pending.outstanding

    def close(self) -> None:
        """Ends the threads; async calls under way are cancelled, and answered by that."""
        if self._threads.pid == os.getpid():
            self._threads.close()

    def _restart_after_fork(self) -> None:
        """Replaces the threads in a forked process, where those of the parent do not run."""
        if self._threads.pid != os.getpid():
            _INHERITED_THREADS.append(self._threads)
            self._threads = CallerThreads(self._concurrency)
            self._pending = _PendingCalls(self._threads)


class _CallBatch(NamedTuple):
    """The requests of one call: a single one, or several for a batch operator."""

    operator: Operator
    requests: list[Request]
    tries: int


class _PendingCalls:
    """Submitted requests, and the answers that were not collected yet."""

    def __init__(self, threads: CallerThreads) -> None:
        self.outstanding = 0
        self._threads = threads
        self._waiting: deque[_CallBatch] = deque()
        self._finished: SimpleQueue[tuple[_CallBatch, list[Answer] | BaseException]] = SimpleQueue()

    def submit(self, requests: Iterable[Request]) -> None:
        together: list[_CallBatch] = []
        for batch in _batches(requests):
            self.outstanding += len(batch.requests)
            if batch.operator.is_async:
                together.append(batch)
            elif not (batch.operator.batch and self._merge_into_waiting(batch)):
                self._waiting.append(batch)
        if together:
            self._threads.launch(_start, together, self._finished)

    def _merge_into_waiting(self, batch: _CallBatch) -> bool:
        """Adds a batch to a waiting one of the same operator, if it has room; whether it did."""
        for other in self._waiting:
            if other.operator is batch.operator and len(other.requests) + len(batch.requests) <= MAX_BATCH:
                other.requests.extend(batch.requests)
                return True
        return False

    def collect(self) -> list[Answer]:
        answers: list[Answer] = []
        while True:
            must_wait = not answers and not self._waiting and self.outstanding > 0
            try:
                batch, found = self._finished.get(block=must_wait)
            except Empty:
                break
            self.outstanding -= len(batch.requests)
            if isinstance(found, BaseException):
                raise found
            answers += found
        if not answers and self._waiting:
            batch = self._waiting.popleft()
            self.outstanding -= len(batch.requests)
            answers = _answers(batch, self._threads)
        return answers


def _batches(requests: Iterable[Request]) -> list[_CallBatch]:
    """Groups the requests of each batch operator, up to `MAX_BATCH` in one call."""
    batches: list[_CallBatch] = []
    open_batches: dict[Operator, list[Request]] = {}
    for request in requests:
        operator = request.operator
        together = open_batches.get(operator)
        if together is None or len(together) == MAX_BATCH:
            together = []
            batches.append(_CallBatch(operator, together, 1 + operator.retries))
            if operator.batch:
                open_batches[operator] = together
        together.append(request)
    return batches


def _call(operator: Operator, event: Event, inputs: tuple[Any, ...], token: Any) -> Answer:
    """Calls an operator without timeout, retries or batches directly."""
    start = time.perf_counter()
    try:
        outcome = Outcome.of(operator, operator.prepared(event, *inputs))
    except _FAILURES as error:
        outcome = Outcome.failure(operator, error)
    return Answer(token, outcome, time.perf_counter() - start)


def _answers(batch: _CallBatch, threads: CallerThreads) -> list[Answer]:
    """The answers of a sync operator."""
    if batch.operator.is_plain:
        return [_call(*batch.requests[0])]
    start = time.perf_counter()
    found = _try(batch, threads)
    share = (time.perf_counter() - start) / len(batch.requests)
    if _must_be_split(batch, found):
        return [
            _add_seconds(answer, share)
            for single in _split_batch(batch)
            for answer in _answers(single, threads)
        ]
    return _assigned(batch, found, share)


def _try(batch: _CallBatch, threads: CallerThreads) -> list[Outcome] | BaseException:
    timeout, attempt = batch.operator.timeout, partial(_attempt, batch)
    failure: BaseException = CallTimeout()
    for pause in _pauses(batch.tries):
        if pause:
            time.sleep(pause)
        try:
            return attempt() if timeout is None else threads.call(attempt, timeout)
        except UnusableAnswer as error:
            return error  # it answered, and would answer so again
        except _FAILURES as error:
            failure = error
    return failure


def _attempt(batch: _CallBatch) -> list[Outcome]:
    operator = batch.operator
    if operator.batch:
        return _unpacked(batch, operator.prepared(_arguments(batch)))
    return [Outcome.of(operator, operator.prepared(batch.requests[0].event, *batch.requests[0].inputs))]


def _start(tasks: LoopTasks, batches: list[_CallBatch], finished: SimpleQueue[Any]) -> None:
    """Starts a task for each async batch; runs on the event loop."""

    def finish(batch: _CallBatch, task: asyncio.Task[list[Answer] | BaseException]) -> None:
        tasks.running.discard(task)
        if task.cancelled():
            finished.put(
                (batch, _assigned(batch, UnusableAnswer("was cancelled, because its caller was closed"), 0.0))
            )
        else:
            finished.put((batch, task.exception() or task.result()))

    for batch in batches:
        task = asyncio.create_task(_answers_async(batch, tasks.slots))
        tasks.running.add(task)
        task.add_done_callback(partial(finish, batch))


async def _answers_async(batch: _CallBatch, slots: asyncio.Semaphore) -> list[Answer] | BaseException:
    """The answers of an async operator, or the interruption that ends the program."""
    async with slots:
        start = time.perf_counter()
        try:
            found = await _try_async(batch)
        except KeyboardInterrupt as interruption:
            return interruption  # raised here, it would end the loop and everyone's calls on it
        share = (time.perf_counter() - start) / len(batch.requests)
    if not _must_be_split(batch, found):
        return _assigned(batch, found, share)
    answers: list[Answer] = []
    for part in await asyncio.gather(*[_answers_async(single, slots) for single in _split_batch(batch)]):
        if isinstance(part, BaseException):
            return part
        answers += [_add_seconds(answer, share) for answer in part]
    return answers


async def _try_async(batch: _CallBatch) -> list[Outcome] | BaseException:
    failure: BaseException = CallTimeout()
    for pause in _pauses(batch.tries):
        if pause:
            await asyncio.sleep(pause)
        try:
            async with asyncio.timeout(batch.operator.timeout) as limit:
                return await _attempt_async(batch)
        except UnusableAnswer as error:
            return error
        except _FAILURES as error:
            failure = CallTimeout() if limit.expired() else error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            failure = error  # something that the operator awaited was cancelled
    return failure


async def _attempt_async(batch: _CallBatch) -> list[Outcome]:
    operator = batch.operator
    if operator.batch:
        return _unpacked(batch, await operator.prepared(_arguments(batch)))
    answer = operator.prepared(batch.requests[0].event, *batch.requests[0].inputs)
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


def _arguments(batch: _CallBatch) -> list[tuple[Any, ...]]:
    return [(request.event, *request.inputs) for request in batch.requests]


def _unpacked(batch: _CallBatch, answers: Any) -> list[Outcome]:
    """The outcomes of a batch; `UnusableAnswer` if it has not one answer for each call."""
    calls = len(batch.requests)
    if not isinstance(answers, Iterable) or isinstance(answers, str | bytes | Mapping):
        raise UnusableAnswer(
            f"returned {answers!r:.80} for a batch; return a list with an answer for each call"
        )
    found = list(islice(answers, calls + 1))
    if len(found) != calls:
        number = len(found) if len(found) < calls else f"more than {calls}"
        raise UnusableAnswer(f"returned {number} answers for {calls} calls; return one for each, in order")
    outcomes = []
    for answer in found:
        try:
            outcomes.append(Outcome.of(batch.operator, answer))
        except _FAILURES as error:
            outcomes.append(Outcome.failure(batch.operator, error))
    return outcomes


def _must_be_split(batch: _CallBatch, found: list[Outcome] | BaseException) -> bool:
    """Whether to call a failed batch again event by event, because one event may have caused it. A timeout is not retried."""
    return len(batch.requests) > 1 and isinstance(found, BaseException) and not isinstance(found, CallTimeout)


def _split_batch(batch: _CallBatch) -> list[_CallBatch]:
    return [_CallBatch(batch.operator, [request], 1) for request in batch.requests]


def _add_seconds(answer: Answer, seconds: float) -> Answer:
    return answer._replace(seconds=answer.seconds + seconds)


def _assigned(batch: _CallBatch, found: list[Outcome] | BaseException, share: float) -> list[Answer]:
    if isinstance(found, BaseException):
        if isinstance(found, CallTimeout):
            outcome = Outcome.timed_out(batch.operator)
        elif isinstance(found, UnusableAnswer):
            outcome = Outcome.unusable(batch.operator, found)
        else:
            outcome = Outcome.failure(batch.operator, found)
        found = [outcome] * len(batch.requests)
    return [Answer(r.token, outcome, share) for r, outcome in zip(batch.requests, found, strict=True)]


def _pauses(tries: int) -> Iterator[float]:
    """The seconds to wait before each try."""
    yield 0.0
    for again in range(tries - 1):
        yield min(_FIRST_PAUSE * 2**again, _LONGEST_PAUSE)
