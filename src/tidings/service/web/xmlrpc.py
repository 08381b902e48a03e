"""XML-RPC as in the paper: subscribe, renew, unsubscribe, publish, notifications; G-ToPSS, Section 6.

Publications and subscriptions are both feeds: an item whose title has the keyword GQL is a subscription, and its
description is the text. Calls use the same lifecycle and access control as HTTP requests; the code of a fault is
the HTTP status, or below -32000 if the call itself is malformed.
"""

from __future__ import annotations

import hmac
import logging
import re
import xmlrpc.client
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tidings.errors import EventError, TidingsError
from tidings.feeds.facts import RSS
from tidings.feeds.write.channel import moment, printable
from tidings.formats.documents import safe_xml
from tidings.model.event import Event
from tidings.service.delivery.presentation import facts_of, plain_text
from tidings.service.delivery.subscription_feeds import FORMATS, notification_id_of_entry, render
from tidings.service.ingest.request_bodies import ParsedBody, read_events
from tidings.service.model import Principal, Role, State, Subscription
from tidings.service.subscriptions.access_control import Forbidden, NotFound
from tidings.service.subscriptions.lifecycle import Ended, Subscribed, Validity, read_validity
from tidings.service.web.problems import problem_of

if TYPE_CHECKING:
    from tidings.service.service import Service

NOT_XML, NOT_A_CALL, NO_METHOD, BAD_PARAMETERS = -32700, -32600, -32601, -32602
PAGE = 50
_MOST = 100  # subscriptions of one document

_GQL = re.compile(r"\bGQL\b[\s:–-]*")
_DECLARATION = re.compile(r"^[\ufeff\s]*<\?xml[^>]*\?>")
_MARKED_UP = re.compile(r"\s*<(?:p|div|pre|span)\b", re.IGNORECASE)

log = logging.getLogger(__name__)


