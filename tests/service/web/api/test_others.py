"""Feeds out, sources, questions, tokens, health and XML-RPC over HTTP: what each is for, and what hostile requests get."""

from __future__ import annotations

import html
import re
import xmlrpc.client

import feedparser
import pytest
from click.testing import CliRunner

from tests.service.conftest import Served
from tidings import Client
from tidings.cli import main
from tidings.client import ServiceError
from tidings.service.model import Role
from tidings.service.web.api import models

PROBLEM = "application/problem+json"


# Feeds


def test_a_feed_and_its_second_poll(served: Served) -> None:
    one = served.subscribe("WHERE topic = 'feed'", title="Of <feeds> & more")
    served.publish({"id": "f1", "source": "a", "topic": "feed", "title": "<script>alert(1)</script>"})
    served.notifications(one["id"])
    ids = set()
    for form, url in one["feeds"].items():
        answer = served.http.get(url)
        assert answer.status_code == 200
        assert "no-cache" in answer.headers["cache-control"]
        if form != "json_feed":  # where a title is plain text, and no markup
            assert b"<script>" not in answer.content
        again = served.http.get(url, headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == answer.headers["etag"]
        head = served.http.head(url)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["etag"] == answer.headers["etag"]
        if form != "json_feed":
            parsed = feedparser.parse(answer.content)
            assert not parsed.bozo
            ids.add(parsed.entries[0].id)
    assert len(ids - {""}) == 1 or len(ids) == 2  # RSS 1.0 has the address of the item as its id


def test_a_feed_is_secret_unless_it_is_public(served: Served) -> None:
    secret, public = served.subscribe(), served.subscribe(public=True)
    assert served.http.get(f"/feeds/{secret['id']}.atom").status_code == 404
    assert served.http.get(f"/feeds/{public['id']}.atom").status_code == 200
    for wrong in ("none", "%00", "a.b", "..%2fetc", "x" * 400):
        answer = served.http.get(f"/feeds/{wrong}.atom")
        assert answer.status_code == 404
        assert answer.headers["content-type"] == PROBLEM
    assert served.http.get(secret["feeds"]["atom"].replace(".atom", ".exe")).status_code == 404


def test_a_feed_has_pages(served: Served) -> None:
    one = served.subscribe("WHERE topic = 'long feed'")
    served.publish(*({"id": str(n), "source": "long", "topic": "long feed"} for n in range(60)))
    assert served.http.get(f"/api/subscriptions/{one['id']}").status_code == 200
    while len(served.http.get(f"/api/subscriptions/{one['id']}/notifications?limit=60").json()["items"]) < 60:
        pass
    first = served.http.get(one["feeds"]["atom"])
    second = served.http.get(first.links["next"]["url"])
    found = [entry.id for answer in (first, second) for entry in feedparser.parse(answer.content).entries]
    assert len(found) == len(set(found)) == 60


def test_the_feed_of_a_cancelled_one_is_gone(served: Served) -> None:
    one = served.subscribe()
    served.http.delete(f"/api/subscriptions/{one['id']}", headers={"Tidings-Ticket": one["ticket"]})
    assert served.http.get(one["feeds"]["rss2"]).status_code == 410


# Sources


def test_followed_listed_exported_unfollowed(served: Served) -> None:
    url = "https://feeds.example.org/a.xml"
    assert served.http.post("/api/sources", json={"url": url, "title": "A"}).status_code == 201
    assert served.http.post("/api/sources", json={"url": url}).status_code == 200
    listed = models.SourcePage.model_validate(served.http.get("/api/sources").json())
    assert url in {one.url for one in listed.items}
    opml = served.http.get("/api/sources.opml")
    assert url in opml.text
    assert served.http.delete("/api/sources", params={"url": url}).status_code == 204
    assert served.http.delete("/api/sources", params={"url": url}).status_code == 404
    imported = served.http.post(
        "/api/sources/opml", content=opml.content, headers={"content-type": "text/x-opml"}
    )
    assert imported.json() == {"added": 1, "known": 0, "refused": []}
    served.http.delete("/api/sources", params={"url": url})


def test_an_interval_is_set_and_changed_over_http_python_and_the_command_line(served: Served) -> None:
    url, client = "https://feeds.example.org/own.xml", Client(served.url)
    assert client.follow(url, title="Own", interval=3600).interval == 3600
    assert client.follow(url, interval=60).interval == 3600, "it is followed already"
    assert client.change_source(url, interval=600).interval == 600
    assert client.change_source(url, title="Our").interval == 600
    assert client.change_source(url, interval="default").interval is None
    assert next(one for one in client.sources() if one.url == url).title == "Our"
    for wrong in (59, 604_801, 0, -1, "x"):
        for method, sent in (("PATCH", {}), ("POST", {"url": f"{url}?new"})):
            answer = served.http.request(
                method, "/api/sources", params={"url": url}, json={**sent, "interval": wrong}
            )
            assert answer.status_code == 422, (method, wrong)
    runner = CliRunner()
    for arguments, said in (
        (["change", url, "--every", "7200"], f"{url} (Our), every 7,200 seconds"),
        (["list"], "every 7,200 seconds"),
        (["follow", url, "--every", "60"], "It is followed already"),
        (["change", url, "--default"], f"{url} (Our)"),
        (["unfollow", url], "is not followed any more"),
    ):
        done = runner.invoke(main, ["sources", *arguments, "--service", served.url])
        assert said in done.output, done.output
        assert "every" not in done.output or "--default" not in arguments
    refused = runner.invoke(main, ["sources", "change", url, "--every", "60", "--service", served.url])
    assert refused.exit_code == 1
    assert "no feed is followed at this address" in refused.output


def test_a_source_is_changed_by_who_follows_it(guarded: Served) -> None:
    url, access = "https://feeds.example.org/whose.xml", guarded.service.access
    mine, other = (Client(guarded.url, access.grant(name, Role.PUBLISHER)[1]) for name in ("me", "other"))
    mine.follow(url)
    with pytest.raises(ServiceError, match="followed for somebody else"):
        other.change_source(url, interval=60)
    assert mine.change_source(url, interval=60).interval == 60
    admin = Client(guarded.url, access.grant("a", Role.ADMIN)[1])
    assert admin.change_source(url, interval=90).interval == 90
    mine.unfollow(url)


def test_sources_come_in_pages(guarded: Served) -> None:
    _, secret = guarded.service.access.grant("reader", Role.PUBLISHER)
    mine = {"Authorization": f"Bearer {secret}"}
    urls = [f"https://pages.example/{number}?a=b&c=é" for number in range(7)]
    for url in urls:
        assert guarded.http.post("/api/sources", json={"url": url}, headers=mine).status_code == 201
    seen, address = [], "/api/sources?limit=3"
    while address:
        answer = guarded.http.get(address, headers=mine)
        page = models.SourcePage.model_validate(answer.json())
        seen += [one.url for one in page.items]
        if len(seen) == 3:  # what is left meanwhile moves nothing
            assert (
                guarded.http.delete("/api/sources", params={"url": seen[-1]}, headers=mine).status_code == 204
            )
        address = answer.links.get("next", {}).get("url", "")
        assert (address == "") == (page.next is None)
    assert seen == urls
    for cursor in ("x", "MQ", "é", "bm9uZSBhdCBhbGw=", "", "a" * 5_000):
        assert guarded.http.get("/api/sources", params={"cursor": cursor}, headers=mine).status_code == 422
    html = {**mine, "Accept": "text/html"}
    assert "More feeds" not in guarded.http.get("/sources", headers=html).text
    for url in urls:
        guarded.http.delete("/api/sources", params={"url": url}, headers=mine)


def test_the_page_of_sources_has_pages(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidings.service.web.pages import sources

    monkeypatch.setattr(sources, "LISTED", 2)
    urls = [f"https://listed.example/{number}" for number in range(3)]
    for url in urls:
        served.http.post("/api/sources", json={"url": url})
    seen, address = "", "/sources"
    while address:
        text = served.http.get(address, headers={"Accept": "text/html"}).text
        seen += text
        found = re.search(r'href="(\?after=[^"]+)"', text)
        address = f"/sources{html.unescape(found[1])}" if found else ""
    assert all(seen.count(f'href="{url}"') == 1 for url in urls)
    for url in urls:
        served.http.delete("/api/sources", params={"url": url})


def test_a_token_follows_no_more_feeds_than_its_quota(guarded: Served) -> None:
    _, secret = guarded.service.access.grant("few", Role.PUBLISHER, sources=2)
    mine = {"Authorization": f"Bearer {secret}"}

    def follow(number: int) -> int:
        url = f"https://quota.example/{number}"
        return guarded.http.post("/api/sources", json={"url": url}, headers=mine).status_code

    assert [follow(number) for number in (1, 2, 1, 3)] == [201, 201, 200, 403]
    body = "".join(f"<outline xmlUrl='https://quota.example/{number}'/>" for number in range(1, 5))
    opml = {
        "content": f"<opml><body>{body}</body></opml>",
        "headers": {**mine, "Content-Type": "text/x-opml"},
    }
    imported = guarded.http.post("/api/sources/opml", **opml).json()
    assert (imported["added"], imported["known"], len(imported["refused"])) == (0, 2, 2)
    guarded.http.delete("/api/sources", params={"url": "https://quota.example/1"}, headers=mine)
    imported = guarded.http.post("/api/sources/opml", **opml).json()
    assert (imported["added"], imported["known"], len(imported["refused"])) == (1, 1, 2)
    assert "as many feeds as it may" in imported["refused"][0]["message"]


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/a",
        "http://localhost:8750/",
        "http://[::1]/",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://0x7f000001/",
        "file:///etc/passwd",
        "gopher://example.org/",
        "javascript:alert(1)",
        "not an address",
        "http://",
        "http://example.org/\r\nHost: evil",
        "http://user:secret@127.0.0.1/",
    ],
)
def test_addresses_inside_are_refused(served: Served, url: str) -> None:
    for answer in (
        served.http.post("/api/sources", json={"url": url}),
        served.http.post("/api/subscriptions", json={"text": "WHERE a = 1", "webhook": url}),
    ):
        assert answer.status_code in (400, 403, 422), answer.text
        assert answer.headers["content-type"] == PROBLEM


