"""Shows secrets once: a cookie carries them from a form to the next page, which reads and clears it. The service
stores nothing, and reloading the page shows nothing.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from tidings.service.settings import Settings

COOKIE = "tidings_shown_once"
_SECONDS = 120
_WARNINGS, _BYTES = 5, 200


def set_secrets(response: Response, settings: Settings, path: str, secrets: Mapping[str, Any]) -> None:
    """Sets the cookie for the page at `path`."""
    response.set_cookie(
        COOKIE,
        base64.urlsafe_b64encode(json.dumps(secrets, ensure_ascii=False).encode("utf-8", "replace")).decode(),
        max_age=_SECONDS,
        path=path,
        httponly=True,
        samesite="strict",
        secure=settings.address.startswith("https:"),
    )


def brief(warnings: Sequence[str]) -> list[str]:
    """The first warnings, each of at most 200 bytes: a browser drops a cookie above 4,096 bytes, and a ticket with it."""
    return [_cut(warning) for warning in warnings[:_WARNINGS]]


def _cut(text: str) -> str:
    short = text.encode("utf-8", "replace")[:_BYTES].decode(errors="ignore")
    return text if short == text else f"{short} …"


def read_secrets(request: Request) -> dict[str, Any]:
    """The secrets in the cookie, if it is one that the service could have set."""
    try:
        found = json.loads(base64.urlsafe_b64decode(request.cookies.get(COOKIE, "")))
    except (ValueError, RecursionError):
        return {}
    kinds = {
        "ticket": str,
        "webhook_secret": str,
        "warnings": list,
        "webhook_test": dict,
        "token_name": str,
        "token_secret": str,
    }
    if not isinstance(found, dict):
        return {}
    return {name: found[name] for name, kind in kinds.items() if isinstance(found.get(name), kind)}


def clear_secrets(response: Response, settings: Settings, path: str) -> None:
    response.delete_cookie(
        COOKIE,
        path=path,
        httponly=True,
        samesite="strict",
        secure=settings.address.startswith("https:"),
    )
