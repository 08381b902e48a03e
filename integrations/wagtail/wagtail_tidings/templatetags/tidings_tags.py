"""Forms for the site's templates: `{% load tidings_tags %}`, then

{% tidings_css %}                       in the head
{% tidings_search query %}              on search results
{% tidings_tag tag %}                   beside a tag, or on its page
{% tidings_section page %}              on a page: everything below it
"""

from __future__ import annotations

from typing import Any

from django import template
from django.templatetags.static import static
from django.utils.html import format_html

from wagtail_tidings.models import Alert

register = template.Library()
_FORM = "wagtail_tidings/form.html"


@register.simple_tag
def tidings_css() -> str:
    return format_html('<link rel="stylesheet" href="{}">', static("wagtail_tidings/tidings.css"))


@register.inclusion_tag(_FORM, takes_context=True)
def tidings_search(context: dict[str, Any], words: str) -> dict[str, Any]:
    words = " ".join((words or "").split())
    return _form(context, Alert.Kind.SEARCH, words, f"pages with “{words}”")


@register.inclusion_tag(_FORM, takes_context=True)
def tidings_tag(context: dict[str, Any], tag: Any) -> dict[str, Any]:
    return _form(context, Alert.Kind.TAG, tag.slug, f"pages tagged {tag.name}")


@register.inclusion_tag(_FORM, takes_context=True)
def tidings_section(context: dict[str, Any], page: Any) -> dict[str, Any]:
    return _form(context, Alert.Kind.SECTION, str(page.pk), f"everything in {page.title}")


def _form(context: dict[str, Any], kind: str, value: str, subject: str) -> dict[str, Any]:
    request = context.get("request")
    return {
        "kind": kind,
        "value": value,
        "subject": subject,
        "request": request,
        "user": getattr(request, "user", None),
        "back": request.get_full_path() if request else "/",
        "csrf_token": context.get("csrf_token"),
    }
