"""Protects forms against cross-site request forgery with a cookie and a signed hidden field.

The field is a signature over the cookie, so it can neither be made by another site nor be used by another
visitor. With a login the cookie is the session; without one it is a random value.
"""

from __future__ import annotations

import hmac
import secrets

from starlette.requests import Request
from starlette.responses import Response

from tidings.service.settings import Settings
from tidings.service.subscriptions.access_control import SESSION, AccessControl
from tidings.service.web.problems import Problem

SESSION_COOKIE = "tidings_session"
VISIT_COOKIE = "tidings_visit"
FIELD = "csrf"


def visit_of(request: Request) -> str | None:
    """The cookie that the forms of this visitor are tied to; None before the first page."""
    return request.cookies.get(SESSION_COOKIE) or request.cookies.get(VISIT_COOKIE)


def new_visit() -> str:
    return secrets.token_urlsafe(24)


def csrf_token(access: AccessControl, visit: str) -> str:
    """The value of the hidden field of a form."""
    return access.sign("csrf", visit)


def check_csrf(access: AccessControl, request: Request, given: object) -> None:
    """Refuses a form whose hidden field does not fit the visitor's cookie."""
    visit = visit_of(request)
    good = visit is not None and hmac.compare_digest(
        str(given or "").encode("utf-8", "surrogatepass"), csrf_token(access, visit).encode()
    )
    if not good:
        raise Problem(
            403, "this form is not from a page of yours, or too old; load the page again", kind="csrf"
        )


def set_cookie(response: Response, settings: Settings, name: str, value: str) -> None:
    """Sets a cookie that scripts cannot read, that other sites' forms do not send, and that is only sent over HTTPS
    where the service uses it."""
    response.set_cookie(
        name,
        value,
        max_age=int(SESSION),
        path="/",
        httponly=True,
        samesite="lax",
        secure=settings.address.startswith("https:"),
    )


def forget_cookie(response: Response, settings: Settings, name: str) -> None:
    response.delete_cookie(
        name, path="/", httponly=True, samesite="lax", secure=settings.address.startswith("https:")
    )
