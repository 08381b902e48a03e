"""Writes JSON Feed 1.1."""

from __future__ import annotations

import json
from typing import Any

from tidings.feeds.write.channel import Channel, Entry, moment, printable

MEDIA_TYPE = "application/feed+json"


def write(channel: Channel) -> bytes:
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": channel.title,
        "home_page_url": channel.link,
        "feed_url": channel.url,
        "description": channel.description,
        "next_url": channel.next_url,
        "hubs": [{"type": "WebSub", "url": channel.hub}] if channel.hub else None,
        "items": [_item(entry) for entry in channel.entries],
    }
    return json.dumps(_given(feed), ensure_ascii=False, indent=1).encode()


def _item(entry: Entry) -> dict[str, Any]:
    html = entry.content_html or entry.summary_html
    return {
        "id": entry.id,
        "url": entry.link,
        "title": entry.title,
        "content_html": html,
        "content_text": None if html else entry.title,  # one of the two there must be
        "summary": entry.summary_text if entry.content_html else None,
        "date_published": moment(entry.updated if entry.published is None else entry.published),
        "date_modified": moment(entry.updated),
        "authors": [{"name": entry.author}] if entry.author else None,
        "tags": list(entry.categories),
    }


def _given(value: Any) -> Any:
    """Drops empty members, and characters that some readers refuse."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_given(member) for member in value]
    if isinstance(value, dict):
        return {name: _given(inner) for name, inner in value.items() if inner or name in ("items", "title")}
    return value
