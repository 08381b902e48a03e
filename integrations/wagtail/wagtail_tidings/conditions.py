"""What people ask for, as texts in the subscription language."""

from __future__ import annotations

import re
import unicodedata

from wagtail_tidings.models import Alert
from wagtail_tidings.vocabulary import page_iri, tag_iri

MAX_VALUE = 500  # characters


def text_of(kind: str, value: str, only_new: bool) -> str:
    """The subscription's text for an alert."""
    texts = {
        Alert.Kind.SEARCH: lambda: f"WHERE {words(value)}",
        Alert.Kind.TAG: lambda: (
            f"SELECT ?page WHERE (?page, dc:subject, ?tag) AND ?tag ISA <{tag_iri(value)}>"
        ),
        Alert.Kind.SECTION: lambda: (
            f"SELECT ?page WHERE (?page, rss:title, ?title) AND ?page ISA <{page_iri(value)}>"
        ),
        Alert.Kind.TEXT: lambda: value,
    }
    text = texts[Alert.Kind(kind)]()
    if only_new and kind != Alert.Kind.TEXT:
        text += " AND change = 'published'"
    return text


def words(value: str) -> str:
    """The condition of a search for words in a page."""
    return f"body SEARCH {quoted(' '.join(plain_words(value)))}"


def plain_words(value: str) -> list[str]:
    """The words that somebody typed into a search. Quotes, parentheses and minus signs mean nothing there, and nor do OR, AND and
    NOT; what has no letter and no digit is left out."""
    typed = (word.lstrip("-") for word in re.sub(r'["()]', " ", value).split())
    found = [word for word in typed if any(unicodedata.category(character)[0] in "LN" for character in word)]
    return [word.lower() if word in ("OR", "AND", "NOT") else word for word in found]


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
