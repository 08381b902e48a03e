"""XML-RPC by the standard library's own client, over real HTTP: what the clients of the paper do."""

from __future__ import annotations

import time
import xmlrpc.client
from collections.abc import Callable
from typing import Any

import pytest

from tests.service.conftest import Served
from tidings.feeds.read import read_feed
from tidings.service.delivery.presentation import describe
from tidings.service.model import Principal, Role, State
from tidings.service.web.xmlrpc import dispatch, subscription_of_item

TEXT = "WHERE topic = 'sport'"
NOBODY = Principal("", Role.ADMIN)


def feed(*items: tuple[str, str], encoding: str = "UTF-8") -> str:
    said = "".join(
        f"<item><title>{title}</title><link>http://cms.example/{number}</link>"
        f"<description>{description}</description></item>"
        for number, (title, description) in enumerate(items)
    )
    return (
        f'<?xml version="1.0" encoding="{encoding}"?><rss version="2.0"><channel><title>CMS</title>'
        f"<link>http://cms.example/</link><description>D</description>{said}</channel></rss>"
    )


RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:dc="http://purl.org/dc/elements/1.1/"
 xmlns="http://purl.org/rss/1.0/"><channel rdf:about="http://cms.example/feed"><title>C</title>
 <link>http://cms.example/</link><description>D</description><items><rdf:Seq>
 <rdf:li rdf:resource="http://cms.example/xslt"/></rdf:Seq></items></channel>
 <item rdf:about="http://cms.example/xslt"><title>Processing Inclusions with XSLT</title>
 <link>http://cms.example/xslt</link><dc:subject>{subject}</dc:subject></item></rdf:RDF>"""


def proxy(served: Served, token: str | None = None) -> Any:
    headers = [("Authorization", f"Bearer {token}")] if token else []
    return xmlrpc.client.ServerProxy(f"{served.url}/xmlrpc", headers=headers)


@pytest.fixture
def tidings(served: Served) -> Any:
    return proxy(served).tidings


