"""One service follows the feed of another by WebSub: an event here is an event there, without polling."""

from __future__ import annotations

import time

import pytest

from tests.service.conftest import Served
from tests.service.websub.callbacks import until
from tests.service.websub.conftest import new_feed, source_of


@pytest.mark.parametrize("format", ["atom", "rss", "rdf", "json"])
def test_an_event_of_one_service_is_pushed_into_the_log_of_another(
    pushing: Served, following: Served, format: str
) -> None:
    topic, word = new_feed(pushing, format)
    assert following.http.post("/api/sources", json={"url": topic}).status_code == 201
    until(lambda: (source_of(following, topic) or {}).get("hub"))
    until(lambda: not following.service.feed_poller._wanted.qsize())
    source = source_of(following, topic)
    assert source is not None
    assert source["hub"] == f"{pushing.url}/websub"
    assert source["pushed_until"] > source["added"]
    until(lambda: _due_in(following, topic) > 3_600)  # the fetch after the verification is over
    fetched = (source_of(following, topic) or {})["fetched"]

    pushing.publish({"source": "s", "id": f"{word}-1", "topic": word, "title": f"The news of {word}"})
    log = following.service.log_writer.recent
    until(lambda: any(event.source == topic for event in log.events()))
    pushing.publish({"source": "s", "id": f"{word}-2", "topic": word, "title": f"More of {word}"})
    until(lambda: sum(event.source == topic for event in log.events()) == 2)
    time.sleep(0.1)
    assert sum(event.source == topic for event in log.events()) == 2, "the first one came in both pushes"
    after = source_of(following, topic)
    assert after is not None
    assert (after["items"], after["fetched"]) == (2, fetched)
    assert after["pushed"] is not None

    assert following.http.delete("/api/sources", params={"url": topic}).status_code == 204
    until(
        lambda: (
            not pushing.service.websub_hub._store.counts(topic.split("/")[-1].split(".")[0], "", time.time())[
                0
            ]
        )
    )


def _due_in(served: Served, url: str) -> float:
    health = served.service.feed_poller.health([served.service.registry.source(url)])  # type: ignore[list-item]
    return (health[0].due or 0.0) - time.time()
