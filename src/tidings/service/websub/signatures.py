"""Signs pushed feeds, and checks signatures of hubs: the header X-Hub-Signature of WebSub, "method=hexadecimal HMAC"."""

from __future__ import annotations

import hmac

METHODS = ("sha1", "sha256", "sha384", "sha512")
SECRET_BYTES = 200  # a secret has fewer


def sign(secret: str, body: bytes) -> str:
    """The value of the header. SHA-1 is known to be weak, so SHA-256 it is."""
    return f"sha256={hmac.new(secret.encode(), body, 'sha256').hexdigest()}"


def is_signed(header: str | None, secret: str, body: bytes) -> bool:
    """Whether a header has the signature of a body, by the method that it names; in constant time."""
    method, _, given = (header or "").strip().partition("=")
    method = method.strip().lower()
    if method not in METHODS:
        return False
    expected = hmac.new(secret.encode(), body, method).hexdigest()
    return hmac.compare_digest(expected.encode(), given.strip().lower().encode("utf-8", "surrogatepass"))
