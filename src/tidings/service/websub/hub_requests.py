"""Reads what a subscriber sends to the hub: a form with hub.mode, hub.topic, hub.callback and more (WebSub, 5.1).

What is wrong with the form itself is answered at once. Whether there is such a feed is looked at after the answer, so that the
answer does not depend on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final
from urllib.parse import parse_qs

import httpx

from tidings.errors import TidingsError
from tidings.feeds.addresses import check_url
from tidings.service.delivery.feed_documents import FeedDocuments, Topic
from tidings.service.store.registry import LONGEST_URL
from tidings.service.websub.signatures import SECRET_BYTES

SUBSCRIBE: Final = "subscribe"
UNSUBSCRIBE: Final = "unsubscribe"
FORM: Final = "application/x-www-form-urlencoded"
DEFAULT_LEASE: Final = 10 * 86_400
LONGEST_LEASE: Final = 30 * 86_400
SHORTEST_LEASE: Final = 60
_MOST_FIELDS: Final = 100
_ENCODED = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class BadRequest(TidingsError):
    """The form cannot be accepted."""

    status = 400


@dataclass(frozen=True, slots=True)
class HubRequest:
    """A request to subscribe or to unsubscribe. `topic_url` and `callback` are as they were sent."""

    mode: str
    topic: Topic
    topic_url: str
    callback: str
    host: str
    secret: str | None
    lease: int  # seconds, as the hub will grant them

    @property
    def id(self) -> str:
        """The same for the same feed and callback, however their addresses are escaped."""
        what = f"{self.topic.key}.{self.topic.format}\n{unescaped(self.callback)}"
        return blake2b(what.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def read_request(body: bytes, documents: FeedDocuments, allowed: Iterable[str]) -> HubRequest:
    """The request in a form; BadRequest or AddressRefused says what is wrong. Unknown parameters are ignored."""
    given = _form(body)
    mode = _needed(given, "hub.mode")
    if mode not in (SUBSCRIBE, UNSUBSCRIBE):
        raise BadRequest(f"hub.mode is {mode[:50]!r}; it must be subscribe or unsubscribe")
    topic_url, callback = _needed(given, "hub.topic"), _needed(given, "hub.callback")
    if (topic := documents.topic(unescaped(topic_url))) is None:
        raise BadRequest("hub.topic is not a feed of this service; send the address that the feed calls self")
    host = _host(callback, allowed)
    lease, secret = DEFAULT_LEASE, given.get("hub.secret") or None
    if mode == SUBSCRIBE:
        lease = _lease(given.get("hub.lease_seconds", ""))
        if secret is not None and len(secret.encode()) >= SECRET_BYTES:
            raise BadRequest(
                f"hub.secret has {len(secret.encode())} bytes; fewer than {SECRET_BYTES} are needed"
            )
    return HubRequest(mode, topic, topic_url, callback, host, secret, lease)


def unescaped(url: str) -> str:
    """The address with letters, digits and -._~ as themselves, where they were written as %41."""

    def decoded(found: re.Match[str]) -> str:
        letter = chr(int(found[1], 16))
        return letter if letter in _UNRESERVED else found[0].upper()

    return _ENCODED.sub(decoded, url)


def _form(body: bytes) -> dict[str, str]:
    try:
        found = parse_qs(
            body.decode("utf-8"), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"
        )
    except UnicodeDecodeError:
        raise BadRequest("the form is not UTF-8; send it in UTF-8") from None
    except ValueError:
        raise BadRequest(f"the form has more than {_MOST_FIELDS} fields; send fewer") from None
    for name, values in found.items():
        if name.startswith("hub.") and len(values) > 1:
            raise BadRequest(f"{name[:50]} is given {len(values)} times; give it once")
    return {name: values[0] for name, values in found.items()}


def _needed(given: dict[str, str], name: str) -> str:
    if not given.get(name):
        raise BadRequest(f"{name} is missing; send it in a form ({FORM})")
    return given[name]


def _host(callback: str, allowed: Iterable[str]) -> str:
    """The host of a callback that may be called."""
    if len(callback.encode()) > LONGEST_URL:
        raise BadRequest(
            f"hub.callback has {len(callback.encode()):,} bytes; at most {LONGEST_URL:,} are taken"
        )
    if not callback.isascii() or not callback.isprintable() or " " in callback:
        raise BadRequest("hub.callback has letters that an address cannot have; escape them as %20")
    if "#" in callback:
        raise BadRequest("hub.callback has a fragment, which is never sent; leave out # and what follows")
    check_url(callback, allowed)
    return httpx.URL(callback).host.rstrip(".").lower()


def _lease(given: str) -> int:
    """The seconds that are granted: those that were asked for, within limits."""
    if not given:
        return DEFAULT_LEASE
    if not (given.isascii() and given.isdecimal() and int(given[:20])):
        raise BadRequest(f"hub.lease_seconds is {given[:50]!r}; it must be a positive whole number")
    return min(max(int(given[:20]), SHORTEST_LEASE), LONGEST_LEASE)
