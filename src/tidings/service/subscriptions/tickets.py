"""Makes secrets and ids: random, shown once, stored as a hash, compared in constant time.

A secret has 256 random bits and cannot be guessed from its hash, so one round of SHA-256 is enough. The prefix
says what a string is, such as one found in a log: tkt_ is a ticket of a subscription, tid_ a token, whsec_ the
key of a webhook's signatures.
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
    """A new secret that needs no escaping in headers and addresses."""
    return prefix + secrets.token_urlsafe(32)


def new_webhook_secret() -> str:
    """A new key in the form of Standard Webhooks: plain base 64 behind its prefix."""
    return WEBHOOK + base64.b64encode(secrets.token_bytes(32)).decode()


def digest(secret: str) -> str:
    """The hash of a secret, as it is stored."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def is_secret_of(secret: str | None, digest_of_it: str) -> bool:
    """Whether a secret has this hash, in constant time."""
    return hmac.compare_digest(digest(secret or ""), digest_of_it)


def new_id(prefix: str) -> str:
    """A random id of letters that survive being read aloud: the prefix and twenty of a-z, 2-7."""
    return prefix + base64.b32encode(secrets.token_bytes(_ID_BYTES)).decode().lower()[:20]
