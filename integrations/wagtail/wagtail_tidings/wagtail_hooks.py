"""The report in the menu of the Wagtail admin."""

from __future__ import annotations

from typing import Any

from django.urls import path, reverse
from wagtail import hooks
from wagtail.admin.menu import MenuItem

from wagtail_tidings.report import AlertReport


@hooks.register("register_reports_menu_item")
def report_menu_item() -> MenuItem:
    return MenuItem(
        "Visitors’ alerts", reverse("wagtail_tidings_report"), name="alerts", icon_name="mail", order=900
    )


@hooks.register("register_admin_urls")
def admin_urls() -> list[Any]:
    return [
        path("reports/alerts/", AlertReport.as_view(), name="wagtail_tidings_report"),
        path(
            "reports/alerts/results/",
            AlertReport.as_view(results_only=True),
            name="wagtail_tidings_report_results",
        ),
    ]
