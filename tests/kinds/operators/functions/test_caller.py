"""Calls of operators: every request gets exactly one answer, whatever the operator does, and async ones overlap."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tidings.kinds.operators.functions.caller import Answer, Caller, Request
from tidings.kinds.operators.functions.operator import Operator, Out, operator
from tidings.kinds.operators.functions.outcome import FALSE, TRUE, Outcome
from tidings.kinds.operators.functions.threads import MAX_ABANDONED
from tidings.model.event import Event

EVENT = Event(attributes={"n": 1})


@pytest.fixture
def caller() -> Iterator[Caller]:
    made = Caller()
    yield made
    made.close()


@operator
def double(event: Event, n: int, twice: Out[int]) -> Any:
    yield 2 * n


@operator
def broken(event: Event, n: int) -> bool:
    raise ValueError(f"no {n}\nat all")


@operator
async def later(event: Event, n: int) -> bool:
    await asyncio.sleep(0.001 * (10 - n))
    return n % 2 == 0


@operator
async def stream(event: Event, n: int, each: Out[int]) -> Any:
    for number in range(n):
        await asyncio.sleep(0)
        yield number


def outcomes(caller: Caller, used: Operator, *inputs: tuple[Any, ...]) -> list[Outcome]:
    return [answer.outcome for answer in caller.run([Request(used, EVENT, each) for each in inputs])]


def test_plain_operators_start_no_thread(caller: Caller) -> None:
    before = threading.active_count()
    assert outcomes(caller, double, (1,), (2,)) == [Outcome(((2,),)), Outcome(((4,),))]
    assert outcomes(caller, broken, (1,)) == [Outcome(error="broken failed: ValueError: no 1 at all")]
    assert threading.active_count() == before


def test_an_error_inside_a_generator() -> None:
    @operator
    def half(event: Event, n: Out[int]) -> Any:
        yield 1
        raise KeyError("gone")

    assert outcomes(Caller(), half, ()) == [Outcome(error="half failed: KeyError: 'gone'")]


def test_answers_come_in_the_order_of_the_requests(caller: Caller) -> None:
    mixed = [
        Request((later, double, broken, stream)[n % 4], EVENT, (n % 10,), token=f"t{n}") for n in range(40)
    ]
    answers = caller.run(mixed)
    assert [answer.token for answer in answers] == [request.token for request in mixed]
    for request, answer in zip(mixed, answers, strict=True):
        (n,) = request.inputs
        if request.operator is later:
            assert answer.outcome == (TRUE if n % 2 == 0 else FALSE)
        elif request.operator is stream:
            assert answer.outcome.rows == tuple((number,) for number in range(n))
        elif request.operator is double:
            assert answer.outcome.rows == ((2 * n,),)
        else:
            assert answer.outcome.error == f"broken failed: ValueError: no {n} at all"
        assert answer.seconds >= 0


def test_a_thousand_async_calls_overlap(caller: Caller) -> None:
    running = most = 0

    @operator
    async def service(event: Event, n: int) -> bool:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return n % 2 == 0

    took = []
    for _ in range(3):  # the best of a few: other programs may keep the processor busy
        start = time.perf_counter()
        answers = caller.run([Request(service, EVENT, (n,)) for n in range(1000)])
        took.append(time.perf_counter() - start)
        assert [answer.outcome for answer in answers] == [TRUE, FALSE] * 500
        assert all(answer.seconds >= 0.009 for answer in answers)
    assert 20 <= most <= 100
    assert min(took) < 10 / 20


def test_no_more_than_the_concurrency() -> None:
    running = most = 0

    @operator
    async def service(event: Event) -> bool:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return True

    caller = Caller(concurrency=3)
    assert outcomes(caller, service, *[()] * 20) == [TRUE] * 20
    assert most == 3
    caller.close()


def test_sync_calls_are_made_while_async_ones_wait(caller: Caller) -> None:
    happened = []

    @operator
    async def slow(event: Event) -> bool:
        happened.append("start")
        await asyncio.sleep(0.2)
        happened.append("end")
        return True

    @operator
    def quick(event: Event) -> bool:
        time.sleep(0.02)
        happened.append("quick")
        return True

    caller.run([Request(quick, EVENT), Request(quick, EVENT), Request(slow, EVENT)])
    assert happened.index("start") < happened.index("quick")
    assert happened[-1] == "end"


def test_what_is_finished_is_collected_first(caller: Caller) -> None:
    release = threading.Event()

    @operator
    async def held(event: Event) -> bool:
        while not release.is_set():
            await asyncio.sleep(0.001)
        return True

    caller.submit([Request(held, EVENT, token="held"), Request(later, EVENT, (4,), token="later")])
    caller.submit([Request(double, EVENT, (3,), token="double")])
    assert caller.outstanding == 3
    assert {caller.collect()[0].token, caller.collect()[0].token} == {"later", "double"}
    assert caller.outstanding == 1
    release.set()
    assert [answer.token for answer in caller.collect()] == ["held"]
    assert caller.outstanding == 0
    assert caller.collect() == []


def test_a_sync_call_that_is_late_is_left_behind(caller: Caller) -> None:
    release = threading.Event()

    @operator(timeout=0.05)
    def stuck(event: Event, n: int) -> bool:
        if n:
            release.wait(10)
        return True

    start = time.perf_counter()
    found = outcomes(caller, stuck, (0,), (1,), (0,))
    assert time.perf_counter() - start < 1
    assert found == [TRUE, Outcome(error="stuck took longer than its timeout of 0.05 s"), TRUE]
    release.set()


def test_calls_left_behind_are_not_piled_up(caller: Caller) -> None:
    release = threading.Event()

    @operator(timeout=0.001)
    def stuck(event: Event) -> bool:
        release.wait(30)
        return True

    found = outcomes(caller, stuck, *[()] * (MAX_ABANDONED + 5))
    assert [outcome.error for outcome in found[-5:]] == [
        "stuck failed: StillRunning: 100 calls that took too long have not come back"
    ] * 5
    release.set()
    time.sleep(0.2)
    assert "timeout" in (outcomes(caller, broken_late, ())[0].error or "")


@operator(timeout=0.01)
def broken_late(event: Event) -> bool:
    time.sleep(0.1)
    return True


def test_an_error_passes_from_the_thread_of_a_timeout(caller: Caller) -> None:
    limited = Operator("limited", broken.function, timeout=5)
    assert outcomes(caller, limited, (1,)) == [Outcome(error="limited failed: ValueError: no 1 at all")]
    doubled = Operator("doubled", double.function, timeout=5)
    assert outcomes(caller, doubled, (4,)) == [Outcome(((8,),))]


def test_an_async_call_that_is_late_is_cancelled(caller: Caller) -> None:
    ended = []

    @operator(timeout=0.02)
    async def slow(event: Event, n: int) -> bool:
        try:
            await asyncio.sleep(n)
        finally:
            ended.append(n)
        return True

    late = Outcome(error="slow took longer than its timeout of 0.02 s")
    assert outcomes(caller, slow, (5,), (0,), (6,)) == [late, TRUE, late]
    assert sorted(ended) == [0, 5, 6]


def test_a_timeout_of_something_else_is_a_failure(caller: Caller) -> None:
    @operator(timeout=5)
    async def remote(event: Event) -> bool:
        raise TimeoutError("the server sleeps")

    @operator
    async def nested(event: Event) -> bool:
        task = asyncio.create_task(asyncio.sleep(5))
        task.cancel()
        await task
        return True

    assert outcomes(caller, remote, ()) == [Outcome(error="remote failed: TimeoutError: the server sleeps")]
    assert outcomes(caller, nested, ()) == [Outcome(error="nested failed: CancelledError")]


@pytest.mark.parametrize("is_async", [False, True])
def test_retries(caller: Caller, is_async: bool) -> None:
    tries: list[int] = []

    def attempt(event: Event, n: int) -> bool:
        tries.append(n)
        if tries.count(n) < n:
            raise ConnectionError("down")
        return False

    async def attempt_async(event: Event, n: int) -> bool:
        return attempt(event, n)

    used = operator(name="remote", retries=2)(attempt_async if is_async else attempt)
    found = outcomes(caller, used, (1,), (2,), (3,), (4,))
    assert found == [FALSE] * 3 + [Outcome(error="remote failed: ConnectionError: down")]
    assert [tries.count(n) for n in (1, 2, 3, 4)] == [1, 2, 3, 3]


def test_a_late_call_is_tried_again(caller: Caller) -> None:
    tries = []

    @operator(timeout=0.05, retries=1)
    def slow_at_first(event: Event) -> bool:
        tries.append(1)
        time.sleep(0.3 if len(tries) == 1 else 0)
        return True

    (answer,) = caller.run([Request(slow_at_first, EVENT)])
    assert answer.outcome == TRUE
    assert len(tries) == 2
    assert answer.seconds >= 0.05


def batches(is_async: bool, **settings: Any) -> tuple[Operator, list[int]]:
    """A batch operator and the sizes of what it was called with; 13 spoils a batch."""
    sizes: list[int] = []

    def answer(calls: Any, n: int, half: Out[int]) -> list[Any]:
        sizes.append(len(calls))
        assert all(event is EVENT for event, _ in calls)
        if any(n == 13 for _, n in calls):
            raise ValueError("unlucky")
        return [[n // 2] if n % 2 == 0 else False for _, n in calls]

    async def answer_async(calls: Any, n: int, half: Out[int]) -> list[Any]:
        await asyncio.sleep(0.001)
        return answer(calls, n, half)

    return operator(name="half", batch=True, **settings)(answer_async if is_async else answer), sizes


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("timeout", [None, 20])
def test_batches(caller: Caller, is_async: bool, timeout: float | None) -> None:
    half, sizes = batches(is_async, timeout=timeout)
    found = outcomes(caller, half, *[(2 * n,) for n in range(2500)])
    assert [outcome.rows for outcome in found] == [((n,),) for n in range(2500)]
    assert sorted(sizes) == [500, 1000, 1000]
    if not is_async:
        assert half([(EVENT, 6), (EVENT, 7)]) == [[3], False]


@pytest.mark.parametrize("is_async", [False, True])
def test_one_bad_event_does_not_spoil_a_batch(caller: Caller, is_async: bool) -> None:
    half, sizes = batches(is_async, retries=1)
    found = outcomes(caller, half, *[(n,) for n in (12, 13, 14, 15)])
    unlucky = Outcome(error="half failed: ValueError: unlucky")
    assert found == [Outcome(((6,),)), unlucky, Outcome(((7,),)), FALSE]
    assert sorted(sizes) == [1, 1, 1, 1, 4, 4]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("settings", [{}, {"timeout": 5.0}, {"retries": 1}, {"batch": True}])
def test_an_operator_that_exits_has_failed(caller: Caller, is_async: bool, settings: dict[str, Any]) -> None:
    def leave(event: Any) -> bool:
        sys.exit("no more")

    async def leave_async(event: Any) -> bool:
        raise SystemExit("no more")

    used = operator(name="leave", **settings)(leave_async if is_async else leave)  # type: ignore[call-overload]
    failed = Outcome(error="leave failed: SystemExit: no more")
    assert [answer.outcome for answer in caller.run([Request(used, EVENT)] * 2)] == [failed] * 2
    caller.submit([Request(used, EVENT)])
    assert [answer.outcome for answer in caller.collect()] == [failed]
    assert outcomes(caller, later, (4,)) == [TRUE]


@pytest.mark.parametrize("is_async", [False, True])
def test_an_interrupted_operator_interrupts_the_caller(caller: Caller, is_async: bool) -> None:
    def stop(event: Event) -> bool:
        raise KeyboardInterrupt

    async def stop_async(event: Event) -> bool:
        raise KeyboardInterrupt

    for settings in ({}, {"timeout": 5.0}):
        used = operator(name="stop", **settings)(stop_async if is_async else stop)  # type: ignore[call-overload]
        with pytest.raises(KeyboardInterrupt):
            caller.run([Request(used, EVENT)])
        caller.submit([Request(used, EVENT)])
        with pytest.raises(KeyboardInterrupt):
            caller.collect()
        assert caller.outstanding == 0
    assert outcomes(caller, later, (4,)) == [TRUE]


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([True], None),
        ((True for _ in range(1)), None),
        ([], "few returned 0 answers for 1 calls; return one for each, in order"),
        ([True] * 9, "few returned more than 1 answers for 1 calls; return one for each, in order"),
        (True, "few returned True for a batch; return a list with an answer for each call"),
        ({"a": 1}, "few returned {'a': 1} for a batch"),
        (["x"], "few returned 'x'; return True or False"),
    ],
)
def test_answers_of_a_batch(caller: Caller, answers: Any, message: str | None) -> None:
    @operator(batch=True)
    def few(calls: Any) -> Any:
        return answers

    (found,) = outcomes(caller, few, ())
    assert found == TRUE if message is None else (found.error or "").startswith(message)


def test_a_wrong_number_of_answers_is_asked_again_one_by_one(caller: Caller) -> None:
    sizes = []

    @operator(batch=True, retries=3)
    def forgetful(calls: Any) -> Any:
        sizes.append(len(calls))
        return [True] * min(len(calls), 2)

    assert outcomes(caller, forgetful, (), (), ()) == [TRUE] * 3
    assert sizes == [3, 1, 1, 1]


def test_a_generator_in_a_batch_may_fail_alone(caller: Caller) -> None:
    def bindings(n: int) -> Any:
        yield 10 // n

    @operator(batch=True)
    def tenth(calls: Any, n: int, part: Out[int]) -> Any:
        return [bindings(n) for _, n in calls]

    found = outcomes(caller, tenth, (5,), (0,))
    assert found[0].rows == ((2,),)
    assert (found[1].error or "").startswith("tenth failed: ZeroDivisionError")


@pytest.mark.parametrize("is_async", [False, True])
def test_a_batch_that_is_late_is_late_as_a_whole(caller: Caller, is_async: bool) -> None:
    calls_made = []

    def slow(calls: Any) -> Any:
        calls_made.append(len(calls))
        time.sleep(0.3)
        return [True] * len(calls)

    async def slow_async(calls: Any) -> Any:
        calls_made.append(len(calls))
        await asyncio.sleep(0.3)
        return [True] * len(calls)

    used = operator(name="slow", batch=True, timeout=0.03)(slow_async if is_async else slow)
    late = Outcome(error="slow took longer than its timeout of 0.03 s")
    assert outcomes(caller, used, (), (), ()) == [late] * 3
    assert calls_made == [3]


def test_seconds_of_a_batch_are_shared(caller: Caller) -> None:
    @operator(batch=True)
    def slow(calls: Any) -> Any:
        time.sleep(0.1)
        return [True] * len(calls)

    answers = caller.run([Request(slow, EVENT)] * 10)
    assert 0.01 <= answers[0].seconds < 0.05
    assert len({answer.seconds for answer in answers}) == 1


def test_a_caller_inside_a_running_loop(caller: Caller) -> None:
    async def program() -> list[Outcome]:
        return outcomes(caller, later, (4,), (5,))

    assert asyncio.run(program()) == [TRUE, FALSE]


def test_several_threads_at_once(caller: Caller) -> None:
    limited = Operator("limited", double.function, timeout=20)
    found: dict[int, list[Answer]] = {}

    def work(n: int) -> None:
        found[n] = caller.run([Request(used, EVENT, (n,)) for used in (double, later, limited)] * 20)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n, answers in found.items():
        expected = [Outcome(((2 * n,),)), TRUE if n % 2 == 0 else FALSE, Outcome(((2 * n,),))] * 20
        assert [answer.outcome for answer in answers] == expected


def new_threads(before: set[threading.Thread]) -> list[str]:
    """The names of callers' threads that have come since; an engine of another test may have some still."""
    new = set(threading.enumerate()) - before
    return [thread.name for thread in new if thread.name.startswith("tidings-operator")]


