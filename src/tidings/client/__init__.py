"""The client of the service: the same calls, made at once (`Client`) or awaited (`AsyncClient`).

    from tidings import Client

    with Client("http://localhost:8750") as client:
        sport = client.subscribe("WHERE topic = 'sport'", title="Sport", valid_for="never")
        client.publish({"topic": "sport", "title": "A goal"})
        for told in client.listen(sport, after=0):
            print(told.event["title"])
            break
        client.cancel(sport)

What is asked and how answers are read stands in `calls` and `answers`, once for both; `Client` and `AsyncClient` only
carry it to and fro.
"""

from tidings.client.async_client import AsyncClient
from tidings.client.responses import (
    Checked,
    Explanation,
    Notification,
    Receipt,
    ServiceError,
    Source,
    Status,
    Subscription,
    Trial,
)
from tidings.client.sync_client import Client

__all__ = [
    "AsyncClient",
    "Checked",
    "Client",
    "Explanation",
    "Notification",
    "Receipt",
    "ServiceError",
    "Source",
    "Status",
    "Subscription",
    "Trial",
]
