"""Generates messages for many subscribers of joins: Select-joins, Sections 2 to 4.

    from tidings import dissemination

    server = dissemination.Server([Table(...), Table(...)])
    for message in dissemination.DEFAULT(server).messages(dissemination.Change("r", new=row)):
        dissemination.accepts(message, server.subscription(7))

`JoinMessages`, and `spark.correlate(messages=...)`, make messages for the subscriptions of an engine; a `MessageReplica`
rebuilds rows from them. Names are loaded when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidings.dissemination.live.join_messages import JoinMessages
    from tidings.dissemination.live.message_replica import MessageReplica
    from tidings.dissemination.live.records import MessageRecord, read_records
    from tidings.dissemination.payload import Payloads
    from tidings.dissemination.schemes import DEFAULT, SCHEMES, Change, Server, accepts, audience
    from tidings.dissemination.schemes.attributes import read_join, relax
    from tidings.dissemination.schemes.client import Client

_HOMES = {
    "DEFAULT": "schemes",
    "SCHEMES": "schemes",
    "Change": "schemes",
    "Client": "schemes.client",
    "JoinMessages": "live.join_messages",
    "MessageRecord": "live.records",
    "MessageReplica": "live.message_replica",
    "Payloads": "payload",
    "Server": "schemes",
    "accepts": "schemes",
    "audience": "schemes",
    "read_join": "schemes.attributes",
    "read_records": "live.records",
    "relax": "schemes.attributes",
}
__all__ = [
    "DEFAULT",
    "SCHEMES",
    "Change",
    "Client",
    "JoinMessages",
    "MessageRecord",
    "MessageReplica",
    "Payloads",
    "Server",
    "accepts",
    "audience",
    "read_join",
    "read_records",
    "relax",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
