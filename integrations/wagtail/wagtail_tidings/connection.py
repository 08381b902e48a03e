"""The site's clients of the Tidings service, and the addresses by which each side knows the other.

    TIDINGS = {
        "URL": "https://tidings.example.org",
        "TOKEN": "tid_…",  # with the role delegate: publishes, replaces the taxonomy, and acts for the visitors
    }

`WAGTAILADMIN_BASE_URL` is the address of the site itself, as for Wagtail's own mails.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.urls import reverse

from tidings import Client
from wagtail_tidings.models import Visitor

TIMEOUT = 10.0  # seconds that a visitor may wait for the service


def _setting(name: str) -> str:
    given: dict[str, Any] = getattr(settings, "TIDINGS", {})
    if not given.get(name):
        raise ImproperlyConfigured(
            f"settings.TIDINGS has no {name!r}; docs/howto/wagtail.md of Tidings shows it"
        )
    return str(given[name])


def site_client() -> Client:
    """The client of this process, which publishes, and replaces the taxonomy. Its connections are kept: to make one anew takes
    longer than a call."""
    return _client(_setting("URL"), _setting("TOKEN"), os.getpid())


def visitor_client(visitor: Visitor | str) -> Client:
    """A client that acts for one visitor, who is given or named by the key."""
    return site_client().for_user(visitor if isinstance(visitor, str) else visitor.key)


@lru_cache(maxsize=1)
def _client(address: str, token: str, process: int) -> Client:
    """A process that was forked has a client of its own."""
    return Client(address, token, timeout=TIMEOUT)


def site_address() -> str:
    address = getattr(settings, "WAGTAILADMIN_BASE_URL", "")
    if not address:
        raise ImproperlyConfigured(
            "settings.WAGTAILADMIN_BASE_URL is not set; mails need the address of the site"
        )
    return str(address).rstrip("/")


def absolute(name: str, *arguments: Any) -> str:
    """The whole address of one of the app's views."""
    return site_address() + reverse(f"wagtail_tidings:{name}", args=arguments)