@pytest.mark.parametrize("body", [b"", b"\x00\xff", b"<html/>", b"no XML at all"])
def test_lists_that_are_none(served: Served, body: bytes) -> None:
    answer = served.http.post("/api/sources/opml", content=body, headers={"content-type": "text/x-opml"})
    assert answer.status_code == 400, answer.text


# Questions


def test_checked_tried_completed(served: Served) -> None:
    good = models.Checked.model_validate(served.http.post("/api/check", json={"text": "WHERE a = 1"}).json())
    assert good.ok
    assert good.kinds == ["filter"]
    bad = models.Checked.model_validate(served.http.post("/api/check", json={"text": "WHERE a ="}).json())
    assert not bad.ok
    assert bad.line == 1
    served.publish({"id": "t1", "source": "t", "topic": "tried", "price": 5})
    served.publish({"id": "t2", "source": "t", "topic": "tried", "price": 50})
    answer = served.http.post("/api/try", json={"text": "WHERE topic = 'tried' AND price < 20"})
    trial = models.Trial.model_validate(answer.json())
    assert [one.event.id for one in trial.matches] == ["t1"]
    assert "t2" in [one.event.id for one in trial.near]
    assert served.http.post("/api/try", json={"text": "WHERE a ="}).status_code == 422
    found = served.http.get("/api/complete", params={"text": "WHERE a = 1 AN"})
    compared = served.http.get("/api/complete", params={"text": "WHERE topic SEA"}).json()
    assert [one["text"] for one in compared["items"]] == ["SEARCH "]
    warned = served.http.post("/api/check", json={"text": "topic = tried"}).json()
    message = "tried is read as an attribute; for the text write 'tried'"
    assert warned["warnings"] == [{"message": message, "start": 8, "end": 13}]
    assert "AND" in [one.text for one in models.Completions.model_validate(found.json()).items]


