"""What people ask for, as a report in the Wagtail admin: how many visitors each alert has, and when it was asked for last."""

from __future__ import annotations

from typing import Any

import django_filters
from django.db.models import Count, Max, Min, QuerySet
from django.utils.functional import cached_property
from wagtail.admin.filters import WagtailFilterSet
from wagtail.admin.ui.tables import Column, DateColumn
from wagtail.admin.views.reports import ReportView
from wagtail.models import Page
from wagtail.permissions import policy_registry

from wagtail_tidings.models import Alert


class AlertFilter(WagtailFilterSet):
    title = django_filters.CharFilter(lookup_expr="icontains", label="Words")
    kind = django_filters.ChoiceFilter(choices=Alert.Kind.choices)

    class Meta:
        model = Alert
        fields = ("title", "kind")


class AlertReport(ReportView):
    """Addresses are not in it: editors see what is wanted, not who wants it."""

    model = Alert
    page_title = "What visitors ask for"
    header_icon = "mail"
    index_url_name = "wagtail_tidings_report"
    index_results_url_name = "wagtail_tidings_report_results"
    results_template_name = "wagtail_tidings/admin/report_results.html"
    filterset_class = AlertFilter
    default_ordering = "-visitors"
    any_permission_required = ("add", "change", "publish")
    list_export = ("title", "kind", "visitors", "first", "newest", "text")
    export_headings = {  # noqa: RUF012 - as Wagtail declares it
        "visitors": "Visitors",
        "first": "First asked for",
        "newest": "Last asked for",
    }
    columns = (
        Column("title", label="Asked for", sort_key="title", width="45%"),
        Column("kind", label="Kind", accessor=lambda row: Alert.Kind(row["kind"]).label, sort_key="kind"),
        Column("visitors", label="Visitors", sort_key="visitors", classname="tidings-number"),
        DateColumn("first", label="First", sort_key="first"),
        DateColumn("newest", label="Newest", sort_key="newest"),
    )

    def get_queryset(self) -> QuerySet[Any]:
        confirmed = Alert.objects.filter(confirmed_at__isnull=False)
        rows = confirmed.values("kind", "title", "text").annotate(
            visitors=Count("visitor", distinct=True), first=Min("created_at"), newest=Max("created_at")
        )
        return self.order_queryset(rows)

    @cached_property
    def permission_policy(self) -> Any:
        return policy_registry.get_by_type(Page)

    def get_context_data(self, *arguments: Any, **named: Any) -> dict[str, Any]:
        confirmed = Alert.objects.filter(confirmed_at__isnull=False)
        totals = confirmed.aggregate(alerts=Count("pk"), visitors=Count("visitor", distinct=True))
        return super().get_context_data(*arguments, **named, totals=totals)