class CallFault(TidingsError):
    """A malformed call, with its code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def dispatch(body: bytes, service: Service, principal: Principal) -> bytes:
    """Answers a methodCall with a methodResponse: a result or a fault. Never raises."""
    try:
        name, parameters = _read(body, service.settings.max_body)
        answer: Any = (_printable(_called(name, parameters, service, principal)),)
    except Exception as error:
        answer = _fault(error)
    return xmlrpc.client.dumps(answer, methodresponse=True, encoding="utf-8").encode()


# -- the call


def _read(body: bytes, limit: int) -> tuple[str, tuple[Any, ...]]:
    try:
        parameters, name = xmlrpc.client.loads(safe_xml(body, limit), use_builtin_types=True)
    except EventError as error:
        raise CallFault(NOT_XML, f"the call cannot be read: {error}") from None
    except (xmlrpc.client.Fault, xmlrpc.client.ResponseError):
        raise CallFault(NOT_A_CALL, "this is no methodCall, and one is needed") from None
    except Exception as error:  # of expat, and whatever the reader of the standard library stumbles over
        what = str(error)[:200] or type(error).__name__
        raise CallFault(NOT_XML, f"the call cannot be read as XML-RPC: {what}; send a methodCall") from None
    if not name:
        raise CallFault(NOT_A_CALL, "this names no method; send a methodCall with a methodName")
    return name, parameters


def _called(name: str, parameters: tuple[Any, ...], service: Service, principal: Principal) -> Any:
    method = METHODS.get(name)
    if method is None:
        raise CallFault(
            NO_METHOD,
            f"there is no method {printable(name)[:60]!r}; system.listMethods lists those there are",
        )
    if not method.least <= len(parameters) <= method.most:
        raise CallFault(BAD_PARAMETERS, f"{len(parameters)} parameters were given to {name}; {method.help}")
    return method.call(_Call(service, principal, name), *parameters)


class _Call(NamedTuple):
    service: Service
    principal: Principal
    name: str

    def text(self, value: Any, what: str) -> str:
        if isinstance(value, bytes):
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise CallFault(BAD_PARAMETERS, f"{self.name}: {what} is not UTF-8; encode it so") from None
        if not isinstance(value, str):
            kind = type(value).__name__
            raise CallFault(
                BAD_PARAMETERS, f"{self.name}: {what} is a string, not {kind}; {METHODS[self.name].help}"
            )
        return value


def _fault(error: Exception) -> xmlrpc.client.Fault:
    if isinstance(error, CallFault):
        return xmlrpc.client.Fault(error.code, printable(str(error)))
    problem = problem_of(error)
    if problem.status_code == 500:
        log.error("a call of XML-RPC failed", exc_info=error)
    return xmlrpc.client.Fault(problem.status_code, printable(str(problem.detail)))


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list | tuple):
        return [_printable(one) for one in value]
    if isinstance(value, Mapping):
        return {printable(name): _printable(inner) for name, inner in value.items()}
    return value


# -- subscriptions


class FeedSubscription(NamedTuple):
    """A subscription that is an item of a feed."""

    title: str
    text: str


def subscription_of_item(event: Event) -> FeedSubscription | None:
    """The subscription in an item of a feed; None if the item is a publication."""
    said = facts_of(event)
    title = next(iter(said.get(RSS + "title", ())), "")
    if _GQL.search(title) is None:
        return None
    text = next(iter(said.get(RSS + "description", ())), "")
    # Editors of content management systems put paragraphs around whatever is typed into them.
    return FeedSubscription(_GQL.sub("", title).strip(), plain_text(text) if _MARKED_UP.match(text) else text)


def _subscribe(call: _Call, given: Any, seconds: Any = None) -> dict[str, Any]:
    text, title = call.text(given, "the subscription"), ""
    if text.lstrip("\ufeff \t\r\n").startswith("<"):
        them = [
            asked
            for event in _read_document(call, text, "application/rss+xml").events
            if (asked := subscription_of_item(event)) is not None
        ]
        if len(them) != 1:
            raise CallFault(
                BAD_PARAMETERS,
                f"the document has {len(them)} items with GQL in their titles, and one is needed; put the text of"
                " the subscription into its description, or send several with tidings.publish",
            )
        title, text = them[0]
    return _begin(call, text, title, read_validity(seconds))


def _begin(call: _Call, text: str, title: str, validity: Validity) -> dict[str, Any]:
    made: Subscribed = call.service.lifecycle.subscribe(
        call.principal, text, title=title[:200], validity=validity
    )
    return {
        **_shown(call, made.subscription),
        "ticket": made.ticket,
        "warnings": list(made.warnings),
    }


def _unsubscribe(call: _Call, id: Any, ticket: Any = "") -> bool:
    call.service.lifecycle.cancel(
        call.principal, call.text(id, "the id"), call.text(ticket, "the ticket") or None
    )
    return True


def _renew(call: _Call, id: Any, ticket: Any = "", seconds: Any = None) -> dict[str, Any]:
    given = call.text(id, "the id"), call.text(ticket, "the ticket") or None
    return _shown(call, call.service.lifecycle.renew(call.principal, *given, read_validity(seconds)))


def _shown(call: _Call, subscription: Subscription) -> dict[str, Any]:
    """The end of validity as XML-RPC has it, without null: an unlimited one is "never"."""
    address = f"{call.service.settings.address}/feeds/{subscription.feed}"
    until = subscription.valid_until
    return {
        "id": subscription.id,
        "title": subscription.title,
        "state": subscription.state.value,
        "valid_until": "never" if until is None else moment(until),
        "feed": f"{address}.rdf",
        "feeds": {format: f"{address}.{format}" for format in FORMATS},
    }


# -- events


def _publish(call: _Call, document: Any, media_type: Any = "") -> dict[str, Any]:
    read = _read_document(call, document, call.text(media_type, "the media type"))
    events, asked = [], []
    for event in read.events:
        question = subscription_of_item(event) if event.type == "feed.item" else None
        if question is None:
            events.append(event)
        else:
            asked.append(question)
    if len(asked) > _MOST:
        raise CallFault(
            BAD_PARAMETERS, f"the document has {len(asked):,} subscriptions; send at most {_MOST} at once"
        )
    if events:
        call.service.access.need(call.principal, Role.PUBLISHER)
        call.service.access.count_events(call.principal, len(events))
    rejected = [{"place": str(place), "message": str(message)} for place, message in read.rejected]
    begun = []
    for title, text in asked:
        try:
            begun.append(_begin(call, text, title, "default"))
        except TidingsError as error:
            if len(read.events) == 1:
                raise
            rejected.append({"place": f"the subscription {title!r}", "message": str(error)})
    # Last, so that these subscriptions match these events: they were in one document.
    receipt = call.service.log_writer.accept(events) if events else None
    return {
        "accepted": receipt.accepted if receipt else 0,
        "duplicates": receipt.duplicates if receipt else 0,
        "ids": list(receipt.ids) if receipt else [],
        "rejected": rejected,
        "subscriptions": begun,
    }


def _read_document(call: _Call, document: Any, media_type: str) -> ParsedBody:
    if isinstance(document, bytes):
        body = document
    else:  # a string is in no encoding any more, whatever its first line says
        body = _DECLARATION.sub("", call.text(document, "the document"), count=1).encode(errors="replace")
    kind = media_type or _kind(body)
    return read_events(body, kind, {}, call.principal.name)


def _kind(body: bytes) -> str:
    """The media type of a document that came without one."""
    start = body[:100].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"<"):
        return "application/xml"
    if start.startswith((b"{", b"[")):
        return "application/json"
    raise CallFault(
        BAD_PARAMETERS, "the type of the document is not known; name its media type, such as text/turtle"
    )


# -- notifications


def _notifications(call: _Call, id: Any, secret: Any = "", after: Any = "") -> str:
    found = _seen(call, call.text(id, "the id"), call.text(secret, "the ticket"))
    mailbox = call.service.mailbox
    number = _number(call, found, after)
    if number is None:
        page = mailbox.page([found.id], limit=PAGE)
    else:
        page = mailbox.page([found.id], after=number, limit=PAGE)[::-1]
    address = f"{call.service.settings.address}/feeds/{found.feed}.rdf"
    return render(found, page, "rdf", call.service.settings, address).body.decode()


def _seen(call: _Call, id: str, secret: str) -> Subscription:
    """The subscription, if the caller may read its notifications: by its ticket, its feed's secret, or a token."""
    access, principal = call.service.access, call.principal
    found = call.service.registry.find(id)
    if found is None:
        if secret:
            access.wrong_ticket(id)
        raise _not_found(id)
    sees = access.may_see(principal, found)
    if secret and not (principal.token and sees):
        is_feed = hmac.compare_digest(secret.encode(errors="replace"), found.feed.encode())
        if not is_feed and not access.may_change(principal, found, secret):
            raise (
                Forbidden(f"this is neither the ticket nor the feed's secret of {id}")
                if sees
                else _not_found(id)
            )
    elif not (sees or found.public):
        raise _not_found(id)
    if found.state is State.CANCELLED:
        raise Ended(f"subscription {id} was cancelled and stays so; subscribe anew")
    return found


