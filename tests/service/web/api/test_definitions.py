"""What subscriptions refer to is changed while the service runs: versioned, checked, used at once, kept over restarts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.conftest import Running, Served
from tidings import Client, Event, Network
from tidings.service.model import Role
from tidings.storage import versions

EX = "http://example.org/"
CHESS = f"@prefix : <{EX}> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . :Chess rdfs:subClassOf :Game ."
GAMES = CHESS + " :Go rdfs:subClassOf :Game ."
ROWS = {"edges": [{"source": "publisher", "target": "reader", "where": "topic = 'oil'"}]}
TURTLE = {"Content-Type": "text/turtle"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Running(data=tmp_path_factory.mktemp("data")) as served:
        yield served


def graph(id: str, kind: str) -> dict[str, Any]:
    data = f"<urn:{id}> a <{EX}{kind}> ."
    return {
        "specversion": "1.0", "id": id, "source": "s", "type": "t", "datacontenttype": "text/turtle", "data": data,
    }  # fmt: skip


def done(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    return answer.json()


def state(served: Served, made: dict[str, Any]) -> str:
    return str(done(served.http.get(f"/api/subscriptions/{made['id']}"))["state"])


def told(served: Served, made: dict[str, Any], count: int) -> list[str]:
    items = served.notifications(made["id"], count)
    return [item["event"]["id"] for item in items if item["event"] is not None]


def test_a_taxonomy_is_used_from_the_answer_on(served: Served) -> None:
    games = served.subscribe(f"WHERE (?x, rdf:type, ?t) AND ?t ISA <{EX}Game>")
    served.publish(graph("before", "Go"))
    assert served.http.get("/api/taxonomy").headers["ETag"] == '"0"'
    first = done(served.http.put("/api/taxonomy", content=CHESS, headers=TURTLE))
    assert (first["version"], first["kind"], first["origin"]) == (1, "taxonomy", "request")
    served.publish(graph("chess", "Chess"), graph("go", "Go"))
    assert told(served, games, 1) == ["chess"]
    second = served.http.put("/api/taxonomy", content=GAMES, headers={**TURTLE, "If-Match": '"1"'})
    assert (done(second)["version"], second.headers["ETag"]) == (2, '"2"')
    served.publish(graph("go-again", "Go"))
    assert told(served, games, 2) == ["go-again", "chess"]
    answer = served.http.get("/api/taxonomy")
    assert (answer.json()["classes"], answer.json()["version"], answer.headers["ETag"]) == (3, 2, '"2"')
    notification = served.notifications(games["id"], 2)[0]
    why = done(served.http.get(f"/api/subscriptions/{games['id']}/notifications/{notification['id']}/why"))
    current = str(versions.current(served.service.index_writer.root))
    assert (why["verdict"], why["versions"]["taxonomy"], why["versions"]["index"]) == ("match", 2, current)
    assert why["text"].endswith(f"by index {current}, taxonomy version 2")
    page = served.http.get(f"/subscriptions/{games['id']}/notifications/{notification['id']}").text
    assert re.search(r"Explained just now.*index .*taxonomy version 2", page)


def test_prefixes_make_subscriptions_possible_and_impossible(served: Served) -> None:
    text = "WHERE (?x, pre:topic, 'oil')"
    assert served.http.post("/api/subscriptions", json={"text": text}).status_code == 422
    assert done(served.http.put("/api/prefixes", json={"pre": EX}))["version"] == 1
    made = served.subscribe(text)
    assert done(served.http.get("/api/prefixes")) == {"version": 1, "prefixes": {"pre": EX}}
    done(served.http.put("/api/prefixes", json={}))
    assert state(served, made) == "unanswerable"
    assert served.http.post("/api/check", json={"text": text}).json()["ok"] is False
    answer = served.http.put("/api/prefixes", json={"pre": EX})
    assert (done(answer)["version"], state(served, made)) == (3, "active")
    kinds = [item["kind"] for item in served.notifications(made["id"], 2)]
    assert kinds == ["answerable", "unanswerable"]
    event = graph("oil", "x") | {"data": f"<urn:x> <{EX}topic> 'oil' ."}
    served.publish(event)
    assert told(served, made, 3) == ["oil"]


def test_a_network_is_added_changed_and_replaced(served: Served) -> None:
    assert done(served.http.put("/api/networks/exchange", json=ROWS))["version"] == 1
    reader = served.subscribe("WHERE size > 0 VIA exchange AT 'reader'")

    def publish(id: str, topic: str) -> None:
        served.publish({"id": id, "source": "publisher", "topic": topic, "size": 1})

    publish("gas 1", "gas")
    publish("oil 1", "oil")
    assert told(served, reader, 1) == ["oil 1"]
    base = versions.current(served.service.index_writer.root).base
    change = {"action": "set_where", "arguments": [["publisher", "reader"], "topic = 'gas'"]}
    changed = served.http.patch("/api/networks/exchange", json={"changes": [change]})
    assert (done(changed)["version"], changed.json()["origin"]) == (2, "change")
    assert versions.current(served.service.index_writer.root).base == base  # at the end of the tail
    publish("oil 2", "oil")
    publish("gas 2", "gas")
    assert told(served, reader, 2) == ["gas 2", "oil 1"]
    found = served.http.get("/api/networks/exchange")
    edge = {"source": "publisher", "target": "reader", "where": "topic = 'gas'"}
    assert found.headers["ETag"] == '"2"'
    assert done(found)["edges"] == [edge]
    rows = {"nodes": found.json()["nodes"], "edges": [edge | {"cost": 2}]}
    done(served.http.put("/api/networks/exchange", json=rows))
    assert done(served.http.get("/api/networks/exchange"))["edges"] == [edge | {"cost": 2}]

    removal = {"changes": [{"action": "remove_node", "arguments": ["reader"]}]}
    done(served.http.patch("/api/networks/exchange", json=removal))
    assert state(served, reader) == "unanswerable"
    back = [
        {"action": "add_node", "arguments": ["reader"]},
        {"action": "add_edge", "arguments": ["publisher", "reader", None, 1.5]},
    ]
    assert done(served.http.patch("/api/networks/exchange", json={"changes": back}))["version"] == 5
    assert state(served, reader) == "active"
    served.service.index_writer.wait_for(served.service.registry.last_change())
    publish("oil 3", "oil")
    assert told(served, reader, 5) == ["oil 3", "gas 2", "oil 1"]
    items = done(served.http.get("/api/networks"))["items"]
    assert [(item["name"], item["version"]) for item in items] == [("exchange", 5)]


@pytest.mark.parametrize(
    ("method", "path", "sent", "status", "said"),
    [
        ("PUT", "/api/taxonomy", {"content": "<a", "headers": TURTLE}, 422, "the taxonomy is"),
        ("PUT", "/api/taxonomy", {"content": b"\xff", "headers": TURTLE}, 422, "the taxonomy is"),
        ("PUT", "/api/taxonomy", {"content": b" \n", "headers": TURTLE}, 400, "the body is empty"),
        ("PUT", "/api/taxonomy", {"content": CHESS, "headers": {"Content-Type": "text/csv"}}, 415, "is RDF"),
        (
            "PUT", "/api/taxonomy",
            {"content": GAMES + " :Game rdfs:subClassOf :Go .", "headers": TURTLE}, 422, "Go",
        ),
        ("PUT", "/api/taxonomy", {"content": CHESS, "headers": {**TURTLE, "If-Match": '"77"'}}, 412, "77"),
        ("PUT", "/api/taxonomy", {"content": CHESS, "headers": {**TURTLE, "If-Match": "x"}}, 412, "ETag"),
        ("PUT", "/api/prefixes", {"json": {"a b": EX}}, 422, "'a b' is no prefix"),
        ("PUT", "/api/prefixes", {"json": {"ex": "no iri"}}, 422, "'no iri', which is no IRI"),
        ("PUT", "/api/prefixes", {"json": {"ex": 5}}, 422, "ex"),
        ("PUT", "/api/networks/a%20b", {"json": ROWS}, 404, "not-found"),
        ("PUT", "/api/networks/x", {"json": {"edges": [{"source": "a"}]}}, 422, "target"),
        (
            "PUT", "/api/networks/x",
            {"json": {"nodes": [{"id": "a"}], "edges": [{"source": "a", "target": "b"}]}}, 422,
            "edges[0]: the edge's target 'b' is no node",
        ),
        (
            "PUT", "/api/networks/x",
            {"json": {"edges": [{"source": "a", "target": "b", "where": "topic ="}]}}, 422, "edges[0]",
        ),
        ("PATCH", "/api/networks/nowhere", {"json": {"changes": [{"action": "add_node", "arguments": ["a"]}]}}, 404,
         "there is no network 'nowhere'"),
        ("PATCH", "/api/networks/kept", {"json": {"changes": []}}, 422, "changes"),
        ("PATCH", "/api/networks/kept", {"json": {"changes": [{"action": "explode", "arguments": ["a"]}]}}, 422, "action"),
        (
            "PATCH", "/api/networks/kept",
            {"json": {"changes": [
                {"action": "add_node", "arguments": ["new"]},
                {"action": "add_edge", "arguments": ["new", "nobody"]},
            ]}}, 422, "nobody",
        ),
        ("PATCH", "/api/networks/kept", {"json": {"changes": [{"action": "add_edge", "arguments": ["a"]}]}}, 422, "add_edge"),
        ("PATCH", "/api/networks/kept", {"json": {"changes": [{"action": "add_node", "arguments": [5.0]}]}}, 422, "5"),
        ("PATCH", "/api/networks/kept", {"json": {"changes": [{"action": "remove_node", "arguments": ["nobody"]}]}}, 422, "nobody"),
        ("PATCH", "/api/networks/kept", {"json": {"changes": [{"action": "set_where", "arguments": [["a"], "x = 1"]}]}}, 422, ""),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_and_changes_nothing(
    served: Served, method: str, path: str, sent: dict[str, Any], status: int, said: str
) -> None:
    if served.http.get("/api/networks/kept").status_code == 404:
        done(served.http.put("/api/networks/kept", json={"edges": [{"source": "a", "target": "b"}]}))
    before = done(served.http.get("/api/definitions")), done(served.http.get("/api/networks/kept"))
    answer = served.http.request(method, path, **sent)
    assert answer.status_code == status, answer.text
    assert said in answer.text
    assert before == (
        done(served.http.get("/api/definitions")),
        done(served.http.get("/api/networks/kept")),
    )


def test_only_an_admin_changes_definitions(guarded: Served) -> None:
    def headers(role: Role) -> dict[str, str]:
        return {"Authorization": f"Bearer {guarded.service.access.grant('somebody', role)[1]}"}

    subscriber, admin = headers(Role.SUBSCRIBER), headers(Role.ADMIN)
    for method, path in (
        ("PUT", "/api/prefixes"), ("PUT", "/api/networks/n"), ("PATCH", "/api/networks/n"), ("PUT", "/api/taxonomy"),
    ):  # fmt: skip
        sent: dict[str, Any] = {"changes": [{"action": "add_node", "arguments": ["a"]}]}
        sent = sent if method == "PATCH" else {"edges": []} if "networks" in path else {"ex": EX}
        assert guarded.http.request(method, path, json=sent).status_code == 401
        assert guarded.http.request(method, path, json=sent, headers=subscriber).status_code == 403
    answer = done(guarded.http.put("/api/prefixes", json={"ex": EX}, headers=admin))
    assert answer["author"] == "somebody"
    assert guarded.http.get("/api/prefixes", headers=subscriber).json()["version"] == 1


def test_what_was_sent_stays_until_other_files_are_given(
    running: Callable[..., Running], tmp_path: Path
) -> None:
    file, edges = tmp_path / "taxonomy.ttl", tmp_path / "edges.csv"
    file.write_text(CHESS)
    edges.write_text("source,target\npublisher,reader\n")
    given: dict[str, Any] = {"taxonomy": file, "networks": {"exchange": edges}, "prefixes": {"ex": EX}}

    def found(served: Served) -> dict[str, int]:
        items = done(served.http.get("/api/definitions"))["items"]
        return {item["name"] or item["kind"]: item["version"] for item in items}

    with running(**given) as served:
        assert found(served) == {"taxonomy": 1, "exchange": 1, "prefixes": 1}
        done(served.http.put("/api/taxonomy", content=GAMES, headers=TURTLE))
        second = [
            {"action": "add_node", "arguments": ["second"]},
            {"action": "add_edge", "arguments": ["publisher", "second"]},
        ]
        done(served.http.patch("/api/networks/exchange", json={"changes": second}))
        made = served.subscribe("WHERE topic = 'oil' VIA exchange AT 'second'")
        base = versions.current(served.service.index_writer.root).base
    with running(**given) as served:
        assert found(served) == {"taxonomy": 2, "exchange": 2, "prefixes": 1}
        assert versions.current(served.service.index_writer.root).base == base  # as it was built
        assert served.http.get("/api/taxonomy").json()["classes"] == 3
        served.publish({"id": "1", "source": "publisher", "topic": "oil"})
        assert told(served, made, 1) == ["1"]
    edges.write_text("source,target\npublisher,reader\npublisher,other\n")
    with running(**given | {"prefixes": {}}) as served:
        assert found(served) == {"taxonomy": 2, "exchange": 3}
        assert state(served, made) == "unanswerable"
    with running() as served:  # the taxonomy was sent; it needs no file
        assert found(served) == {"taxonomy": 2}
        assert served.http.get("/api/taxonomy").json()["classes"] == 3


def test_notifications_have_the_cost_of_the_cheapest_path(served: Served) -> None:
    network = Network()
    network.add_node("p")
    network.add_node("dear", cost=5)
    network.add_node("cheap", "topic = 'a'", cost=1.25)
    for middle in ("dear", "cheap"):
        network.add_edge("p", middle)
    network.add_node("n")
    network.add_edge("dear", "n")
    network.add_edge("cheap", "n", cost=0.25)
    with Client(served.url) as client:
        client.set_network("priced", network)
        mine = client.subscribe("WHERE x = 1 VIA priced AT 'n'")
        client.publish(Event("p", {"x": 1, "topic": "a"}))
        notification = next(client.listen(mine, after=0))
    assert (notification.cost, notification.bindings) == (1.5, {"priced.cost": "1.5"})
