"""Messages of every shape for the tests of transports, with texts that try to be more than text."""

from __future__ import annotations

from hypothesis import strategies as st

from tidings.service.delivery.channels.message import Item, Message, MessageKind

NASTY = (
    "\r\nBcc: victim@example.org\r\n\r\nHello",
    "\n.\r\nMAIL FROM:<x@example.org>",
    "\rX: y",
    "\x00\x0b\x0c\x1b[31m",
    "a\u2028Subject: b\u2029c\x85d",
    "\u202etxet\u202c \u2066x\u2069 \u061c\ufeff",
    "</title><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</style></head><body onload=x>",
    '"><a href="javascript:alert(1)">x</a>',
    "'; style='x",
    "&lt;b&gt; &amp; <b>",
    "=?utf-8?q?=0D=0ABcc:_x?= =?utf-8?b?DQo=?=",
    "\ud800 half \udfff",
    "x" * 5_000,
    "ä" * 999,
    "--=_tidings_",
    ".",
    "..\n.\n",
    "",
    " \t ",
    "İ😀\U0010ffff\ufffe",
)
LINKS = (
    None,
    "javascript:alert(1)",
    "https://example.org/\r\nBcc: x",
    'https://example.org/"onmouseover="x',
    "https://example.org/<b>",
    "http://example.org/ä?q=1&b=<",
    "data:text/html,x",
    "https://" + "a" * 3_000,
    "//example.org",
    "https://",
    "HTTPS://Example.org/a?b=c&d=e#f",
    "https://[::1",
    "https://\ud800.example/",
)

texts = st.one_of(
    st.sampled_from(NASTY), st.text(max_size=60), st.lists(st.sampled_from(NASTY), max_size=3).map("".join)
)
links = st.one_of(st.sampled_from(LINKS), texts)
pages = links.map(lambda given: given or "")
times = st.one_of(st.floats(0, 4e9), st.sampled_from((float("nan"), float("inf"), -1e300, 1e300)))
items = st.builds(
    Item, texts, st.sampled_from("abc"), texts, times, texts, links, texts, pages, st.none() | texts
)


def messages(address: str, kinds: tuple[MessageKind, ...] = tuple(MessageKind)) -> st.SearchStrategy[Message]:
    return st.builds(
        Message,
        id=texts,
        kind=st.sampled_from(kinds),
        channel=texts,
        address=st.just(address),
        secret=st.just(""),
        title=texts,
        items=st.lists(items, max_size=4).map(tuple),
        more=st.integers(0, 10**12),
        zone=st.sampled_from(("UTC", "Europe/Vienna", "Nowhere", "../../etc/passwd", "\x00", "")),
        manage=pages,
        unsubscribe=links,
        confirm=links,
    )


def message(
    address: str = "ann@example.org", kind: MessageKind = MessageKind.NOTIFICATIONS, **other: object
) -> Message:
    """An ordinary message with one notification."""
    item = Item(
        "n1", "s1", "Goals", 1.79e9, "A late goal", "https://news.example/1", "It was late.",
        "https://tidings.example/n/1", "e1",
    )  # fmt: skip
    fields: dict[str, object] = {
        "items": (item,) if kind is MessageKind.NOTIFICATIONS else (),
        "zone": "Europe/Vienna",
        "manage": "https://tidings.example/channels/c1",
        "unsubscribe": "https://tidings.example/channels/unsubscribe/s",
        "confirm": "https://tidings.example/channels/confirm/s",
        "title": "Morning",
        "secret": "",
        "id": "m1",
    } | other
    return Message(kind=kind, channel="c1", address=address, **fields)  # type: ignore[arg-type]
