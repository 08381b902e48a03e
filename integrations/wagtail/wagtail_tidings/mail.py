"""The mails that the site sends: the confirmation of an alert, and the pages of a message.

Pages are shown as they are now. A mail names every alert that a page answers, and each page once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from wagtail.models import Page, Site

from wagtail_tidings.links import confirm_link, profile_link, unsubscribe_link
from wagtail_tidings.models import Alert, Visitor
from wagtail_tidings.page_event import SUMMARY, searchable_text


@dataclass
class Entry:
    """A page in a mail, and the titles of the alerts that it answers."""

    page: Page
    alerts: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        text = self.page.search_description or searchable_text(self.page)
        return text if len(text) <= SUMMARY else text[:SUMMARY].rsplit(" ", 1)[0] + " …"


def send_confirmation(alert: Alert) -> None:
    context = {"alert": alert, "site": site_name(), "link": confirm_link(alert)}
    _send("confirmation", f"Please confirm: {alert.title}", alert.visitor.address, context, {})


def send_pages(visitor: Visitor, entries: list[Entry], notices: list[str], more: int) -> None:
    """Sends a mail, and returns when the mail server has accepted it."""
    leave = unsubscribe_link(visitor)
    context = {
        "entries": entries,
        "notices": notices,
        "more": more,
        "site": site_name(),
        "profile": profile_link(visitor),
        "unsubscribe": leave,
    }
    # RFC 8058: a mail program ends it by one POST, without a visit.
    headers = {"List-Unsubscribe": f"<{leave}>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}
    _send("pages", _subject(entries, notices), visitor.address, context, headers)


def _subject(entries: list[Entry], notices: list[str]) -> str:
    if not entries:
        return notices[0]
    first = entries[0].page.title
    return first if len(entries) == 1 else f"{first}, and {len(entries) - 1} more"


def _send(name: str, subject: str, address: str, context: dict[str, Any], headers: dict[str, str]) -> None:
    subject = " ".join(f"{context['site']}: {subject}".split())[:200]
    text = render_to_string(f"wagtail_tidings/mail/{name}.txt", context)
    html = render_to_string(f"wagtail_tidings/mail/{name}.html", context)
    headers = {"Auto-Submitted": "auto-generated", **headers}  # RFC 3834: no automatic replies
    mail = EmailMultiAlternatives(subject, text, settings.DEFAULT_FROM_EMAIL, [address], headers=headers)
    mail.attach_alternative(html, "text/html")
    mail.send()


def site_name() -> str:
    site = Site.objects.filter(is_default_site=True).first()
    return (site.site_name if site else "") or getattr(settings, "WAGTAIL_SITE_NAME", "") or "This site"
