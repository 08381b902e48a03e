"""The client of the service, synchronous (`Client`) or asynchronous (`AsyncClient`), with the same methods.

    from tidings import Client

    with Client("http://localhost:8750") as client:
        sport = client.subscribe("WHERE topic = 'sport'", title="Sport", valid_for="never")
        client.publish({"topic": "sport", "title": "A goal"})
        for notification in client.listen(sport, after=0):
            print(notification.event["title"])
            break
        client.cancel(sport)

`calls` describes the requests and `responses` reads the answers, once for both; `Client` and `AsyncClient` only
send and receive.
"""

from tidings.client.async_client import AsyncClient
from tidings.client.responses import (
    Backtest,
    BulkItem,
    Channel,
    Checked,
    Definition,
    Explanation,
    Match,
    Matches,
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
    "Backtest",
    "BulkItem",
    "Channel",
    "Checked",
    "Client",
    "Definition",
    "Explanation",
    "Match",
    "Matches",
    "Notification",
    "Receipt",
    "ServiceError",
    "Source",
    "Status",
    "Subscription",
    "Trial",
]
