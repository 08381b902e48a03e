"""The threads of a caller: one runs an event loop for async operators, others make calls that have a timeout.

Threads are started when they are first needed and end with their owner. A thread does not survive a fork, and Spark's
workers are forked, so `CallerThreads` belongs to one process; the caller makes a new one in a forked process.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from tidings.kinds.operators.functions.signature import OperatorError

T = TypeVar("T")
MAX_ABANDONED = 100
_thread_state = threading.local()
_SHUTDOWN_SECONDS = 2.0  # seconds that a loop gets to cancel what still runs


class CallTimeout(Exception):
    """A call exceeded its timeout; its thread was abandoned."""


class StillRunning(Exception):
    """Too many abandoned calls have not returned."""


class OperatorLock:
    """A reentrant lock that threads of operators do not wait for: its holder may be waiting for that very operator."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=not getattr(_thread_state, "is_operator_thread", False)):
            raise OperatorError(
                "an operator cannot use the engine that calls it; give it an engine of its own"
            )

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class CallerThreads:
    """The threads that one caller has in one process."""

    def __init__(self, concurrency: int) -> None:
        self.pid = os.getpid()
        self._concurrency = concurrency
        self._loop: _Loop | None = None
        self._idle: deque[_Worker] = deque()
        self._abandoned: list[threading.Thread] = []
        self._lock = threading.Lock()

    def launch(self, callback: Callable[..., object], *arguments: Any) -> None:
        """Runs the callback on the event loop, soon; it gets the loop's `LoopTasks` first."""
        with self._lock:
            if self._loop is None:
                self._loop = _Loop(self._concurrency)
            self._loop.loop.call_soon_threadsafe(callback, self._loop.tasks, *arguments)

    def call(self, function: Callable[[], T], seconds: float) -> T:
        """Runs the function in a worker thread, and returns or raises what it does; `CallTimeout` after `seconds`."""
        try:
            worker = self._idle.pop()
        except IndexError:
            with self._lock:
                self._abandoned = [thread for thread in self._abandoned if thread.is_alive()]
                if len(self._abandoned) >= MAX_ABANDONED:
                    raise StillRunning(
                        f"{len(self._abandoned)} calls that took too long have not come back"
                    ) from None
            worker = _Worker()
        reply = worker.start(function)
        try:
            found, error = reply.get(timeout=seconds)
        except BaseException as interruption:
            worker.stop()
            self._abandoned.append(worker.thread)
            if isinstance(interruption, Empty):
                raise CallTimeout from None
            raise
        self._idle.append(worker)
        if error is not None:
            raise error
        return found

    def close(self) -> None:
        """Ends the threads; what runs on the loop is cancelled."""
        with self._lock:
            if self._loop is not None:
                self._loop.stop()
            self._loop = None
            while self._idle:
                self._idle.pop().stop()


class LoopTasks:
    """The tasks of one loop: a semaphore bounds how many run, and a set keeps them alive."""

    def __init__(self, concurrency: int) -> None:
        self.slots = asyncio.Semaphore(concurrency)
        self.running: set[asyncio.Task[Any]] = set()  # a loop does not keep its tasks alive itself


class _Loop:
    """An event loop in a daemon thread; it stops when this object is collected."""

    def __init__(self, concurrency: int) -> None:
        self.tasks = LoopTasks(concurrency)
        self.loop = asyncio.new_event_loop()
        thread = threading.Thread(target=_serve, args=(self.loop,), name="tidings-operators", daemon=True)
        thread.start()
        self.stop = weakref.finalize(self, _stop, self.loop, thread, os.getpid())


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    _thread_state.is_operator_thread = True
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=_SHUTDOWN_SECONDS / 2))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread, pid: int) -> None:
    # In a forked process the thread is not there, and to touch the loop would disturb the process it belongs to.
    if pid != os.getpid() or loop.is_closed():
        return
    loop.call_soon_threadsafe(loop.stop)
    if thread is not threading.current_thread():
        thread.join(_SHUTDOWN_SECONDS)


class _Worker:
    """A daemon thread that makes one call at a time, until it is stopped or this object is collected."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Callable[[], Any], SimpleQueue[Any]] | None] = SimpleQueue()
        self.thread = threading.Thread(
            target=_work, args=(self._calls,), name="tidings-operator", daemon=True
        )
        self.thread.start()
        self.stop = weakref.finalize(self, self._calls.put, None)

    def start(self, function: Callable[[], Any]) -> SimpleQueue[Any]:
        """Makes the call; the queue gets what it returns and None, or None and what it raises."""
        reply: SimpleQueue[Any] = SimpleQueue()
        self._calls.put((function, reply))
        return reply


def _work(calls: SimpleQueue[tuple[Callable[[], Any], SimpleQueue[Any]] | None]) -> None:
    _thread_state.is_operator_thread = True
    while (call := calls.get()) is not None:
        function, reply = call
        try:
            reply.put((function(), None))
        except BaseException as error:
            reply.put((None, error))
        del call, function, reply  # an event is not kept until the next call
