"""A message as HTML for mail readers: styles inside, nothing loaded from anywhere, readable in light and dark.

Mail readers ignore most of CSS, so every element has its style in an attribute. The few rules in the head are for those that show
dark colours. Each text is escaped, and each link is a web address by `message_words.link`.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from tidings.service.delivery.channels.message import Item, Message, MessageKind
from tidings.service.delivery.channels.transports import message_words as words

_DARK = (
    ":root{color-scheme:light dark;supported-color-schemes:light dark}"
    "@media (prefers-color-scheme:dark){"
    ".page{background:#14191a!important;color:#e6eceb!important}"
    ".card{background:#1e2526!important;border-color:#313b3c!important}"
    ".item{border-color:#313b3c!important}"
    ".link{color:#5fd3c4!important}"
    ".quiet,.quiet a{color:#9fb0ae!important}"
    ".button{background:#5fd3c4!important;color:#0d1413!important}}"
)
_PAGE = (
    "margin:0;padding:24px 12px;background:#f2f5f4;color:#1c2625;"
    "font:16px/1.5 -apple-system,BlinkMacSystemFont,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"
)
_CARD = (
    "max-width:600px;margin:0 auto 16px;padding:4px 24px 8px;background:#ffffff;border:1px solid #dde5e3;"
    "border-radius:10px;overflow-wrap:anywhere;word-break:break-word"
)
_HEADING = "margin:18px 0 2px;font-size:13px;font-weight:600;letter-spacing:.04em;color:#52635f"
_ITEM = "padding:14px 0;border-top:1px solid #e6ecea"
_FIRST = "padding:10px 0 14px"
_TITLE = "margin:0;font-size:17px;line-height:1.35;font-weight:600"
_LINK = "color:#0b6e64;text-decoration:none"
_SUMMARY = "margin:6px 0 0"
_QUIET = "margin:6px 0 0;font-size:13px;color:#52635f"
_QUIET_LINK = "color:#52635f;text-decoration:underline"
_FOOTER = "max-width:600px;margin:0 auto;padding:0 24px;overflow-wrap:anywhere"
_TEXT = "margin:16px 0"
_BUTTON = (
    "display:inline-block;padding:10px 20px;background:#0b6e64;color:#ffffff;border-radius:8px;"
    "font-weight:600;text-decoration:none"
)


def as_html(message: Message) -> str:
    """The whole document."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="supported-color-schemes" content="light dark">\n'
        f"<title>{escape(words.subject(message))}</title>\n<style>{_DARK}</style>\n</head>\n"
        f'<body class="page" style="{escape(_PAGE)}">\n'
        + "\n".join((*_cards(message), *_footer(message)))
        + "\n</body>\n</html>\n"
    )


def _cards(message: Message) -> Iterator[str]:
    if message.kind is MessageKind.CONFIRMATION:
        yield f'<div class="card" style="{_CARD}">'
        yield f'<p style="{_TEXT}">{escape(words.service_name(message))} was asked to send messages to this address.</p>'
        if address := words.link(message.confirm):
            yield (
                f'<p style="{_TEXT}"><a class="button" style="{_BUTTON}" href="{escape(address)}">'
                "Confirm that I want them</a></p>"
            )
        yield (
            f'<p class="quiet" style="{_QUIET};margin-bottom:16px">'
            "If you did not ask for them, do nothing: you will get none.</p></div>"
        )
        return
    if message.kind is MessageKind.TEST:
        yield (
            f'<div class="card" style="{_CARD}"><p style="{_TEXT}">'
            "This is a test message: messages of this channel arrive here.</p></div>"
        )
        return
    for group in words.groups(message):
        yield f'<div class="card" style="{_CARD}">'
        if group.title:
            yield f'<h2 class="quiet" dir="auto" style="{_HEADING}">{escape(group.title)}</h2>'
        for number, item in enumerate(group.items):
            yield _item(item, message.zone, _ITEM if number else _FIRST)
        yield "</div>"


def _item(item: Item, zone: str, style: str) -> str:
    title = escape(words.item_title(item))
    address, page = words.link(item.link), words.link(item.page)
    if target := address or page:
        title = f'<a class="link" style="{_LINK}" href="{escape(target)}">{title}</a>'
    parts = [f'<div class="item" style="{style}"><h3 dir="auto" style="{_TITLE}">{title}</h3>']
    if summary := words.line(item.summary, words.MAX_SUMMARY):
        parts.append(f'<p dir="auto" style="{_SUMMARY}">{escape(summary)}</p>')
    details = [escape(words.clock(item.at, zone))]
    if page and page != target:
        details.append(_quiet_link(page, "Details"))
    if any(details):
        parts.append(f'<p class="quiet" style="{_QUIET}">{" · ".join(filter(None, details))}</p>')
    return "".join(parts) + "</div>"


def _footer(message: Message) -> Iterator[str]:
    if message.kind is MessageKind.CONFIRMATION:
        return
    yield f'<div style="{_FOOTER}">'
    if left := words.more(message):
        manage = words.link(message.manage)
        yield f'<p class="quiet" style="{_QUIET}">{_quiet_link(manage, left) if manage else left}</p>'
    yield f'<p class="quiet" dir="auto" style="{_QUIET}">{escape(words.reason(message))}</p>'
    links = ((message.manage, "Change what is sent"), (message.unsubscribe, "Unsubscribe"))
    shown = [_quiet_link(address, label) for given, label in links if (address := words.link(given))]
    if shown:
        yield f'<p class="quiet" style="{_QUIET}">{" · ".join(shown)}</p>'
    yield "</div>"


def _quiet_link(address: str, label: str) -> str:
    return f'<a style="{_QUIET_LINK}" href="{escape(address)}">{label}</a>'
