"""The Django app: its signal handlers are connected when Django has started."""

from __future__ import annotations

from django.apps import AppConfig
from django.core.checks import Tags, register


class TidingsConfig(AppConfig):
    name = "wagtail_tidings"
    label = "wagtail_tidings"
    verbose_name = "Alerts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from wagtail_tidings import checks, signals

        signals.connect()
        register(checks.check_settings)
        register(checks.check_sqlite, Tags.database)
