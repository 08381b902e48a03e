"""Thousands of hostile requests over every route: each is answered soon after its last byte, none is a failure of the
service, and nothing is left of them."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.conftest import Served
from tests.service.hostile.generator import Generator, Request, Visit
from tests.service.hostile.process import ServiceProcess, service_process
from tests.service.hostile.routes import routes_of
from tests.service.hostile.sending import Sent, send

SECONDS = 2.0  # after the last byte
AT_ONCE = 4


def requests(served: Served, service: ServiceProcess, seed: int, count: int) -> Iterator[Request]:
    """For the routes of the application. The service has a subscription, whose ids they know, and an event for it."""
    with httpx.Client(base_url=f"http://127.0.0.1:{service.port}", timeout=30) as http:
        made = http.post("/api/subscriptions", json={"text": "WHERE topic = 'known'"}).json()
        http.post("/api/events", json={"source": "known", "id": "1", "topic": "known"})
        page = http.get("/login", headers={"Accept": "text/html"}).text
        field = re.search(r'name="csrf" value="([^"]+)"', page)
        assert field is not None
        visit = Visit(f"tidings_visit={http.cookies['tidings_visit']}", field[1])
        known = [made["id"], re.split("[/.]", made["feeds"]["atom"])[-2], "1", "atom", "pause"]
        description = http.get("/openapi.json").json()
    return Generator(seed, routes_of(served.service), description, known, visit).requests(count)


def send_all(service: ServiceProcess, given: Iterable[Request]) -> list[Sent]:
    """Some at once. Bodies are made as they are needed, and those that were answered well are forgotten."""
    found: list[Sent] = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        given = iter(given)
        while some := list(islice(given, 50)):
            for sent in pool.map(lambda request: send(service.port, request), some):
                well = sent.status != 500 and sent.seconds <= SECONDS
                found.append(sent._replace(request=replace(sent.request, body=b"")) if well else sent)
    return found


def alone(service: ServiceProcess, request: Request) -> float:
    """The seconds of the processor that an answer takes. Others may have used the machine when it was late."""
    before = service.processor_seconds()
    send(service.port, request)
    return service.processor_seconds() - before


def check(service: ServiceProcess, answers: list[Sent]) -> dict[str, Any]:
    statuses = Counter(answer.status for answer in answers)
    failed = [str(answer.request) for answer in answers if answer.status == 500]
    assert not failed, failed[:5]
    late = [answer for answer in answers if answer.seconds > SECONDS]
    took = {str(answer.request): alone(service, answer.request) for answer in late}
    assert all(seconds < SECONDS for seconds in took.values()), took
    assert httpx.get(f"http://127.0.0.1:{service.port}/health", timeout=10).status_code == 200
    seconds = sorted(answer.seconds for answer in answers if answer.status is not None)
    return {
        "answers": len(seconds),
        "statuses": dict(sorted((str(status), count) for status, count in statuses.items())),
        "median": seconds[len(seconds) // 2],
        "worst": seconds[-1],
        "late": {request: round(of_processor, 2) for request, of_processor in took.items()},
    }


def settled(service: ServiceProcess) -> tuple[int, int]:
    """Open files and threads, once what was cut off is noticed."""
    time.sleep(1.0)
    return service.open_files(), service.threads()


def test_some_hundred(served: Served, tmp_path: Path, seed: int) -> None:
    with service_process(tmp_path / "data") as service:
        sent = send_all(service, requests(served, service, seed, 450))
        said = check(service, sent)
    assert said["answers"] > 100, said
    asked = {one.request.path.partition("?")[0].split("/")[1] for one in sent}
    assert {path.split("/")[1] for _, path in routes_of(served.service)} <= asked


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_ten_thousand(served: Served, tmp_path: Path, seed: int) -> None:
    with service_process(tmp_path / "data") as service:
        given = requests(served, service, seed, 10_000)
        warm = send_all(service, islice(given, 3_000))
        (files, threads), before = settled(service), service.resident()
        rest = send_all(service, given)
        said = check(service, [*warm, *rest])
        (files_after, threads_after), after = settled(service), service.resident()
    print(json.dumps({**said, "resident": [before, after], "files": [files, files_after]}, indent=2))
    assert after < before * 1.15 + (32 << 20)
    assert files_after <= files + 20
    assert threads_after <= threads + 10