def _not_found(id: str) -> NotFound:
    return NotFound(f"there is no subscription {id[:60]!r}, or not for you; look at the id and the ticket")


def _number(call: _Call, subscription: Subscription, after: Any) -> int | None:
    """The cursor: a number, or the id of the last item that the caller has; None for the newest."""
    if isinstance(after, int) and not isinstance(after, bool):
        return max(0, after)
    text = call.text(after, "the last item seen").strip()
    if not text:
        return None
    if text.isdecimal() and len(text) < 19:
        return int(text)
    known = notification_id_of_entry(text, subscription.id)
    notification = call.service.mailbox.find(subscription.id, known) if known else None
    if notification is None:
        raise CallFault(
            BAD_PARAMETERS,
            "no item has this id, or it is no longer kept; leave the id out to get the newest ones",
        )
    return notification.number


# -- about itself


class Method(NamedTuple):
    call: Callable[..., Any]
    least: int
    most: int
    help: str


def _help(call: _Call, name: Any) -> str:
    method = METHODS.get(call.text(name, "the method's name"))
    if method is None:
        raise CallFault(NO_METHOD, "there is no such method; system.listMethods lists those there are")
    return method.help


METHODS: Mapping[str, Method] = {
    "tidings.subscribe": Method(
        _subscribe, 1, 2,
        "give a text, or a feed with one item whose title has the keyword GQL and whose description is the text, and"
        " (optional) for how many seconds it is valid, or 'never'; keep the ticket of the answer",
    ),
    "tidings.unsubscribe": Method(_unsubscribe, 1, 2, "give the subscription's id and its ticket"),
    "tidings.renew": Method(
        _renew, 1, 3,
        "give the subscription's id, its ticket and (optional) for how many seconds it is valid from now on",
    ),
    "tidings.publish": Method(
        _publish, 1, 2,
        "give a document (a feed, RDF, CloudEvents) and, unless it is XML or JSON, its media type; items with GQL in"
        " their titles subscribe",
    ),
    "tidings.notifications": Method(
        _notifications, 1, 3,
        "give the subscription's id, its ticket or its feed's secret and (optional) the id of the last item that you"
        " have; the answer is RSS 1.0",
    ),
    "system.listMethods": Method(lambda call: sorted(METHODS), 0, 0, "give nothing"),
    "system.methodHelp": Method(_help, 1, 1, "give a method's name"),
}  # fmt: skip
