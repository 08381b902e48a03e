"""The paper's five subscriptions, as they stand in the examples, over the example's pictures."""

import json
from pathlib import Path

import pytest

from tests.kinds.operators.library.asking import ask
from tidings.cli.subscriptions import SubscriptionFile
from tidings.kinds.operators.functions.caller import Caller, Request
from tidings.kinds.operators.functions.catalogue import Catalogue, read_operators
from tidings.model.event import Event

CITY = Path(__file__).parents[4] / "examples" / "city"
PRINTED = {
    "chase": "{locIn(Bronx), chasePattern(policeCar,anyCar)}",
    "mob": "{locIn(Bronx), mobPattern(?people), (?people>50)}",
    "full streets": "{locWithin(TimesSquare,5000m), trafficPattern(congestion), pedestrianCount(?ped), (?ped>250)}",
    "accident without police": "{locIn(Bronx), trafficPattern(congestion), trafficPattern(accident), policeCarCount(?pol), (?pol<2)}",
    "too few on watch": "{distanceFrom(StatueOfLiberty,?x), (?x<1000m), tourBoatCount(?y), coastGuardBoatCount(?z), (?y>2*?z)}",
}
MATCHES = {
    "chase": {"p01"},
    "mob": {"p02", "p09"},
    "full streets": {"p03"},
    "accident without police": {"p04"},
    "too few on watch": {"p05"},
}


@pytest.fixture(scope="module")
def catalogue():
    return Catalogue(read_operators(str(CITY / "operators.py")))


@pytest.fixture(scope="module")
def events():
    return [Event.from_cloudevent(json.loads(line)) for line in (CITY / "events.jsonl").open()]


def texts():
    return {entry.id: entry.text for entry in SubscriptionFile.read(CITY / "subscriptions.txt").entries}


def test_the_subscriptions_are_as_printed():
    assert texts() == PRINTED


def test_events_of_something_else_match_nothing_and_fail_nothing(catalogue):
    for attributes in ({"title": "An article"}, {"lat": None, "lon": None}, {"lat": 40.8}):
        for text in [*texts().values(), "{trafficPattern(accident)}"]:
            assert ask(text, catalogue, Event("feed", attributes)).verdict is None


def test_every_subscription_is_accepted_and_has_its_matches(catalogue, events):
    found, doubts = {}, {}
    for id, text in texts().items():
        for event in events:
            said = ask(text, catalogue, event)
            if said.verdict == "match":
                found.setdefault(id, set()).add(event.id)
            elif said.verdict == "undecided":
                doubts[id, event.id] = said.message
    assert found == MATCHES
    told = "trafficPattern failed: ValueError: the picture of camera/columbus-circle could not be read"
    assert doubts == {("full streets", "p12"): told}


def test_there_is_one_of_every_kind(catalogue):
    assert sorted(each.name for each in catalogue if each.is_async) == ["chasePattern"]
    assert sorted(each.name for each in catalogue if each.batch) == ["pedestrianCount"]
    assert len(list(catalogue)) == 10


def test_a_batch_is_answered_in_its_order(catalogue, events):
    made = catalogue.find("pedestrianCount")
    answers = Caller().run([Request(made, event, token=event.id) for event in events])
    rows = {answer.token: answer.outcome.rows for answer in answers}
    assert (rows["p03"], rows["p04"], rows["p12"]) == (((412,),), ((0,),), ())
    assert [bool(answer.outcome.error) for answer in answers] == [False] * 11 + [True]


def test_unknown_names_are_told(catalogue, events):
    made = catalogue.find("locIn")
    (answer,) = Caller().run([Request(made, events[0], ("Bornx",))])
    assert answer.outcome.error == (
        "locIn failed: ValueError: unknown 'Bornx'; there are Bronx, Manhattan, StatenIsland"
    )
