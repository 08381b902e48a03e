"""A page that was published, changed or unpublished, as an event: a CloudEvent whose data is RDF in Turtle.

The body is what Wagtail's own search would index of the page, so that an alert finds what a search finds. An event of an
unpublished page says that it is gone, and nothing of what was in it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from decimal import Decimal
from html import unescape
from typing import Any

from django.db.models import Manager, Model
from django.utils import timezone
from django.utils.html import strip_tags
from taggit.managers import TaggableManager
from wagtail.models import Page
from wagtail.search import index

from wagtail_tidings.connection import site_address
from wagtail_tidings.vocabulary import (
    DC,
    RDF,
    RSS,
    WAGTAIL,
    XSD,
    event_id,
    iri,
    literal,
    page_iri,
    tag_iri,
    turtle,
)

PUBLISHED, CHANGED, UNPUBLISHED = "published", "changed", "unpublished"
MAX_BODY = 200_000  # characters
SUMMARY = 300

# Attributes that are the event's own, or that Wagtail keeps about every page and nobody filters by.
_OWN = {
    "id",
    "source",
    "type",
    "time",
    "data",
    "title",
    "body",
    "tags",
    "section",
    "url",
    "page",
    "model",
    "change",
}
_OF_EVERY_PAGE = {field.field_name for field in Page.search_fields if isinstance(field, index.FilterField)}


def page_event(page: Page, change: str) -> dict[str, Any]:
    """The event of a change of a page, as the client publishes it."""
    moment = timezone.now()
    about: dict[str, Any] = {"page": page.pk, "url": page.full_url or "", "change": change}
    properties = [(RSS + "link", literal(about["url"])), (WAGTAIL + "change", literal(change))]
    if change != UNPUBLISHED:
        about.update(_attributes(page))
        properties += _properties(page, about)
    return {
        "specversion": "1.0",
        "id": event_id(page.pk, secrets.token_hex(8)),
        "source": site_address(),
        "type": f"wagtail.page.{change}",
        "time": moment.isoformat(),
        "datacontenttype": "text/turtle",
        "data": turtle(page_iri(page.pk), properties),
        **about,
    }


def _attributes(page: Page) -> dict[str, Any]:
    ancestors = page.get_ancestors().filter(depth__gt=1)
    return {
        **_filterable(page),
        "title": page.title,
        "body": f"{page.title}\n{searchable_text(page)}"[:MAX_BODY],
        "tags": [tag.name for tag in tags_of(page)],
        "section": [ancestor.url or "" for ancestor in ancestors],
        "model": page._meta.label,
        "language": page.locale.language_code,
    }


def _properties(page: Page, about: dict[str, Any]) -> list[tuple[str, str]]:
    section = page_iri(page.get_parent().pk)
    body = about["body"].removeprefix(page.title).strip()
    published = page.last_published_at or timezone.now()
    subjects = [term for tag in tags_of(page) for term in (literal(tag.name), iri(tag_iri(tag.slug)))]
    return [
        (RDF + "type", iri(RSS + "item")),
        (RDF + "type", iri(section)),
        (RSS + "title", literal(page.title)),
        (RSS + "description", literal(page.search_description or body[:SUMMARY])),
        (DC + "date", literal(published.isoformat(), XSD + "dateTime")),
        (DC + "language", literal(about["language"])),
        *((DC + "subject", subject) for subject in subjects),
        (WAGTAIL + "section", iri(section)),
        (WAGTAIL + "model", literal(about["model"])),
        (WAGTAIL + "body", literal(body)),
    ]


def searchable_text(page: Page) -> str:
    """The plain text of all that the page's `search_fields` make searchable, but for the title."""
    return "\n".join(filter(None, _texts(page, type(page).get_search_fields())))


def _texts(item: Model, fields: Iterable[Any]) -> Iterator[str]:
    for field in fields:
        if isinstance(field, index.RelatedFields):
            value = field.get_value(item)
            related = value.all() if isinstance(value, Manager) or hasattr(value, "all") else [value]
            for other in related:
                if other is not None:
                    yield from _texts(other, field.fields)
        elif isinstance(field, index.SearchField) and field.field_name != "title":
            value = field.get_value(item)
            for part in value if isinstance(value, list | tuple) else [value]:
                if part is not None:
                    yield " ".join(unescape(strip_tags(str(part).replace("<", " <"))).split())


def _filterable(page: Page) -> dict[str, Any]:
    """The page's own FilterFields, where their values are plain."""
    found = {}
    for field in type(page).get_filterable_search_fields():
        name = field.field_name
        if name in _OF_EVERY_PAGE or name in _OWN:
            continue
        value = field.get_value(page)
        if isinstance(value, Decimal):
            value = float(value)
        if isinstance(value, date | datetime):
            value = value.isoformat()
        if isinstance(value, str | int | float | bool):
            found[name] = value
    return found


def tags_of(page: Page) -> list[Any]:
    return sorted(
        {tag for manager in tag_managers(type(page)) for tag in getattr(page, manager.name).all()},
        key=lambda tag: tag.slug,
    )


def tag_managers(model: type[Model]) -> list[TaggableManager]:
    return [field for field in model._meta.get_fields() if isinstance(field, TaggableManager)]
