"""The library's operators in subscriptions, together."""

import pytest
import sqlalchemy

from tests.kinds.operators.library.asking import ask
from tidings.errors import SubscriptionError
from tidings.kinds.operators.functions.catalogue import Catalogue
from tidings.kinds.operators.library import lookup, spatial, text
from tidings.model.event import Event

EVENT = Event(
    attributes={"lat": 53.55, "lon": 9.99, "text": "Storm surge: Hamburg closes its port", "customer": 7}
)


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('db') / 'x.db'}"
    with sqlalchemy.create_engine(url).begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE customer (id INTEGER, tier TEXT, credit REAL)"))
        connection.execute(sqlalchemy.text("INSERT INTO customer VALUES (7, 'gold', 250), (7, 'new', 10)"))
    places = {
        "Hamburg": "POLYGON ((9.7 53.4, 10.3 53.4, 10.3 53.7, 9.7 53.7, 9.7 53.4))",
        "Kiel": "POINT (10.13 54.32)",
    }
    sql = "SELECT tier, credit FROM customer WHERE id = :id"
    return Catalogue(
        [
            *spatial.operators(places),
            *text.operators({"storms": ["hurricane", "storm surge"], "ports": ["Hamburg", "Kiel"]}),
            lookup.operator("customer", url, sql, attributes={"id": "customer"}, outs=["tier", "credit"]),
            lookup.operator("gone", "sqlite:////no/such/file", "SELECT 1"),
        ]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "binding"),
    [
        ("{within(Hamburg), mentions(storms)}", {}),
        ("WHERE places(?where) AND mentioned(ports, ?where)", {"where": "Hamburg"}),
        ("{customer(gold, ?credit), (?credit > 100)}", {"credit": 250.0}),
        ("{customer(?tier, ?credit), (?credit < 100)}", {"tier": "new", "credit": 10.0}),
        ("{near(Kiel, 90km), NOT near(Kiel, 80km)}", {}),
        ("WHERE distance(Kiel, ?x) AND ?x < 80km", None),
        ("WHERE mentions(ports) AND NOT within(Hamburg)", None),
        ("WHERE places(Kiel)", None),
        ("WHERE mentioned(ports, ?port) AND within(?port)", {"port": "Hamburg"}),
        ("WHERE within(Kiel) OR mentions(storms)", {}),
    ],
)
def test_verdicts(catalogue, asked, binding):
    said = ask(asked, catalogue, EVENT)
    assert said.verdict == (None if binding is None else "match")
    assert said.binding == binding


def test_what_fails_is_undecided(catalogue):
    said = ask("WHERE mentions(storms) AND gone()", catalogue, EVENT)
    assert said.verdict == "undecided"
    assert said.message == (
        "gone failed: TidingsError: the database did not answer: unable to open database file"
    )
    assert ask("WHERE within(Kiel) AND gone()", catalogue, EVENT).verdict is None
    lost = Event(attributes={"lat": 530, "lon": 9})
    said = ask("WHERE within(Kiel)", catalogue, lost)
    assert (said.verdict, said.message) == (
        "undecided",
        "within failed: EventError: 'lat' is in degrees from -90 to 90, and is 530 here",
    )


def test_unknown_names_are_refused(catalogue):
    for asked, told in (
        ("WHERE within(Hambrg)", "unknown place 'Hambrg'; did you mean 'Hamburg'?"),
        ("WHERE mentions(strorms)", "unknown keyword set 'strorms'; did you mean 'storms'?"),
    ):
        with pytest.raises(SubscriptionError) as refused:
            ask(asked, catalogue, EVENT)
        assert told in str(refused.value)


def test_an_operator_may_have_another_name():
    within, *_ = spatial.operators({"Kiel": "POINT (10.13 54.32)"})
    renamed = Catalogue({"inTown": within})
    assert (
        ask("WHERE inTown(Kiel)", renamed, Event(attributes={"lat": 54.32, "lon": 10.13})).verdict == "match"
    )
    with pytest.raises(SubscriptionError, match="did you mean 'Kiel'"):
        ask("WHERE inTown(Kie)", renamed, EVENT)
