"""The options of commands that speak to a running service: its address and a token."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tidings.client import Client


def of_service(whose: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds --service and --token; `whose` token it takes."""
    service = click.option(
        "--service",
        default="http://localhost:8750",
        show_default=True,
        metavar="URL",
        help="The address of the service.",
    )
    token = click.option(
        "--token",
        envvar="TIDINGS_TOKEN",
        metavar="TOKEN",
        help=f"{whose} token; by default that of the environment variable TIDINGS_TOKEN.",
    )
    return lambda command: service(token(command))


def connect(service: str, token: str | None) -> Client:
    from tidings.client import Client

    return Client(service, token, timeout=600.0)
