"""Sanitises HTML from outside: only elements and attributes known to be harmless are kept.

`safe_html` is the only way by which outside HTML gets onto a page or into a feed; `plain_text` gives its text.
Both cut their input at a bound first, so that their time is bounded.
"""

from __future__ import annotations

import html as characters
import re
from itertools import islice

import nh3

from tidings.feeds.write.channel import printable

MAX_HTML = 100_000  # characters of one text; an article has a tenth of it
_MAX_TAGS = 4_000  # the parser's time goes with the square of how deep they nest: 60 ms for so many

_TAGS = {
    "a", "abbr", "b", "blockquote", "br", "caption", "cite", "code", "col", "colgroup", "dd", "del", "details", "dfn",
    "div", "dl", "dt", "em", "figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "ins",
    "kbd", "li", "mark", "ol", "p", "pre", "q", "s", "samp", "small", "span", "strong", "sub", "summary", "sup",
    "table", "tbody", "td", "tfoot", "th", "thead", "time", "tr", "u", "ul", "var", "wbr",
}  # fmt: skip
_SILENT = {"script", "style", "title", "textarea", "iframe", "noscript", "template", "svg", "math", "object"}
_ATTRIBUTES = {
    "*": {"title", "dir", "lang"},
    "a": {"href"},
    "img": {"src", "alt", "width", "height"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
    "ol": {"start"},
    "time": {"datetime"},
}
_BLOCK = re.compile(
    r"<(?=/?(?:p|br|div|li|ul|ol|dl|dt|dd|t[dhr]|table|h[1-6r]|blockquote|pre|figcaption|caption|summary)\b)",
    re.IGNORECASE,
)
_SPACE = re.compile(r"\s+")
_TAG = re.compile(r"<[A-Za-z/!?]")


def _attribute(tag: str, name: str, value: str) -> str | None:
    # A picture over plain http would reveal to the network what is read.
    return None if tag == "img" and name == "src" and not value.lower().startswith("https://") else value


_CLEANER = nh3.Cleaner(
    tags=_TAGS,
    clean_content_tags=_SILENT,
    attributes=_ATTRIBUTES,
    attribute_filter=_attribute,
    link_rel="nofollow noopener noreferrer",
    url_schemes={"http", "https", "mailto"},
    url_relative="deny",
)
_STRIPPER = nh3.Cleaner(tags=set(), clean_content_tags=_SILENT, attributes={}, link_rel=None)


def safe_html(html: str) -> str:
    """`html` without scripts, without loading over plain http, and with all elements closed."""
    return _CLEANER.clean(_bounded(html)).strip()


def plain_text(html: str, length: int = MAX_HTML) -> str:
    """The text of `html`, in one line of at most `length` characters."""
    if "<" in html or "&" in html:
        html = characters.unescape(_STRIPPER.clean(_BLOCK.sub(" <", _bounded(html))))
    return one_line(html, length)


def _bounded(html: str) -> str:
    html = html[:MAX_HTML]
    if html.count("<") > _MAX_TAGS:
        tag = next(islice(_TAG.finditer(html), _MAX_TAGS, None), None)
        html = html[: tag.start()] if tag else html
    return printable(html)


def one_line(text: str, length: int) -> str:
    """`text` with single spaces and at most `length` characters, cut after a word."""
    line = _SPACE.sub(" ", printable(text[: 4 * length + 1_000])).strip()
    if len(line) <= length:
        return line
    cut = line[: length - 1]
    word = cut.rpartition(" ")[0]
    return f"{word if len(word) > length // 2 else cut}…"


def as_html(text: str) -> str:
    """`text` as HTML; a text with tags is taken as HTML already."""
    if _TAG.search(text):
        return text
    return characters.escape(text, quote=False).replace("\n", "<br>\n")
