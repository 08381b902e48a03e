"""Tables of a whole service, with Spark: their rows over HTTP and in a replica, also after everything was killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.crowd import until
from tests.spark.test_service_whole import Serving
from tidings import Client, Event, Replica
from tidings.client import ServiceError

TEXT = "SELECT * FROM stocks WHERE per >= 5"


def stock(n: int) -> dict[str, object]:
    return {"symbol": f"S{n}", "per": n}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_rows_and_replicas_outlive_a_kill(tmp_path: Path) -> None:
    columns = 'columns = { symbol = "text", per = "number" }'
    (tmp_path / "tables.toml").write_text(f'[stocks]\n{columns}\nkey = ["symbol"]\n[notes]\n{columns}')
    serving = Serving(tmp_path, "--tables", "tables.toml")
    client = Client(serving.address)

    def ready() -> bool:
        try:
            return client.status().ready
        except ServiceError:
            return False

    def rows() -> set[str]:
        """The symbols of all rows; none while the stream has not answered."""
        try:
            return {row["symbol"] for row in client.rows("stocks")}
        except ServiceError as error:
            assert error.status == 503
            return set()

    def follow(copy: Replica, subscription: str, count: int) -> None:
        client.snapshot(subscription)
        for notification in client.listen(subscription, after=0):
            copy.apply(notification)
            if copy.missing is None and len(copy.rows("stocks")) == count:
                return

    try:
        serving.start()
        until(ready, "the service is ready", 120)
        client.publish([Event.insert("stocks", stock(n)) for n in range(10)])
        until(lambda: len(rows()) == 10, "all rows are there", 60)
        high, copy = client.subscribe(TEXT, valid_for="never"), Replica(TEXT, client.tables())
        follow(copy, high.id, 5)
        serving.end()
        serving.start()
        until(ready, "the service is ready again", 120)
        client.publish([Event.delete("stocks", {"symbol": "S0"}), Event.insert("stocks", stock(10))])
        wanted = {f"S{n}" for n in range(1, 11)}
        until(lambda: rows() == wanted, "rows from before and after the kill are there", 60)
        follow(copy, high.id, 6)
    finally:
        client.close()
        serving.end()
