"""The shared base of both clients: the address, the tickets, requests and answers in terms of httpx."""

from __future__ import annotations

import json
from collections.abc import Iterable
from copy import copy
from typing import Any, Self, TypeVar

import httpx

from tidings.client.calls import Call, id_of
from tidings.client.responses import BulkItem, ServiceError, Subscription, error_of

T = TypeVar("T")


class Connection:
    # A stream sends something every 15 seconds, a heartbeat if nothing else.
    """The address, token and tickets of a client."""

    _patience = httpx.Timeout(10.0, read=60.0)

    def __init__(self, address: str, user: str | None = None) -> None:
        self.address = address.rstrip("/")
        if not self.address.startswith(("http://", "https://")):
            raise ServiceError(f"{address!r} is no address of a service; give one as http://localhost:8750")
        self._tickets: dict[str, str] = {}
        self.user = None if user is None else _checked(user)

    def for_user(self, user: str) -> Self:
        """A client for a user of the delegate whose token this one has. It shares the connections, which this one closes."""
        client = copy(self)
        client.user, client._tickets = _checked(user), {}  # a ticket would open what is another user's
        return client

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.address!r})"

    def _options(self, token: str | None, timeout: float) -> dict[str, Any]:
        headers = {"Accept": "application/json", "User-Agent": "tidings-client"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return {"base_url": self.address, "headers": headers, "timeout": httpx.Timeout(timeout, connect=10.0)}

    def _keep(self, begun: Subscription) -> Subscription:
        if begun.ticket is not None:
            self._tickets[begun.id] = begun.ticket
        return begun

    def _keep_many(self, items: list[BulkItem]) -> list[BulkItem]:
        for item in items:
            if item.id is not None and item.ticket is not None:
                self._tickets[item.id] = item.ticket
        return items

    def _ticket(self, subscription: Subscription | str, given: str | None) -> str | None:
        if given is not None:
            return given
        if isinstance(subscription, Subscription) and subscription.ticket is not None:
            return subscription.ticket
        return self._tickets.get(id_of(subscription))

    @staticmethod
    def _ids(given: Subscription | str | Iterable[Subscription | str] | None) -> list[str] | None:
        if given is None:
            return None
        if isinstance(given, Subscription | str):
            return [id_of(given)]
        return [id_of(subscription) for subscription in given]

    def _request(self, call: Call[Any]) -> dict[str, Any]:
        user = {} if self.user is None else {"Tidings-User": self.user.encode()}
        return {
            "method": call.method,
            "url": call.path,
            "params": call.params or None,
            "headers": {**call.headers, **user},
            "content": call.content,
        }

    def _read(self, call: Call[T], response: httpx.Response) -> T:
        if not response.is_success:
            raise self._error(response)
        if response.status_code == 204:
            return call.read(None)
        try:
            if call.is_lines:
                return call.read([json.loads(line) for line in response.content.splitlines()])
            return call.read(response.json())
        except (ValueError, TypeError, KeyError, AttributeError):
            raise ServiceError(
                f"what answers at {self.address} is not Tidings, or of another version; look at the address",
                response.status_code,
            ) from None

    @staticmethod
    def _error(response: httpx.Response) -> ServiceError:
        return error_of(response.status_code, response.content, response.headers.get("retry-after"))

    def _away(self, error: httpx.TransportError) -> ServiceError:
        why = str(error) or type(error).__name__
        return ServiceError(f"the service at {self.address} does not answer ({why}); is it running?")


def _checked(user: str) -> str:
    """The user; refused here if no header can have it."""
    if user and user.isprintable() and user == user.strip():
        return user
    raise ServiceError(f"{user[:40]!r} is no user; give a text that can be printed, without blanks around it")
