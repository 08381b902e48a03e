"""Decides what is to be done about subscriptions at hubs: begin, renew, end, give up.

It follows from the followed feeds, the hubs that they name and the states of the subscriptions alone, so a restart goes on
where it was. Before a renewal the feed is fetched, since it may have moved to another topic or hub.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import urlsplit

from tidings.feeds.hubs import NamedHubs
from tidings.feeds.push_states import Push, PushState
from tidings.service.settings import Settings

VERIFY = 600.0  # seconds for a hub to verify what it was asked for
IN_A_ROUND = 200  # requests to hubs
ENDINGS = 5  # tries to unsubscribe


class Plan(NamedTuple):
    """What is to be done now."""

    ask: list[Push]  # new ones
    end: list[Push]  # whose hubs are to be asked to end them
    fetch: list[Push]  # whose feeds are to be fetched before the renewal
    fail: list[Push]  # the hub has not verified them in time
    drop: list[Push]


def plan(
    known: Iterable[Push],
    named: Mapping[str, NamedHubs],
    followed: set[str],
    settings: Settings,
    now: float,
) -> Plan:
    """What is to be done. `named` are the hubs of feeds that name some."""
    work = Plan([], [], [], [], [])
    of: dict[str, list[Push]] = {url: [] for url in named}
    for push in known:
        of.setdefault(push.url, []).append(push)
    for url, pushes in of.items():
        hubs = named.get(url) if url in followed else None
        if hubs is None:
            _end_all(work, pushes, now)
        else:
            _plan_feed(work, url, pushes, hubs, settings, now)
    return work


def _end_all(work: Plan, pushes: Sequence[Push], now: float) -> None:
    """Of a feed that is not followed, or names no hub."""
    for push in pushes:
        if push.state in (PushState.ASKED, PushState.ACTIVE):
            _end(work, replace(push, due=now, failures=0), now)
        elif push.state is PushState.ENDING:
            _end(work, push, now)
        else:
            work.drop.append(push)


def _plan_feed(
    work: Plan, url: str, pushes: Sequence[Push], named: NamedHubs, settings: Settings, now: float
) -> None:
    failures, is_settled = 0, False
    denied: set[str] = set()
    for push in pushes:
        is_named = push.topic == named.topic and push.hub in named.hubs
        if push.state is PushState.ENDING:
            _end(work, push, now)
        elif push.state is PushState.ACTIVE and push.until <= now:
            work.drop.append(push)
        elif push.state is PushState.ACTIVE:  # if the feed has moved, it ends once the new one is active
            if is_named and not push.checked and push.due <= now:
                work.fetch.append(push)
            is_settled |= is_named and (push.due > now or not push.checked)
        elif not is_named:
            work.drop.append(push)
        elif push.state is PushState.DENIED:
            denied.add(push.hub)
        elif push.due > now:
            is_settled = True
        elif push.state is PushState.ASKED:
            work.fail.append(push)
            is_settled = True
        else:
            failures = push.failures + 1
            work.drop.append(push)
    hubs = [hub for hub in named.hubs if hub not in denied and can_call(settings, hub)]
    if hubs and not is_settled and len(work.ask) < IN_A_ROUND:
        hub = hubs[failures % len(hubs)]  # after a failure the next one
        key, secret = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        push = Push(key, url, hub, named.topic, secret, PushState.ASKED, now + VERIFY, failures=failures)
        work.ask.append(push)


def _end(work: Plan, push: Push, now: float) -> None:
    if push.failures >= ENDINGS:
        work.drop.append(push)
    elif push.due <= now and len(work.end) < IN_A_ROUND:
        work.end.append(replace(push, state=PushState.ENDING))


def can_call(settings: Settings, hub: str) -> bool:
    """Whether a hub can be expected to reach this service. One on this machine can always; others need an address that
    was given (`--url`), or a host that is not this machine's own."""
    return settings.url is not None or not _is_local(settings.host) or _is_local(urlsplit(hub).hostname or "")


def _is_local(host: str) -> bool:
    """Whether a host is this machine alone, or every address of it, which is no address to call."""
    if host in ("", "localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