def eventually_none(before: set[threading.Thread]) -> bool:
    end = time.perf_counter() + 5
    while new_threads(before) and time.perf_counter() < end:
        time.sleep(0.01)
    return not new_threads(before)


def test_threads_end_with_the_caller() -> None:
    limited = Operator("limited", double.function, timeout=20)
    gc.collect()
    for forget in (Caller.close, lambda _: None):
        before = set(threading.enumerate())
        caller = Caller()
        caller.run([Request(later, EVENT, (1,)), Request(limited, EVENT, (1,))])
        assert sorted(set(new_threads(before))) == ["tidings-operator", "tidings-operators"]
        forget(caller)
        del caller
        gc.collect()
        assert eventually_none(before)


def test_a_closed_caller_answers_for_what_was_under_way_and_starts_anew() -> None:
    @operator
    async def endless(event: Event) -> bool:
        await asyncio.sleep(3600)
        return True

    caller = Caller(concurrency=1)
    caller.submit([Request(endless, EVENT), Request(endless, EVENT)])
    time.sleep(0.05)
    caller.close()
    errors = []
    while caller.outstanding:
        errors += [answer.outcome.error for answer in caller.collect()]
    assert errors == ["endless was cancelled, because its caller was closed"] * 2
    assert outcomes(caller, later, (4,), (6,), (8,)) == [TRUE] * 3
    caller.close()


