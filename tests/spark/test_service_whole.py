"""The whole service under load, killed at any moment: who was told 202 gets every notification, once, in the log's
order; from joins over tables too.

    pytest tests/spark/test_service_whole.py -m slow --rounds 5 --seed 7 -s    kills two hundred times
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgresql import Server, programs
from tests.spark.crowd import Receiver
from tests.spark.killing import Serving, Trial

pytestmark = [
    pytest.mark.timeout(0),  # each step has a bound of its own
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes by /proc"),
]
KILLS = 10  # of each slow test, in each round


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    serving = Serving(tmp_path)
    yield serving
    serving.end()
    print((tmp_path / "said").read_text(errors="replace")[-4_000:])  # which is shown if the test has failed


@pytest.fixture(scope="module")
def postgresql() -> Iterator[Server]:
    folder = programs()
    if folder is None:
        pytest.skip("PostgreSQL is not installed: there is no initdb on this machine")
    server = Server(folder)
    yield server
    server.close()


@pytest.mark.parametrize(
    "kinds",
    [("driver",), pytest.param(("service", "driver", "worker", "jvm"), marks=pytest.mark.slow)],
    ids=["one", "each"],
)
def test_whatever_is_killed_everything_accepted_is_told_once(
    serving: Serving, receiver: Receiver, seed: int, kinds: tuple[str, ...]
) -> None:
    trial = Trial(serving, receiver, seed)
    trial.kill(*trial.killer.chance.sample(kinds, len(kinds)))
    trial.check()


@pytest.mark.slow
@pytest.mark.parametrize("small", [(), ("--small-batch", "0")], ids=["learnt", "jobs"])
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_many_kills(
    request: pytest.FixtureRequest,
    serving: Serving,
    receiver: Receiver,
    store: str,
    small: tuple[str, ...],
    rounds: int,
    seed: int,
) -> None:
    """Ten kills a round, half of which come while others are still starting."""
    server: Server | None = None
    if store == "postgresql":
        server = request.getfixturevalue("postgresql")
        serving.options += ("--store", server.create(f"kills{len(small)}_{seed}"))
    serving.options += small
    trial = Trial(serving, receiver, seed, server)
    for _ in range(rounds):
        kinds = [trial.killer.chance.choice(trial.killer.kinds) for _ in range(KILLS)]
        trial.kill(*kinds, wait=0.5)
    trial.check()


@pytest.mark.slow
def test_a_store_that_is_away_for_a_while_comes_back_by_itself(
    serving: Serving, receiver: Receiver, postgresql: Server, seed: int
) -> None:
    serving.options += ("--store", postgresql.create(f"away_{seed}"))
    trial = Trial(serving, receiver, seed, postgresql)
    with postgresql.stopped():
        time.sleep(20)
    trial.killer.wait_for_told(time.monotonic())
    trial.check()
