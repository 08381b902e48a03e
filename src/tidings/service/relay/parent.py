"""The HTTP calls of a relay to one upstream service, its parent."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import httpx

from tidings.errors import TidingsError
from tidings.service.relay.copies import Copies
from tidings.service.relay.downstream import HEARTBEAT, MOST_ACKS

SILENCE = 3 * HEARTBEAT  # seconds without a frame after which a parent is taken for gone
_PATIENCE, _CONNECTING = 15.0, 2.0  # seconds for an answer, and for a connection


class ParentAway(TidingsError):
    """The upstream service does not answer, or not now."""


class ParentRefuses(TidingsError):
    """The upstream service answers that it will not; trying again soon is of no use."""


class Welcome(NamedTuple):
    """What a parent says of itself."""

    service: str
    path: tuple[str, ...]
    last: int
    definitions: str


class Parent:
    """One upstream service. Calls are made by several threads; `packets` by one, which `interrupt` ends."""

    def __init__(self, url: str, token: str | None, relay: str) -> None:
        self.url, self.relay = url.rstrip("/"), relay
        headers = {"User-Agent": "tidings-relay"} | (
            {} if token is None else {"Authorization": f"Bearer {token}"}
        )
        patience = httpx.Timeout(_PATIENCE, connect=_CONNECTING)
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=patience, trust_env=False)
        self._reading: httpx.Response | None = None

    def close(self) -> None:
        self.interrupt()
        self._http.close()

    def hello(self, name: str, address: str, copies: Copies) -> Welcome:
        """Says who this relay is, and what its subscribers would have been sent without it."""
        about = {
            "name": name,
            "address": address[:300],
            "copies": copies.notifications,
            "copied_bytes": copies.bytes,
        }
        answer = self._json("POST", "/api/links", json={"relay": self.relay, **about})
        try:
            path = tuple(str(id) for id in answer["path"])
            return Welcome(str(answer["service"]), path, int(answer["last"]), str(answer["definitions"]))
        except (LookupError, TypeError, ValueError):
            raise ParentRefuses(
                f"{self.url} answers like no service that relays can be linked to; give the address of another"
            ) from None

    def replace_filters(self, texts: Sequence[str], *, again: bool) -> dict[str, str]:
        """Makes these the filters of this relay; returns those that were refused, with the reasons. `again` says that it had
        filters there before: if they have expired, events may be missing."""
        return self._filters("PUT", {"filters": list(texts), "again": again})

    def change_filters(self, register: Sequence[str], withdraw: Sequence[str]) -> dict[str, str]:
        """Registers the first, then withdraws the second."""
        return self._filters("POST", {"register": list(register), "withdraw": list(withdraw)})

    def request_rows(self, texts: Sequence[str]) -> None:
        """Has the rows of filters over tables sent again, over the link."""
        self._json("POST", "/api/links/rows", json={"relay": self.relay, "filters": list(texts)})

    def packets(self, **start: Any) -> Iterator[bytes]:
        """The bytes of the link, as they come."""
        given = {name: value for name, value in start.items() if value is not None}
        silence = httpx.Timeout(_PATIENCE, connect=_CONNECTING, read=SILENCE)
        try:
            with self._http.stream(
                "GET", "/api/links/packets", params={"relay": self.relay, **given}, timeout=silence
            ) as response:
                if not response.is_success:
                    response.read()
                    raise _refusal(self.url, response)
                self._reading = response
                yield from response.iter_raw()
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise ParentAway(f"{self.url} is gone: {error or type(error).__name__}") from None
        finally:
            self._reading = None
        raise ParentAway(f"{self.url} has closed the link")

    def interrupt(self) -> None:
        """Ends `packets`, from any thread."""
        reading = self._reading
        if reading is None:
            return
        with suppress(OSError, LookupError, AttributeError):
            stream = reading.extensions["network_stream"]
            stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)

    def acknowledge(self, ids: Sequence[bytes]) -> None:
        for first in range(0, len(ids), MOST_ACKS):
            portion = [id.hex() for id in ids[first : first + MOST_ACKS]]
            self._json("POST", "/api/links/acks", json={"relay": self.relay, "payloads": portion})

    def payload(self, id: bytes, number: int) -> bytes:
        """The content of a payload that was left out of the packet with this number."""
        asked = {"relay": self.relay, "id": id.hex(), "number": number}
        return self._call("GET", "/api/links/payloads", params=asked).content

    def get(self, path: str) -> Any:
        return self._json("GET", path)

    def _filters(self, method: str, body: Mapping[str, Any]) -> dict[str, str]:
        answer = self._json(method, "/api/links/filters", json={"relay": self.relay, **body})
        return {str(refusal["text"]): str(refusal["reason"]) for refusal in answer.get("refused", ())}

    def _json(self, method: str, path: str, **request: Any) -> Any:
        response = self._call(method, path, **request)
        if response.status_code == 204:
            return None
        try:
            return response.json()
        except ValueError:
            raise ParentRefuses(
                f"{self.url} answers like no service that relays can be linked to; give the address of another"
            ) from None

    def _call(self, method: str, path: str, **request: Any) -> httpx.Response:
        try:
            response = self._http.request(method, path, **request)
        except (httpx.HTTPError, RuntimeError) as error:  # the second if it was closed meanwhile
            raise ParentAway(f"{self.url} does not answer: {error or type(error).__name__}") from None
        if not response.is_success:
            raise _refusal(self.url, response)
        return response


def _refusal(url: str, response: httpx.Response) -> TidingsError:
    try:
        detail = str(response.json()["detail"])
    except (ValueError, LookupError, TypeError):
        detail = response.reason_phrase
    message = f"{url} answers {response.status_code}: {detail}"
    passes = response.status_code in (408, 429) or response.status_code >= 500
    return ParentAway(message) if passes else ParentRefuses(message)
