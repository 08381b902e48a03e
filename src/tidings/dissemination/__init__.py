"""Generates messages for many subscribers of joins: Select-joins, Sections 2 to 4.

    from tidings import dissemination

    server = dissemination.Server([Table(...), Table(...)])
    for message in dissemination.DEFAULT(server).messages(dissemination.Change("r", new=row)):
        dissemination.accepts(message, server.subscription(7))

Names are loaded when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidings.dissemination.payload import Payloads
    from tidings.dissemination.schemes import DEFAULT, SCHEMES, Change, Server, accepts, audience
    from tidings.dissemination.schemes.attributes import read_join, relax
    from tidings.dissemination.schemes.client import Client

_HOMES = {
    "DEFAULT": "schemes",
    "SCHEMES": "schemes",
    "Change": "schemes",
    "Client": "schemes.client",
    "Payloads": "payload",
    "Server": "schemes",
    "accepts": "schemes",
    "audience": "schemes",
    "read_join": "schemes.attributes",
    "relax": "schemes.attributes",
}
__all__ = [
    "DEFAULT",
    "SCHEMES",
    "Change",
    "Client",
    "Payloads",
    "Server",
    "accepts",
    "audience",
    "read_join",
    "relax",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
