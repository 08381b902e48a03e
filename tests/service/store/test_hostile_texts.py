"""Whatever a text holds, both stores take it, keep it apart from their language, and give the same back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import inspect

from tests.service.store.batches import batch, event, notification_row, subscription
from tests.service.store.conftest import Stores
from tidings.errors import TidingsError
from tidings.service.model import Delivery, Notice, NotificationKind, Role, Source, State, Token
from tidings.service.store.tables import clean

TEXTS = [
    "'; DROP TABLE subscriptions; --",
    '"; DELETE FROM notifications; --',
    "x' OR '1'='1",
    "') ON CONFLICT DO NOTHING; DROP TABLE events CASCADE; --",
    "%s %(x)s :name ? $1 {0} %",
    "\\' \\\\ \\N \\. \t\r\n",
    "\\.",
    "a\0b",
    "half \ud83d and \udc00",
    "\u202e\ufeff\U0010ffff",
    "x" * 200_000,
    "",
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_every_field_takes_every_text(stores: Stores, text: str) -> None:
    registry, mailbox, kept = stores.registry, stores.mailbox, clean(text)
    name = text[:1_000]  # of what is looked up
    names = set(inspect(registry._database._writers).get_table_names())
    given = replace(
        subscription("a"), id=name + "!", text=text, title=text, owner=name, ticket=text, feed=name
    )
    registry.add(given)
    found = registry.find(name + "!")
    assert (found.text, found.title, found.owner, found.feed) == (kept, kept, clean(name), clean(name))
    assert registry.by_feed(name) == found
    assert registry.by_feed(text + "?") is registry.find(text + "?") is None
    assert registry.page(owner=name, search=text) == [found]
    assert registry.page(owner=name, after=text) == []
    assert registry.counts(name)[State.ACTIVE] == 1
    assert registry.update(replace(found, title=text, text=text + "2")) == 2
    assert registry.changes()[1].text == kept + "2"
    assert list(registry.active()) == [(clean(name) + "!", kept + "2")]
    registry.add_token(Token(name, text, Role.ADMIN, name, 1.0))
    assert registry.token(name).name == kept
    assert registry.end_token(name, 2.0)
    assert registry.add_source(Source(name, text, name, 1.0))
    assert not registry.add_source(Source(name, "other", name, 1.0))
    assert registry.remove_source(name)
    delivery = Delivery(name, text, text, 0, error=text, disabled=text)
    registry.set_delivery(delivery)
    assert registry.move_deliveries([replace(delivery, cursor=3)]) == 1
    assert registry.delivery(name).cursor == 3
    registry.remove_delivery(name)

    mailbox.notify([Notice(name, NotificationKind.MISSED, name, 1.0, text)])
    assert mailbox.find(name, name).message == kept
    in_arrow = text.encode(errors="replace").decode()
    kept = clean(in_arrow)
    who = in_arrow[:1_000]
    rows = [
        notification_row(
            who,
            in_arrow + "!",
            source=in_arrow,
            message=in_arrow,
            part=in_arrow,
            bindings=[(in_arrow, in_arrow)],
        ),
        notification_row(None, in_arrow, source=in_arrow, message=in_arrow, verdict="error"),
    ]
    about = event(
        in_arrow + "!", source=in_arrow, type=in_arrow, time=in_arrow, attributes={text: text}, data=b"\0"
    )
    given = batch(0, rows, [about], query=who, version=in_arrow)
    assert mailbox.record(*given)
    found = mailbox.page([who], limit=1)[0]
    assert (found.message, found.part, found.event.source, found.event.type) == (kept,) * 4
    assert found.bindings == {in_arrow: in_arrow}
    assert found.event.attributes == {text: text}
    assert found in mailbox.page([who, "other"])
    assert mailbox.faults()[0].message == kept
    assert clean(who) in mailbox.reached()
    assert not mailbox.record(*given)
    assert set(inspect(registry._database._writers).get_table_names()) == names


def test_a_feed_with_an_endless_address_is_refused(stores: Stores) -> None:
    with pytest.raises(TidingsError, match="at most 2,000"):
        stores.registry.add_source(Source("http://" + "ä" * 1_000, "", "", 1.0))


def test_events_whose_names_share_characters_are_kept_apart(stores: Stores) -> None:
    pairs = [("a", "bc"), ("ab", "c"), ("a\0", "b"), ("a", "\0b"), ("", "abc"), ("1:a", "bc")]
    rows = [notification_row("s", id, source=source) for source, id in pairs]
    stores.mailbox.record(
        *batch(0, rows, [event(id, source=source, data=f"{source}|{id}".encode()) for source, id in pairs])
    )
    found = stores.mailbox.page(["s"], after=0)
    assert [one.event.data for one in found] == [f"{source}|{id}".encode() for source, id in pairs]
    assert len({one.id for one in found}) == len(pairs)
