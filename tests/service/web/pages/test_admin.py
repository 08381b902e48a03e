"""What whoever runs the service does on the pages, without a browser: tokens, sources, webhooks, definitions."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx

from tests.kinds.operators.test_learning import engine, events
from tests.service.conftest import Served
from tests.service.delivery.test_webhooks import Answer, receiving
from tests.service.ingest.test_feed_poller import Site, feed, until
from tests.service.web.pages.test_pages import HTML, JSON, token_of
from tidings.service.model import Delivery, Role
from tidings.storage import operator_feedback, versions


def form(visitor: httpx.Client, page: str, action: str, **fields: str) -> httpx.Response:
    csrf = token_of(visitor.get(page, headers=HTML))
    return visitor.post(action, data={"csrf": csrf, **fields}, headers=HTML, follow_redirects=True)


def test_an_admin_adds_and_revokes_tokens(guarded: Served) -> None:
    grant = guarded.service.access.grant
    with httpx.Client(base_url=guarded.url, headers=HTML) as visitor:
        wrong = form(visitor, "/login", "/login", token="tid_wrong")
        assert wrong.status_code == 401
        field = re.search(r"<input[^>]*id=.token.[^>]*>\s*<p[^>]*id=.token-error.[^>]*>([^<]*)", wrong.text)
        assert field is not None, "the error stands below its field"
        assert "not known" in field[1]
        form(visitor, "/login", "/login", token=grant("boss", Role.ADMIN)[1])
        page = form(visitor, "/tokens", "/tokens", name="the newsroom", role="subscriber").text
        assert "This secret is shown only once. Copy it now." in page
        secret = re.search(r"tid_[\w-]{43}", page)
        assert secret is not None
        assert secret[0] not in visitor.get("/tokens").text, "it is shown once"
        as_new = {"Authorization": f"Bearer {secret[0]}", **JSON}
        listed = {token["name"]: token for token in visitor.get("/tokens", headers=JSON).json()["tokens"]}
        assert listed["the newsroom"]["last_used"] is None
        assert guarded.http.get("/api/subscriptions", headers=as_new).status_code == 200
        assert guarded.http.get("/tokens", headers=as_new).status_code == 403
        listed = {token["name"]: token for token in visitor.get("/tokens", headers=JSON).json()["tokens"]}
        assert listed["the newsroom"]["last_used"] is not None
        assert listed["the newsroom"]["role"] == "subscriber"
        page = form(visitor, "/tokens", "/tokens/revoke", id=listed["the newsroom"]["id"]).text
        assert "is revoked" in page
        assert "Revoked tokens (1)" in page
        assert guarded.http.get("/api/subscriptions", headers=as_new).status_code == 401
        assert form(visitor, "/tokens", "/tokens", name=" ", role="subscriber").status_code == 422
        assert ">Log out<" in visitor.get("/").text


def test_an_open_service_offers_no_login(house: Served) -> None:
    page = house.http.get("/", headers=HTML).text
    assert 'href="/login"' not in page
    assert 'href="/tokens"' in page


def test_a_feed_is_fetched_at_once_removed_and_taken_back(house: Served) -> None:
    site, visitor = Site(), httpx.Client(base_url=house.url, timeout=20)
    url = site.url("/a")
    site.replies["/a"] = 200, {}, feed("1", "2")

    def source() -> dict[str, Any]:
        return house.http.get("/sources", headers=JSON).json()["sources"][0]

    form(visitor, "/sources", "/sources", url=url, title="")
    until(lambda: source()["items"] == 2)
    assert (source()["shown"], source()["new_items"]) == ("C", 2)
    site.replies["/a"] = 200, {}, feed("1", "2", "3")
    assert "is being fetched" in form(visitor, "/sources", "/sources/fetch", url=url).text
    until(lambda: source()["items"] == 3)
    assert form(visitor, "/sources", "/sources/fetch", url=url).status_code == 429
    assert (
        "interval was set" in form(visitor, "/sources", "/sources/interval", url=url, interval="3600.0").text
    )
    assert source()["interval"] == 3600
    assert source()["every"] == "1 hour"
    assert "choose one" in form(visitor, "/sources", "/sources/interval", url=url, interval="often").text
    assert form(visitor, "/sources", "/sources/interval", url=url, interval="5").status_code == 422
    page = form(visitor, "/sources", "/sources/remove", url=url)
    assert 'name="interval" value="3600.0"' in page.text, "an undo gives it back"
    assert "was removed" in page.text
    assert ">Undo<" in page.text
    assert source_count(house) == 0
    forged = visitor.get(
        "/sources", params={"removed": "http://evil.example/ x", "signed": "00"}, headers=HTML
    )
    assert "evil.example" not in forged.text
    form(visitor, "/sources", "/sources", url=url, title="")
    assert source()["items"] == 3, "what was taken before is known"
    site.replies["/b"] = 500, {}, b""
    other_host = site.url("/b").replace("127.0.0.1", "localhost")  # whose feeds wait for nobody
    form(visitor, "/sources", "/sources", url=other_host, title="Broken")
    until(lambda: "500" in house.http.get("/sources", headers=HTML).text)
    site.server.shutdown()
    site.server.server_close()
    visitor.close()


def source_count(served: Served) -> int:
    return len(served.http.get("/api/sources").json()["items"])


def test_a_webhook_is_tested_and_the_answer_is_shown(house: Served) -> None:
    with receiving() as receiver, httpx.Client(base_url=house.url, timeout=20) as visitor:
        made = house.subscribe(webhook=receiver.url)
        receiver.verify = lambda body, headers: json.loads(body)
        page, address = f"/subscriptions/{made['id']}", f"/subscriptions/{made['id']}/webhook-test"
        assert form(visitor, page, address).status_code == 403, "it takes the ticket"
        shown = form(visitor, page, address, ticket=made["ticket"]).text
        assert "The test delivery was accepted: the receiver answered 204 after" in shown
        assert "The test delivery" not in visitor.get(page, headers=HTML).text
        assert [message["type"] for message in receiver.taken] == ["tidings.test"]
        assert receiver.got[0][0]["webhook-signature"].startswith("v1,")
        receiver.answer = lambda: Answer(500)
        tested = house.http.post(
            f"/api/subscriptions/{made['id']}/webhook/test", headers={"Tidings-Ticket": made["ticket"]}
        ).json()
        assert (tested["delivered"], tested["status"]) == (False, 500)
        assert "500" in tested["error"]
        assert house.http.get(f"/api/subscriptions/{made['id']}").json()["webhook"]["failures"] == 0
        form(visitor, page, address, ticket=made["ticket"])
        assert form(visitor, page, address, ticket=made["ticket"]).status_code == 429
    bare = house.subscribe()
    answer = house.http.post(
        f"/api/subscriptions/{bare['id']}/webhook/test", headers={"Tidings-Ticket": bare["ticket"]}
    )
    assert answer.status_code == 409
    # As if the address had been allowed once.
    inside = Delivery(bare["id"], "http://10.0.0.1/", made["webhook_secret"], 0)
    house.service.registry.set_delivery(inside)
    answer = house.http.post(
        f"/api/subscriptions/{bare['id']}/webhook/test", headers={"Tidings-Ticket": bare["ticket"]}
    )
    assert answer.json()["delivered"] is False
    assert "10.0.0.1" in answer.json()["error"]


def test_definitions_say_what_the_service_knows(house: Served) -> None:
    root = house.service.settings.data / "index"
    worker = engine()
    worker.publish_many(events(0, 10))
    operator_feedback.record(root, "q", versions.current(root).base, 0, worker.learnt())
    page = house.http.get("/definitions", headers=HTML).text
    assert "often(place: str)" in page
    assert "Whether it happens often there." in page
    assert "measured over 10 calls" in page
    assert "given up after 1.5 s" in page
    data = house.http.get("/definitions", headers=JSON).json()
    assert data["tables"][0]["key"] == ["symbol"]
    assert [(network["name"], network["version"]["number"]) for network in data["networks"]] == [
        ("exchange", 1)
    ]
    assert data["classes"] > 10
    house.publish(
        {
            "type": "tidings.insert",
            "id": "1",
            "source": "t",
            "table": "stocks",
            "row": {"symbol": "A", "per": 5},
        }
    )
    until(lambda: house.http.get("/definitions/tables/stocks", headers=JSON).json()["total"] == 1)
    assert "<td>A</td>" in house.http.get("/definitions/tables/stocks", headers=HTML).text
    page = house.http.get("/definitions/networks/exchange", headers=HTML).text
    assert (
        page.count('<rect class="node"')
        == house.http.get("/definitions", headers=JSON).json()["networks"][0]["nodes"]
    )
    assert "style=" not in page
    assert house.http.get("/definitions/networks/exchange?around=nobody", headers=HTML).status_code == 200
    made = house.subscribe("WHERE topic = 'JOIN stocks' AND often('x') VIA exchange AT 'acme shoes'")
    named = house.http.get(f"/subscriptions/{made['id']}", headers=JSON).json()["refers_to"]
    assert [(one["kind"], one["name"]) for one in named] == [("network", "exchange"), ("operator", "often")]
    assert all(house.http.get(one["address"], headers=HTML).status_code == 200 for one in named)
    assert house.http.get("/definitions/networks/none", headers=HTML).status_code == 404


def test_the_status_offers_longer_times_and_words(house: Served) -> None:
    for window, ago in (("5m", "−5 min"), ("1h", "−60 min"), ("24h", "−24 h"), ("nonsense", "−5 min")):
        assert ago in house.http.get(f"/status?window={window}", headers=HTML).text
    assert house.http.get("/api/status?window=24h").json()["rates"]["bucket_seconds"] == 1_440
    page = house.http.get("/status", headers=HTML).text
    version = house.http.get("/api/status").json()["index_version"]
    count = len(
        (house.service.settings.data / "index" / f"{version.partition('+')[0]}.tail")
        .read_bytes()
        .splitlines()
    )
    assert f"with {count} changes since it was built" in page
    assert f'title="{version}"' in page


def test_the_description_of_the_api_has_every_operation(house: Served) -> None:
    page = house.http.get("/api", headers=HTML).text
    document = house.http.get("/openapi.json").json()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert f'<details id="{operation["operationId"]}">' in page
            assert f'data-send="{method.upper()}" data-path="{path}"' in page
    assert "http" not in "".join(re.findall(r'(?:src|href)="([^"]*)"', page)), (
        "nothing is loaded from elsewhere"
    )