@pytest.mark.parametrize(
    "text", ["", "\0", "(" * 3_000, "WHERE a = 'x", "é" * 2_000, "SELECT ?x WHERE (?x, ?y, ?z)" * 50]
)
def test_odd_questions(served: Served, text: str) -> None:
    assert served.http.post("/api/check", json={"text": text}).status_code in (200, 422)
    assert served.http.post("/api/try", json={"text": text}).status_code in (200, 422)
    assert served.http.get("/api/complete", params={"text": text, "at": 1}).status_code in (200, 422)


def test_the_taxonomy(running) -> None:
    from pathlib import Path

    taxonomy = Path("examples/taxonomy.ttl")
    with running(taxonomy=taxonomy) as served:
        roots = models.TaxonomyAnswer.model_validate(served.http.get("/api/taxonomy").json())
        assert roots.items
        about = served.http.get("/api/taxonomy", params={"class": roots.items[0].iri}).json()["about"]
        assert about["iri"] == roots.items[0].iri
        assert served.http.get("/api/taxonomy", params={"search": roots.items[0].label}).json()["items"]
        assert served.http.get("/api/taxonomy", params={"class": "urn:none"}).status_code == 404


# Tokens, and how the service fares


def test_tokens_are_for_admins(guarded: Served) -> None:
    admin = {"Authorization": f"Bearer {guarded.service.access.grant('root', Role.ADMIN)[1]}"}
    made = guarded.http.post("/api/tokens", json={"name": "desk", "role": "subscriber"}, headers=admin)
    assert made.status_code == 201
    token = models.TokenCreated.model_validate(made.json())
    mine = {"Authorization": f"Bearer {token.secret}"}
    assert guarded.http.get("/api/subscriptions", headers=mine).status_code == 200
    for method, body in (("GET", None), ("POST", {"name": "x", "role": "admin"}), ("DELETE", None)):
        answer = guarded.http.request(
            method,
            "/api/tokens",
            params={"id": token.id} if method == "DELETE" else None,
            json=body,
            headers=mine,
        )
        assert answer.status_code == 403
    listed = guarded.http.get("/api/tokens", headers=admin).json()
    assert token.secret not in str(listed)
    assert guarded.http.delete("/api/tokens", params={"id": token.id}, headers=admin).status_code == 204
    assert guarded.http.get("/api/subscriptions", headers=mine).status_code == 401
    assert guarded.http.delete("/api/tokens", params={"id": token.id}, headers=admin).status_code == 404
    for wrong in (
        {"name": "", "role": "admin"},
        {"name": "a", "role": "king"},
        {"name": "a\0", "role": "admin"},
        {"name": "a", "role": "admin", "subscriptions": -1},
    ):
        assert guarded.http.post("/api/tokens", json=wrong, headers=admin).status_code == 422