def fault(call: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(xmlrpc.client.Fault) as raised:
        call()
    return raised.value.faultCode, raised.value.faultString


def heard(ask: Callable[[], str], count: int, seconds: float = 20.0) -> list[str]:
    """The titles of an RSS 1.0 text, once there are as many."""
    deadline = time.monotonic() + seconds
    while True:
        titles = [describe(event).title for event in read_feed(ask().encode())]
        if len(titles) >= count or time.monotonic() > deadline:
            return titles
        time.sleep(0.02)


def test_a_life(served: Served, tidings: Any) -> None:
    made = tidings.subscribe(TEXT, 3_600)
    found = served.service.registry.find(made["id"])
    assert found is not None
    assert found.valid_until == pytest.approx(time.time() + 3_600, abs=30)
    assert made["feed"] == f"{served.url}/feeds/{found.feed}.rdf"
    assert served.http.get(made["feed"]).status_code == 200

    assert tidings.renew(made["id"], made["ticket"], "never")["valid_until"] == "never"
    assert fault(lambda: tidings.renew(made["id"], "wrong"))[0] == 403
    assert fault(lambda: tidings.unsubscribe(made["id"], "wrong"))[0] == 403
    status, message = fault(lambda: tidings.unsubscribe(made["id"]))
    assert status == 403
    assert message.startswith(
        f"only who has the ticket of subscription {made['id']} can change it; give the ticket"
    )
    assert tidings.unsubscribe(made["id"], made["ticket"]) is True
    assert fault(lambda: tidings.renew(made["id"], made["ticket"]))[0] == 410
    assert fault(lambda: tidings.notifications(made["id"], made["ticket"]))[0] == 410
    assert fault(lambda: tidings.unsubscribe("s_none", "x"))[0] == 404


def test_published_and_heard(served: Served, tidings: Any) -> None:
    made = tidings.subscribe("SELECT * WHERE (?i, dc:subject, 'inclusions')")
    answer = tidings.publish(RDF.format(subject="inclusions"))
    assert (answer["accepted"], answer["duplicates"], answer["rejected"]) == (1, 0, [])
    assert tidings.publish(RDF.format(subject="inclusions"))["duplicates"] == 1
    titles = heard(lambda: tidings.notifications(made["id"], made["ticket"]), 1)
    assert titles == ["Processing Inclusions with XSLT"]

    (notification,) = served.service.mailbox.page([made["id"]])
    last = f"urn:tidings:notification:{made['id']}:{notification.id}"
    secret = made["feed"].rpartition("/")[2].removesuffix(".rdf")
    tidings.publish(RDF.format(subject="inclusions").replace("XSLT", "XSL"))
    assert heard(lambda: tidings.notifications(made["id"], secret, last), 1) == [
        "Processing Inclusions with XSL"
    ]
    assert len(heard(lambda: tidings.notifications(made["id"], secret, notification.number), 1)) == 1
    assert len(heard(lambda: tidings.notifications(made["id"], secret, str(notification.number)), 1)) == 1
    assert len(heard(lambda: tidings.notifications(made["id"], secret), 2)) == 2

    assert fault(lambda: tidings.notifications(made["id"], "wrong"))[0] == 403
    assert fault(lambda: tidings.notifications("s_none", secret))[0] == 404
    assert fault(lambda: tidings.notifications(made["id"], secret, "urn:x"))[0] == -32602


def test_a_subscription_is_an_item_of_a_feed(served: Served, tidings: Any) -> None:
    made = tidings.subscribe(feed(("GQL: my cars", "WHERE price &lt; 5")))
    found = served.service.registry.find(made["id"])
    assert found is not None
    assert (found.title, found.text) == ("my cars", "WHERE price < 5")
    assert fault(lambda: tidings.subscribe(feed(("No question", TEXT))))[0] == -32602
    assert fault(lambda: tidings.subscribe(feed(("GQL", TEXT), ("GQL", TEXT))))[0] == -32602
    assert fault(lambda: tidings.subscribe("<html/>"))[0] == 400


def test_publishing_a_subscription_subscribes_and_it_hears_its_own_document(tidings: Any) -> None:
    answer = tidings.publish(
        feed(
            ("GQL mine", "SELECT * WHERE (?i, rss:title, 'Größe')"),
            ("Größe", "x"),
            ("GQL", "WHERE ="),
            encoding="latin-1",
        )
    )
    (made,) = answer["subscriptions"]
    assert (made["title"], answer["accepted"]) == ("mine", 1)
    assert [one["place"] for one in answer["rejected"]] == ["the subscription ''"]
    assert heard(lambda: tidings.notifications(made["id"], made["ticket"]), 1) == ["Größe"]


def test_publishing_other_documents(tidings: Any) -> None:
    assert tidings.publish('{"id": "rpc-1", "source": "a", "type": "t", "topic": "x"}')["ids"] == ["rpc-1"]
    assert tidings.publish("<urn:rpc> <urn:b> 'c' .", "text/turtle")["accepted"] == 1
    assert tidings.publish(xmlrpc.client.Binary(b"<urn:rpc> <urn:b> 'd' ."), "text/turtle")["accepted"] == 1
    assert fault(lambda: tidings.publish("<urn:a"))[0] == 400
    assert fault(lambda: tidings.publish("what is it"))[0] == -32602
    assert fault(lambda: tidings.publish("x", "image/png"))[0] == 415
    assert fault(lambda: tidings.publish(feed(("GQL", "WHERE ="))))[0] == 422


def test_paragraphs_around_a_question_are_not_of_it() -> None:
    document = feed(("GQL", "&lt;p&gt;WHERE a &amp;lt; 1&lt;/p&gt;"), ("News of GQLs", "x"))
    first, second = read_feed(document.encode())
    asked = subscription_of_item(first)
    assert asked is not None
    assert asked.text == "WHERE a < 1"
    assert subscription_of_item(second) is None


def test_what_is_wrong_with_a_call(served: Served, tidings: Any) -> None:
    assert fault(lambda: tidings.subscribe("WHERE topic ="))[0] == 422
    assert fault(lambda: tidings.subscribe(TEXT, -1))[0] == 422
    assert fault(lambda: tidings.subscribe(TEXT, "soon"))[0] == 422
    assert fault(lambda: tidings.subscribe(7))[0] == -32602
    assert fault(lambda: tidings.subscribe({"a": [1]}))[0] == -32602
    code, sentence = fault(lambda: tidings.subscribe())
    assert code == -32602
    assert sentence.startswith("0 parameters were given to tidings.subscribe; give a text")
    assert fault(lambda: tidings.nothing()) == (
        -32601,
        "there is no method 'tidings.nothing'; system.listMethods lists those there are",
    )


def test_it_says_what_it_can(served: Served) -> None:
    system = proxy(served).system
    assert "tidings.publish" in system.listMethods()
    assert all(system.methodHelp(name) for name in system.listMethods())
    assert fault(lambda: system.methodHelp("x"))[0] == -32601


def test_tokens_decide(guarded: Served) -> None:
    access = guarded.service.access
    (_, ann), (_, bob), (_, press) = (
        access.grant(name, role)
        for name, role in (("ann", Role.SUBSCRIBER), ("bob", Role.SUBSCRIBER), ("press", Role.PUBLISHER))
    )
    with pytest.raises(xmlrpc.client.ProtocolError) as refused:
        proxy(guarded).tidings.subscribe(TEXT)
    assert refused.value.errcode == 401
    hers, his, its = (proxy(guarded, secret).tidings for secret in (ann, bob, press))
    made = hers.subscribe(TEXT)
    assert "<rdf:RDF" in hers.notifications(made["id"])
    assert fault(lambda: his.notifications(made["id"]))[0] == 404
    assert fault(lambda: his.notifications(made["id"], "guess"))[0] == 404
    assert fault(lambda: his.unsubscribe(made["id"], "guess"))[0] == 404
    assert "<rdf:RDF" in his.notifications(made["id"], made["ticket"])
    assert fault(lambda: his.publish('{"a": 1}'))[0] == 403
    assert fault(lambda: its.subscribe(TEXT))[0] == 403
    assert fault(lambda: its.publish(feed(("GQL", TEXT))))[0] == 403
    assert its.publish('{"a": 1}')["accepted"] == 1
    assert hers.unsubscribe(made["id"]) is True
    found = guarded.service.registry.find(made["id"])
    assert found is not None
    assert found.state is State.CANCELLED


BOMB = (
    b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
    + b"".join(b'<!ENTITY a%d "%s">' % (n, (b"&a%d;" % (n - 1) if n else b"&a;") * 10) for n in range(12))
    + b"]><methodCall><methodName>&a11;</methodName></methodCall>"
)


def call(inside: bytes, name: bytes = b"tidings.subscribe") -> bytes:
    return b"<methodCall><methodName>%s</methodName><params><param>%s</param></params></methodCall>" % (
        name,
        inside,
    )


FAULT = xmlrpc.client.dumps(xmlrpc.client.Fault(1, "x")).encode()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(b"", -32700, id="nothing"),
        pytest.param(b"hello", -32700, id="no XML"),
        pytest.param(b"<methodCall>", -32700, id="half a call"),
        pytest.param(b"<methodCall></methodCall>", -32600, id="an empty call"),
        pytest.param(b"<html/>", -32600, id="another document"),
        pytest.param(b"<methodResponse><params/></methodResponse>", -32600, id="an answer"),
        pytest.param(FAULT, -32600, id="a fault"),
        pytest.param(call(b"<value><int>x</int></value>"), -32700, id="no integer"),
        pytest.param(call(b"<value><int>" + b"9" * 5_000 + b"</int></value>"), -32700, id="a long integer"),
        pytest.param(call(b"<value><array><data>" * 100_000), -32700, id="nested deep"),
        pytest.param(call(b"<value>x</value>" * 1_000), -32602, id="many parameters"),
        pytest.param(call(b"<value><nil/></value>"), -32602, id="nil"),
        pytest.param(call(b"", b"a&#0;"), -32700, id="a forbidden character"),
        pytest.param(call(b"", b"\xff"), -32700, id="no UTF-8"),
        pytest.param(call(b"", b"__class__"), -32601, id="a name of Python's"),
        pytest.param(BOMB, -32700, id="an entity bomb"),
    ],
)
def test_hostile_calls_get_a_fault(served: Served, body: bytes, code: int) -> None:
    began = time.thread_time()
    assert fault(lambda: xmlrpc.client.loads(dispatch(body, served.service, NOBODY)))[0] == code
    assert time.thread_time() - began < 2.0


def test_what_nobody_foresaw_says_nothing_of_itself() -> None:
    class Broken:
        class settings:
            max_body = 1_000_000

        class lifecycle:
            @staticmethod
            def subscribe(*given: object, **more: object) -> None:
                raise RuntimeError("a secret of the house")

    code, sentence = fault(lambda: xmlrpc.client.loads(dispatch(call(b"<value>x</value>"), Broken(), NOBODY)))  # type: ignore[arg-type]
    assert code == 500
    assert "secret" not in sentence
