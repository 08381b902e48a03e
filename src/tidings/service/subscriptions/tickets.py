"""Secrets and ids: random, shown once, kept as a hash, compared in constant time.

A secret has 256 random bits. Nobody guesses it from its hash, so one round of SHA-256 is enough, and a lookup by hash
tells nothing of the secret. The prefix says what a string is good for when somebody finds it in a log: tkt_ a ticket
of a subscription, tid_ a token, whsec_ the key of a webhook's signatures.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

TICKET = "tkt_"
TOKEN = "tid_"
WEBHOOK = "whsec_"
_ID_BYTES = 13  # 104 bits: twenty letters of base 32, and a little over


def new_secret(prefix: str = TICKET) -> str:
    """A secret that goes into headers and addresses as it is."""
    return prefix + secrets.token_urlsafe(32)


def new_webhook_secret() -> str:
    """A key as the Standard Webhooks rules want it: plain base 64 behind its prefix."""
    return WEBHOOK + base64.b64encode(secrets.token_bytes(32)).decode()


def digest(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def is_secret_of(secret: str | None, digest_of_it: str) -> bool:
    """Whether it is the secret with this hash. Takes as long for a wrong one as for the right one."""
    return hmac.compare_digest(digest(secret or ""), digest_of_it)


def new_id(prefix: str) -> str:
    """An id that nobody guesses, of letters that survive being read aloud: "s" and twenty of a-z, 2-7."""
    return prefix + base64.b32encode(secrets.token_bytes(_ID_BYTES)).decode().lower()[:20]