def test_a_subscriber_over_its_rate_or_quota(guarded: Served) -> None:
    grant = guarded.service.access.grant
    _, slow = grant("slow", Role.SUBSCRIBER, requests_per_second=0.5)
    _, small = grant("small", Role.SUBSCRIBER, subscriptions=1)
    statuses = [
        guarded.http.get("/api/subscriptions", headers={"Authorization": f"Bearer {slow}"}).status_code
        for _ in range(4)
    ]
    assert statuses[0] == 200
    assert statuses[-1] == 429
    codes = [
        guarded.http.post(
            "/api/subscriptions", json={"text": "WHERE a = 1"}, headers={"Authorization": f"Bearer {small}"}
        ).status_code
        for _ in range(2)
    ]
    assert codes == [201, 403]


def test_health_metrics_and_status(served: Served) -> None:
    assert served.http.get("/health").json() == {"status": "ok", "message": ""}
    assert served.http.head("/health").status_code == 200
    ready = served.http.get("/ready")
    assert ready.status_code == 503  # no driver is started here
    assert ready.headers["retry-after"]
    metrics = served.http.get("/metrics")
    assert "tidings_events_accepted" in metrics.text
    assert metrics.headers["content-type"].startswith("text/plain")
    status = models.Status.model_validate(served.http.get("/api/status").json())
    assert status.driver.status == "stopped"
    assert status.last_number == served.service.mailbox.last()


def test_metrics_may_be_protected(running) -> None:
    with running(open=False, protect_metrics=True) as guarded:
        assert guarded.http.get("/metrics").status_code == 401
        _, secret = guarded.service.access.grant("prometheus", Role.SUBSCRIBER, subscriptions=0)
        answer = guarded.http.get("/metrics", headers={"Authorization": f"Bearer {secret}"})
        assert (answer.status_code, "tidings_events_accepted" in answer.text) == (200, True)
        assert guarded.http.get("/health").status_code == 200


def test_xmlrpc(served: Served) -> None:
    proxy = xmlrpc.client.ServerProxy(f"{served.url}/xmlrpc", allow_none=True)
    assert proxy.system.listMethods()
    assert (
        served.http.post("/xmlrpc", content=b"x", headers={"content-type": "text/plain"}).status_code == 415
    )
    for body in (b"", b"<methodCall", b"\xff", b"<!DOCTYPE a [<!ENTITY b 'c'>]><methodCall>&b;</methodCall>"):
        answer = served.http.post("/xmlrpc", content=body, headers={"content-type": "text/xml"})
        assert answer.status_code < 500


def test_a_store_that_is_away_is_a_503(running) -> None:
    from sqlalchemy.exc import OperationalError

    with running() as served:

        def away(*_: object, **__: object) -> None:
            raise OperationalError("SELECT 1", {}, Exception("gone"))

        served.service.registry.page = away  # type: ignore[method-assign]
        answer = served.http.get("/api/subscriptions")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")

        def broken(*_: object, **__: object) -> None:
            raise ZeroDivisionError("a secret detail")

        served.service.registry.page = broken  # type: ignore[method-assign]
        answer = served.http.get("/api/subscriptions", headers={"x-request-id": "mine"})
        assert answer.status_code == 500
        assert answer.headers["content-type"] == PROBLEM
        assert answer.json()["request"] == answer.headers["x-request-id"] == "mine"
        assert "secret detail" not in answer.text
        assert "content-security-policy" in answer.headers


def test_another_site_gets_nowhere(served: Served) -> None:
    new = {"text": "WHERE a = 1"}
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert served.http.post("/api/subscriptions", json=new, headers=headers).status_code == 403
    assert served.http.get("/api/subscriptions", headers={"Host": "evil.example"}).status_code == 421
    assert (
        "access-control-allow-origin"
        not in served.http.options(
            "/api/subscriptions",
            headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"},
        ).headers
    )