def _in_child(caller: Caller, sent: Any) -> None:
    limited = Operator("limited", double.function, timeout=20)
    requests = [Request(later, EVENT, (4,)), Request(limited, EVENT, (4,)), Request(double, EVENT, (4,))]
    sent.put((caller.outstanding, [answer.outcome for answer in caller.run(requests)]))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(caller: Caller) -> None:
    release = threading.Event()

    @operator
    async def held(event: Event) -> bool:
        while not release.is_set():
            await asyncio.sleep(0.001)
        return True

    limited = Operator("limited", double.function, timeout=20)
    caller.run([Request(later, EVENT, (4,)), Request(limited, EVENT, (1,))])
    caller.submit([Request(held, EVENT)])
    context = multiprocessing.get_context("fork")
    sent = context.SimpleQueue()
    for _ in range(3):
        child = context.Process(target=_in_child, args=(caller, sent))
        child.start()
        child.join(20)
        assert child.exitcode == 0
        assert sent.get() == (0, [TRUE, Outcome(((8,),)), Outcome(((8,),))])
    # The loop of this process still runs and can be woken up.
    assert caller.outstanding == 1
    assert outcomes(caller, later, (4,)) == [TRUE]
    release.set()
    assert [answer.outcome for answer in caller.collect()] == [TRUE]


def test_batches_that_wait_are_put_together() -> None:
    sizes: list[int] = []

    @operator(batch=True)
    def bulk(calls: Any, n: int) -> list[bool]:
        sizes.append(len(calls))
        return [n > 1 for _, n in calls]

    caller = Caller()
    for n in range(4):
        caller.submit([Request(bulk, Event(), (n,), n)])
    found = {answer.token: answer.outcome for answer in caller.collect()}
    assert found == {0: FALSE, 1: FALSE, 2: TRUE, 3: TRUE}
    assert sizes == [4]
    caller.close()
