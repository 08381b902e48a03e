"""What relays save: how it is counted, and what the status page says of it."""

from __future__ import annotations

import re
from contextlib import ExitStack
from html import unescape
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.service.conftest import Running
from tests.service.relay.test_relay import connected, relay_of, until
from tidings.model.event import EVENT_SCHEMA, Event, to_table
from tidings.model.notification import NOTIFICATION_SCHEMA
from tidings.service.relay import upstream
from tidings.service.relay.copies import Copies, copies_of
from tidings.service.relay.relays_below import MOST, About, RelaysBelow

SUBSCRIPTIONS = ["s1", "s2", "relay-1", "(messages) x", None]
NOTIFICATIONS = st.lists(
    st.tuples(
        st.sampled_from(SUBSCRIPTIONS), st.integers(0, 5), st.lists(st.text("aé", max_size=9), max_size=2)
    )
)


def naive(rows: list[dict], events: list[Event]) -> Copies:
    sizes = {event.id: sum(len(_bytes(value)) for value in event.row().values()) for event in events}
    found = [row for row in rows if row["subscription"] and row["subscription"].startswith("s")]
    size = 0
    for row in found:
        texts = [len(change["row"].encode()) for change in row["changes"]]
        size += sum(texts) if texts else sizes.get(row["event"], 0)
    return Copies(len(found), size)


def _bytes(value: str | bytes | None) -> bytes:
    return value.encode() if isinstance(value, str) else value or b""


@examples(60)
@given(NOTIFICATIONS, st.lists(st.text("aé", max_size=9), max_size=5))
def test_copies_are_the_events_or_the_rows_of_each_notification(told: list, titles: list[str]) -> None:
    events = [
        Event("s", {"title": title}, str(id), data=title.encode() * id) for id, title in enumerate(titles)
    ]
    rows = [
        {
            "subscription": subscription,
            "source": "s",
            "event": str(id),
            "changes": [{"table": "t", "change": "+", "row": row} for row in texts],
        }
        for subscription, id, texts in told
    ]
    table = to_table(events) if events else EVENT_SCHEMA.empty_table()
    assert copies_of(pa.Table.from_pylist(rows, NOTIFICATION_SCHEMA), table) == naive(rows, events)


def test_what_a_relay_says_is_a_count_that_may_begin_anew() -> None:
    relays = RelaysBelow()

    def met(count: int, size: int) -> Copies:
        return relays.met("owner", "n1", About("north", "", Copies(count, size)))

    assert met(5, 50) == Copies()  # before this service was started
    assert met(7, 70) == Copies(2, 20)
    assert met(3, 30) == Copies(3, 30)  # the relay was started again
    relays.opened("owner", "n1", 1.0)
    assert [found.copies for found in relays.all()] == [Copies(5, 50)]
    for number in range(MOST + 5):
        relays.opened(f"another {number}", "n2", 1.0)
    assert len(relays.all()) == MOST


def test_a_link_that_saves_nothing_is_shown_as_it_is(tmp_path: Path) -> None:
    """A relay with a single subscriber is sent more than the events: rows, marks, filters' names."""
    with Running(data=tmp_path / "centre") as centre:
        with relay_of(centre, data=tmp_path / "relay") as relay:
            until(lambda: connected(relay))
            (state,) = relay.service.upstream.states
            state.bytes, state.copies = 2_444, Copies(1, 100)
            page = relay.http.get("/status?part=links", headers={"Accept": "text/html"}).text
        share = re.search(r"([0-9,.]+)%</span>", page)
        assert share is not None
        assert float(share[1].replace(",", "")) >= 2_444  # a mark may have come meanwhile
        assert 'width="100.0"' in page


def test_the_status_page_names_relays_and_shows_what_they_save(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(upstream, "HELLO_EVERY", 0.1)
    with ExitStack() as stack:
        centre = stack.enter_context(Running(data=tmp_path / "centre"))
        north = stack.enter_context(relay_of(centre, data=tmp_path / "north", name="north <1>"))
        until(lambda: connected(north))
        harbour = stack.enter_context(relay_of(north, data=tmp_path / "harbour"))
        until(lambda: connected(harbour))
        for relay in (north, harbour, harbour):
            relay.subscribe("WHERE topic = 'sport'")
        for number in range(4):
            centre.publish({"id": str(number), "source": "s", "topic": "sport", "text": "long " * 1_000})
        (state,) = north.service.upstream.states
        until(lambda: state.copies.notifications == 12)
        until(lambda: centre.service.downstream.relays.all()[0].copies == state.copies)
        assert 12 * 5_000 < state.copies.bytes < 12 * 5_200
        page = unescape(centre.http.get("/status", headers={"Accept": "text/html"}).text)
        assert "north <1>" in page
        assert f'href="{north.url}/status"' in page
        assert "12 notifications" in page
        assert "without relays each of the 12 notifications would have crossed by itself, " in page
        part = unescape(north.http.get("/status?part=links", headers={"Accept": "text/html"}).text)
        assert centre.url.removeprefix("http://") in part
        assert harbour.url.removeprefix("http://") in part
        metrics = centre.service.metrics.text().decode()
        assert f'tidings_link_copies_total{{direction="down",link="{north.service.id}"}} 12.0' in metrics
    centre_relays = centre.service.downstream.relays.all()
    assert [relay.links for relay in centre_relays] == [0]
