"""Who may see a page, asked when something about it is about to leave the site.

A page that is not live does not exist. A view restriction of the page or of a page above it is decided by Wagtail's own rule,
for the visitor's account and an empty session: a page behind a password goes to nobody, because the password was given to a
browser and not to a mailbox.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace

from django.contrib.auth.models import AnonymousUser
from wagtail.models import Page

from wagtail_tidings.models import Visitor


def visible_pages(visitor: Visitor, numbers: Iterable[int]) -> dict[int, Page]:
    """Those of the pages that the visitor may see now, by number."""
    pages = Page.objects.live().filter(pk__in=set(numbers)).specific()
    return {page.pk: page for page in pages if may_see(visitor, page)}


def may_see(visitor: Visitor, page: Page) -> bool:
    if not page.live or page.expired or not page.full_url:
        return False
    user = visitor.user or AnonymousUser()
    if visitor.user is not None and not visitor.user.is_active:
        return False
    request = SimpleNamespace(user=user, session={})
    return all(restriction.accept_request(request) for restriction in page.get_view_restrictions())
