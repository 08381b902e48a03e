"""Tags of subscriptions: given, changed, found by, and exported; and those of a registry from before there were any."""

from __future__ import annotations

from sqlalchemy import text

from tests.service.conftest import Served
from tests.service.store.batches import subscription
from tidings.client import Client
from tidings.service.settings import Settings
from tidings.service.store.database import open_database, open_registry


def tagged(served: Served, tag: str) -> list[str]:
    items = served.http.get("/api/subscriptions", params={"tag": tag}).json()["items"]
    return [item["title"] for item in items]


def test_tags_over_http_and_by_the_client(served: Served) -> None:
    begun = served.subscribe("WHERE a = 1", title="One", tags=["Sport", "cheap", "sport"])
    assert begun["tags"] == ["sport", "cheap"]
    with Client(served.url) as client:
        two = client.subscribe("WHERE a = 2", title="Two", tags=["sportive"])
        assert two.tags == ["sportive"]
        assert tagged(served, "SPORT") == ["One"]  # not a part of a tag
        edited = client.edit(two, tags=["sport"])
        assert edited.tags == client.subscription(two.id).tags == ["sport"]
        assert client.edit(two, title="Second").tags == ["sport"]
        assert [found.title for found in client.subscriptions(tag="sport")] == ["Second", "One"]
        lines = [line for line in client.export() if line["tags"]]
        assert {line["title"]: line["tags"] for line in lines} == {"One": begun["tags"], "Second": ["sport"]}
        (again,) = client.subscribe_many([next(line for line in lines if line["title"] == "One")])
        assert again.id is not None
        assert client.subscription(again.id).tags == ["sport", "cheap"]
        assert client.edit(two, tags=[]).tags == []
    for wrong in (["two words"], ["a,b"], [""], ["x" * 51], [f"t{n}" for n in range(21)], "sport", ["a\n"]):
        answer = served.http.post("/api/subscriptions", json={"text": "WHERE a = 1", "tags": wrong})
        assert answer.status_code == 422, wrong
        if wrong == ["two words"]:
            assert "leave out blanks" in answer.json()["detail"]


def test_a_registry_from_before_tags_is_taken_over(tmp_path) -> None:
    settings = Settings(tmp_path)
    database = open_database(settings, "registry", new=True)
    old = "INSERT INTO subscriptions (id, text, title, owner, ticket, feed, created, state, public, warned, revision, folded)"
    with database.writing() as connection:
        database.create(connection, "0004")
        connection.execute(
            text(f"{old} VALUES ('a', 'WHERE a = 1', 'A', '', 't', 'f', 1, 'active', 0, 0, 1, 'a')")
        )
    database.close()
    opened = open_registry(settings)
    found = opened.find("a")
    assert found is not None
    assert found.tags == ()
    opened.add(subscription("b", tags=("new",)))
    assert [found.id for found in opened.page(owner=None, tag="new")] == ["b"]
    assert len(opened.page(owner=None)) == 2
    opened.close()
