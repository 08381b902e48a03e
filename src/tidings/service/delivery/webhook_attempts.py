"""Makes one attempt to deliver one notification to one webhook, by the Standard Webhooks rules.

Every behaviour of a receiver gives an outcome and never an exception: it may be slow, redirect, answer without
end or be unreachable.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import blake2b

import httpx
from standardwebhooks import Webhook

from tidings.errors import TidingsError
from tidings.service.delivery.notification_json import moment
from tidings.service.delivery.receivers import Answer, Receivers
from tidings.service.model import NOTICES, Delivery, StoredNotification

TIMEOUT = 15.0  # for all of it: name, connection, answer
LONGEST_WAIT = 86_400.0
_ERRNO = re.compile(r"\[Errno -?\d+\] ")  # a number that says nothing to people

DELIVERED, FAILED, GONE = "delivered", "failed", "gone"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an attempt: "delivered", "failed" or "gone" (for good: 410)."""

    result: str
    error: str | None = None
    status: int | None = None  # of the answer; None without one
    retry_after: float | None = None  # seconds that the receiver asked for


async def attempt(
    receivers: Receivers,
    delivery: Delivery,
    notification: StoredNotification,
    to_json: Callable[[StoredNotification], Mapping[str, object]],
    now: float,
    timeout: float = TIMEOUT,
) -> Outcome:
    """Posts a notification to the webhook, signed now."""
    body = json.dumps(
        {
            "type": f"tidings.{notification.kind.value}",
            "timestamp": moment(notification.at),
            "data": to_json(notification),
        },
        separators=(",", ":"),
    )
    return await send(receivers, delivery, message_id(notification), body, now, timeout=timeout)


async def attempt_test(
    receivers: Receivers, delivery: Delivery, id: str, now: float, timeout: float = TIMEOUT
) -> Outcome:
    """Posts a message of the type "tidings.test", which is no notification, signed as any other."""
    body = json.dumps(
        {
            "type": "tidings.test",
            "timestamp": moment(now),
            "data": {
                "subscription": delivery.subscription,
                "message": "This is a test delivery of a Tidings webhook; no event has matched.",
            },
        },
        separators=(",", ":"),
    )
    return await send(receivers, delivery, id, body, now, timeout=timeout)


async def send(
    receivers: Receivers, delivery: Delivery, id: str, body: str, now: float, *, timeout: float
) -> Outcome:
    """Posts a body to the webhook, signed now."""
    try:
        signature = Webhook(delivery.secret).sign(id, datetime.fromtimestamp(now, UTC), body)
    except (ValueError, RuntimeError) as error:
        return Outcome(FAILED, f"the webhook's secret cannot sign: {error}; set the webhook anew")
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "tidings (webhooks)",
        "Accept-Encoding": "identity",
        "webhook-id": id,
        "webhook-timestamp": str(math.floor(now)),
        "webhook-signature": signature,
    }
    outcome, _ = await request(
        receivers, "POST", delivery.url, headers, body.encode(), now=now, timeout=timeout
    )
    return outcome


async def request(
    receivers: Receivers,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    now: float,
    timeout: float = TIMEOUT,
) -> tuple[Outcome, Answer | None]:
    """Sends a body to an address; the answer is None if there was none."""
    answer = await answer_or_failure(receivers.request(method, url, headers, body), timeout)
    return (answer, None) if isinstance(answer, Outcome) else (_outcome(answer, now), answer)


async def answer_or_failure(asking: Awaitable[Answer], timeout: float) -> Answer | Outcome:
    """The answer of a receiver, or that there is none."""
    try:
        async with asyncio.timeout(timeout):
            return await asking
    except TimeoutError:
        return Outcome(FAILED, f"the receiver did not answer within {timeout:g} seconds")
    except TidingsError as error:  # the address is not allowed
        return Outcome(FAILED, str(error))
    except (httpx.InvalidURL, OSError, ValueError) as error:
        problem = _sentence_part(_ERRNO.sub("", str(error)) or type(error).__name__)
        return Outcome(FAILED, f"the receiver cannot be reached: {problem}")


def message_id(notification: StoredNotification) -> str:
    """The webhook-id of a notification: the same at every attempt, and different for every other notification. A
    notification of the stream has a hash as its id; the id of a notice is unique only within its subscription."""
    if notification.kind not in NOTICES and _plain(notification.id):
        return notification.id
    together = f"{notification.subscription}_{notification.id}".replace(" ", "-").replace(".", "-")
    if _plain(together):
        return together
    return "msg_" + blake2b(together.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _plain(id: str) -> bool:
    return len(id) <= 200 and id.isascii() and all(letter.isalnum() or letter in "_-:" for letter in id)


def _outcome(answer: Answer, now: float) -> Outcome:
    code = answer.status
    if 200 <= code < 300:
        return Outcome(DELIVERED, status=code)
    if code == 410:
        return Outcome(GONE, "the receiver said that it is gone for good (410)", code)
    if 300 <= code < 400:
        target = _sentence_part(answer.headers.get("location", "nowhere"))
        return Outcome(
            FAILED,
            f"the receiver redirects to {target} ({code}), and redirects are not followed; set the address it is at",
            code,
        )
    reason = _sentence_part(answer.reason)
    return Outcome(
        FAILED, f"the receiver answered {code} {reason}".rstrip(), code, _retry_after(answer.headers, now)
    )


def _retry_after(headers: Mapping[str, str], now: float) -> float | None:
    said = headers.get("retry-after", "").strip()
    if said.isascii() and said.isdecimal():
        seconds = float(said[:9])
    else:
        try:
            seconds = parsedate_to_datetime(said).timestamp() - now
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    return min(max(seconds, 0.0), LONGEST_WAIT)


def _sentence_part(text: str) -> str:
    """What came from outside, for a sentence: one line, not long."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:200])
