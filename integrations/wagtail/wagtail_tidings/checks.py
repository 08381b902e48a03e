"""What `manage.py check` says about the settings of a site that uses the app."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning


def check_settings(app_configs: Any, **rest: Any) -> list[CheckMessage]:
    given = getattr(settings, "TIDINGS", {})
    missing = [name for name in ("URL", "TOKEN") if not given.get(name)]
    found: list[CheckMessage] = []
    if missing:
        hint = 'Set TIDINGS = {"URL": …, "TOKEN": …}.'
        found.append(Warning(f"TIDINGS has no {', '.join(missing)}", hint=hint, id="wagtail_tidings.W001"))
    if not getattr(settings, "WAGTAILADMIN_BASE_URL", ""):
        hint = "Set it to the address of the site: links in mails begin with it."
        found.append(Error("WAGTAILADMIN_BASE_URL is not set", hint=hint, id="wagtail_tidings.E001"))
    return found


def check_sqlite(app_configs: Any, **rest: Any) -> list[CheckMessage]:
    """The outbox is sent by a thread that writes too. With SQLite's default, a transaction that began by reading fails then."""
    database = settings.DATABASES["default"]
    if not database["ENGINE"].endswith("sqlite3"):
        return []
    if database.get("OPTIONS", {}).get("transaction_mode") == "IMMEDIATE":
        return []
    hint = 'Set DATABASES["default"]["OPTIONS"] = {"transaction_mode": "IMMEDIATE", "timeout": 30}.'
    return [Warning("SQLite may say that the database is locked", hint=hint, id="wagtail_tidings.W002")]
