"""Backtests in the driver's Spark session, beside the stream.

The service writes the index of the one subscription to a folder of its data, asks for the backtest on the driver's standard
input, and gets its progress and its tally among the driver's states:

    to the driver      {"backtest": "b1", "index": "…/backtests/b1", "version": "v1+0", "since": …, "until": …}, {"cancel": "b1"}
    from the driver    {"backtest": "b1", "progress": 0.4}, then "tally" or "error"

The driver has no clock of its own for it: it works until it is done or told to cancel. A driver that ends fails what it was
asked for.
"""

from __future__ import annotations

import json
import queue
import shutil
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.engine.backtest import Tally
from tidings.engine.engine import Engine
from tidings.errors import TidingsError
from tidings.service.matching.backtests import GivenUp, Progress, Span
from tidings.storage import versions

if TYPE_CHECKING:
    from tidings.service.matching.supervisor import Supervisor

FOLDER = "backtests"
POOL = "backtest"  # of Spark's scheduler, so that the stream gets its share of the tasks
_POLL_SECONDS = 0.2


class DriverRunner:
    """The service's side."""

    def __init__(self, data: Path, supervisor: Supervisor) -> None:
        self._folder, self._supervisor = data / FOLDER, supervisor
        self._answers: queue.Queue[Mapping[str, Any]] = queue.Queue()
        supervisor.on_backtest = self._answers.put
        shutil.rmtree(self._folder, ignore_errors=True)  # of a service that was killed

    def run(self, id: str, engine: Engine, span: Span, progress: Progress) -> Tally:
        root = self._folder / id
        try:
            version = versions.publish(root, engine)
            asked = {"backtest": id, "index": str(root), "version": str(version), **span._asdict()}
            self._send(asked, progress)
            return self._answer(id, progress)
        finally:
            shutil.rmtree(root, ignore_errors=True)

    def _send(self, asked: Mapping[str, Any], progress: Progress) -> None:
        """Waits for a driver that is being started."""
        while not self._answers.empty():  # of a backtest that was given up
            self._answers.get()
        while not self._supervisor.tell(_line(asked)):
            state = self._supervisor.state
            if state.status != "starting":
                raise TidingsError(f"the matching process is {state.status}; try again in a moment")
            progress(0.0)
            threading.Event().wait(_POLL_SECONDS)

    def _answer(self, id: str, progress: Progress) -> Tally:
        done = 0.0
        while True:
            try:
                said = self._answers.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                said = {}
            if said.get("backtest") not in (id, ""):
                said = {}
            if "error" in said:
                raise TidingsError(str(said["error"]))
            if "tally" in said:
                return Tally.from_json(said["tally"])
            done = float(said.get("progress", done))
            try:
                progress(done)
            except GivenUp:
                self._supervisor.tell(_line({"cancel": id}))
                raise


def _line(asked: Mapping[str, Any]) -> bytes:
    return json.dumps(asked).encode() + b"\n"


class DriverBacktests:
    """The driver's side: takes the lines of the service, and `say`s how far each backtest is."""

    def __init__(self, log: Path, operators: tuple[str, ...], say: Callable[..., None]) -> None:
        self._log, self._operators, self._say = log, operators, say
        self._spark: Any = None
        self._is_ready = threading.Event()
        self._cancelled: set[str] = set()

    def use(self, spark: Any) -> None:
        """The session has started."""
        self._spark = spark
        self._is_ready.set()

    def take(self, line: bytes) -> None:
        """A line of standard input; one that is no JSON is of nobody here."""
        try:
            asked = json.loads(line)
        except ValueError:
            return
        if "cancel" in asked:
            self._cancelled.add(asked["cancel"])
        elif "backtest" in asked:
            threading.Thread(target=self._do, args=(asked,), name="backtest", daemon=True).start()

    def _do(self, asked: Mapping[str, Any]) -> None:
        id = asked["backtest"]

        def progress(done: float) -> None:
            if id in self._cancelled:
                raise GivenUp
            self._say(backtest=id, progress=done)

        try:
            self._is_ready.wait()
            found = self._run(asked, progress)
            self._say(backtest=id, tally=found.to_json())
        except GivenUp:
            self._say(backtest=id, error="it was cancelled")
        except Exception as error:
            reason = (
                str(error) if isinstance(error, TidingsError) else f"Spark has failed: {type(error).__name__}"
            )
            self._say(backtest=id, error=reason)
        finally:
            self._cancelled.discard(id)

    def _run(self, asked: Mapping[str, Any], progress: Progress) -> Tally:
        from tidings.spark.code_pickle import pickle_code
        from tidings.spark.jobs.backtesting import run_backtest
        from tidings.spark.task_index import TaskIndex

        index = TaskIndex(asked["index"], asked["version"], pickle_code(self._operators))
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", POOL)
        span = asked["since"], asked["until"]
        return run_backtest(self._spark, self._log, index, span, progress)
