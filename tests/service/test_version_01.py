"""A data folder that version 0.1 has written: the service goes on with it."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path

from tests.service.conftest import Running

ARCHIVE = Path(__file__).parents[1] / "fixtures" / "version-0.1.tar.gz"


def test_a_service_goes_on_with_its_data(tmp_path: Path, running: Callable[..., Running]) -> None:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    folder = tmp_path / "version-0.1"
    made = json.loads((folder / "data.json").read_text())
    base = (folder / "data" / "index" / "CURRENT").read_text()
    with running(data=folder / "data") as served:
        served.stream._batch = 1_000  # those before are in the mailbox
        items = served.http.get("/api/subscriptions").json()["items"]
        assert {item["id"]: item["text"] for item in items} == {
            made["ids"][name]: text for name, text in made["texts"].items()
        }
        for id in made["ids"].values():
            served.notifications(id, 1)
        again = served.publish({"id": "1", "source": "s", "topic": "sport", "age": 18, "size": 5})
        assert again["duplicates"] == 1
        served.publish(
            {"id": "3", "source": "s", "topic": "sport", "age": 20, "size": 5},
            {"id": "4", "source": "s", "topic": "chess", "age": 1, "size": 1},
        )
        turtle = '<urn:i> <http://purl.org/rss/1.0/title> "other news" .'
        envelope = {"specversion": "1.0", "id": "5", "source": "s", "type": "t", "topic": "news"}
        served.publish({**envelope, "datacontenttype": "text/turtle", "data": turtle})
        for id in made["ids"].values():
            served.notifications(id, 2)
        new = served.subscribe("WHERE topic = 'new'")
        served.publish({"id": "6", "source": "s", "topic": "new"})
        served.notifications(new["id"], 1)
    assert (folder / "data" / "index" / "CURRENT").read_text() == base  # it was opened, not built anew
