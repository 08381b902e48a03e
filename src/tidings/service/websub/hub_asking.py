"""Asks a hub for a subscription, or to end one: a form by POST, with the callback, the topic, a lease and a secret.

The answer says only that the hub has read the request; it verifies it later, at the callback.
"""

from __future__ import annotations

import time
from typing import Final
from urllib.parse import urljoin, urlsplit

import httpx

from tidings.feeds.addresses import DEADLINE, AddressRefused
from tidings.feeds.push_states import Push, PushState

UNSUBSCRIBED: Final = "(gone)"
_REDIRECTS = 3
_SECONDS = 20.0
_AGENT = "tidings (WebSub subscriber)"


def ask(client: httpx.Client, push: Push, callback: str, lease: int) -> str | None:
    """Asks the hub to begin, or if the subscription is ending, to end it. None: it will verify. Otherwise a sentence
    that says why not; `UNSUBSCRIBED` if the hub knows of no such subscription."""
    form = {"hub.callback": callback, "hub.mode": "subscribe", "hub.topic": push.topic}
    if push.state is PushState.ENDING:
        form["hub.mode"] = "unsubscribe"
    else:
        form |= {"hub.lease_seconds": str(lease), "hub.secret": push.secret}
    hub = push.hub
    before = DEADLINE.set(time.monotonic() + _SECONDS)
    try:
        for _ in range(_REDIRECTS + 1):
            headers = {"User-Agent": _AGENT, "Accept-Encoding": "identity"}
            with client.stream("POST", hub, data=form, headers=headers, follow_redirects=False) as answer:
                status, target = answer.status_code, answer.headers.get("Location")
            if status not in (307, 308) or not target:
                return _failure(push, status)
            hub = urljoin(hub, target)
            if urlsplit(hub).scheme not in ("http", "https"):
                break
        return f"the hub {push.hub} redirects to no hub"
    except (httpx.HTTPError, httpx.InvalidURL, AddressRefused, ValueError) as error:
        return f"the hub {push.hub} cannot be asked: {error or type(error).__name__}"[:500]
    finally:
        DEADLINE.reset(before)


def _failure(push: Push, status: int) -> str | None:
    if 200 <= status < 300:
        return None
    if push.state is PushState.ENDING and status in (404, 410):
        return UNSUBSCRIBED
    return f"the hub {push.hub} answered {status}"
