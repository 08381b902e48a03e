"""Places: in, near, how far, which; and what is refused."""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import shapely

from tidings.errors import EventError, SubscriptionError, TidingsError
from tidings.formats.namespaces import XSD
from tidings.kinds.operators.library import spatial
from tidings.language.query import Call, Parameter, Variable
from tidings.model.event import Event
from tidings.model.terms import Literal

PARK = {"type": "Polygon", "coordinates": [[[-73.98, 40.76], [-73.95, 40.76], [-73.95, 40.80], [-73.98, 40.80], [-73.98, 40.76]]]}  # fmt: skip
PLACES = {
    "park": PARK,
    "city": "POLYGON ((-74.3 40.5, -73.7 40.5, -73.7 40.95, -74.3 40.95, -74.3 40.5))",
    "statue": shapely.Point(-74.0445, 40.6892),
    "islands": "GEOMETRYCOLLECTION (MULTIPOINT (0 0, 1 1), POLYGON ((5 5, 6 5, 6 6, 5 6, 5 5), (5.4 5.4, 5.6 5.4, 5.6 5.6, 5.4 5.6, 5.4 5.4)), LINESTRING (10 0, 10 1))",
}


def made(places=PLACES, **options):
    return {each.name: each for each in spatial.operators(places, **options)}


@pytest.fixture(scope="module")
def ask():
    return made()


def at(latitude, longitude):
    return Event(attributes={"lat": latitude, "lon": longitude})


def iter_of(answer):
    return (answer,) if isinstance(answer, bool) else answer


IN_THE_PARK = at(40.78, -73.97)


def test_within(ask):
    assert ask["within"](IN_THE_PARK, "park") is True
    assert ask["within"](at(40.70, -73.97), "park") is False
    assert ask["within"](at(40.76, -73.96), "park") is True  # a border belongs to its place
    assert ask["within"](at("40.78", "-73.97"), "park") is True  # feeds write numbers as texts
    assert ask["within"](at(5.5, 5.5), "islands") is False  # in the hole
    assert ask["within"](at(5.2, 5.2), "islands") is True


def test_distance_is_to_the_nearest_point(ask):
    degree = 111_195.08
    assert list(ask["distance"](IN_THE_PARK, "park")) == [0.0]
    assert list(ask["distance"](at(40.75, -73.96), "park")) == [pytest.approx(0.01 * degree, rel=1e-4)]
    # East of it a degree of longitude is shorter by the cosine of the latitude.
    east = 0.01 * degree * np.cos(np.radians(40.78))
    assert list(ask["distance"](at(40.78, -73.94), "park")) == [pytest.approx(east, rel=1e-4)]
    assert list(ask["distance"](at(5.5, 5.5), "islands")) == [pytest.approx(0.1 * degree, rel=0.01)]
    assert list(ask["distance"](at(2, 1), "islands")) == [pytest.approx(degree, rel=1e-4)]
    assert list(ask["distance"](at(0.5, 11), "islands")) == [pytest.approx(degree, rel=1e-4)]


def test_a_long_edge_is_straight_in_degrees():
    """The 60th parallel is no great circle: its chord over 60 degrees runs 4 degrees further north."""
    ask = made({"north": "POLYGON ((0 60, 60 60, 60 89, 0 89, 0 60))"})
    (metres,) = ask["distance"](at(59, 30), "north")
    assert metres == pytest.approx(111_195, rel=1e-3)


def test_near_counts_the_bound(ask):
    event = at(40.75, -73.96)
    (metres,) = ask["distance"](event, "park")
    assert ask["near"](event, "park", metres) is True
    assert ask["near"](event, "park", metres - 0.01) is False
    assert ask["near"](IN_THE_PARK, "park", 0.0) is True


def test_places_that_hold_the_point(ask):
    assert list(ask["places"](IN_THE_PARK)) == ["park", "city"]
    assert list(ask["places"](at(40.6892, -74.0445))) == ["city", "statue"]
    assert list(ask["places"](at(-40, 100))) == []


def test_an_event_without_a_point_is_nowhere(ask):
    event = Event(attributes={"lat": None, "topic": "parks"})
    assert ask["within"](event, "park") is False
    assert ask["near"](event, "park", 1e9) is False
    assert list(ask["distance"](event, "park")) == []
    assert list(ask["places"](event)) == []


@pytest.mark.parametrize(
    ("latitude", "longitude", "told"),
    [
        (91, 0, "'lat' is in degrees from -90 to 90, and is 91 here"),
        (0, 200, "'lon' is in degrees from -180 to 180, and is 200 here"),
        ("north", 0, "is 'north' here"),
        (float("nan"), 0, "is nan here"),
        (True, 0, "is True here"),
        ({"deg": 1}, 0, "is {'deg': 1} here"),
        ([1, 2], 0, "has 2 values at 'lat'"),
        (1, None, "this one has one of them"),
    ],
)
@pytest.mark.parametrize("name", ["within", "near", "distance", "places"])
def test_nonsense_is_an_error(ask, name, latitude, longitude, told):
    inputs = {"within": ["park"], "near": ["park", 5.0], "distance": ["park"], "places": []}[name]
    with pytest.raises(EventError, match=told):
        any(iter_of(ask[name](at(latitude, longitude), *inputs)))


def test_the_point_may_be_deep_in_the_event():
    ask = made(latitude="position.latitude", longitude="position.longitude")
    event = Event(attributes={"position": {"latitude": 40.78, "longitude": -73.97}})
    assert ask["within"](event, "park") is True


def test_unknown_places_are_refused_with_the_subscription(ask):
    number = Literal("5", XSD + "integer")
    for name, rest in (("within", ()), ("near", (number,)), ("distance", (Variable("x"),)), ("places", ())):
        ask[name].check(Call(name, (Literal("park"), *rest)))
        ask[name].check(Call(name, (Variable("where"), *rest)))
        ask[name].check(Call(name, (Parameter("where"), *rest)))
        with pytest.raises(SubscriptionError, match="unknown place 'prak'; did you mean 'park'?"):
            ask[name].check(Call(name, (Literal("prak"), *rest)))
    with pytest.raises(SubscriptionError, match="unknown place 'zoo'; there are park, city, statue, islands"):
        ask["within"](IN_THE_PARK, "zoo")
    with pytest.raises(SubscriptionError, match="write it as"):
        ask["near"].check(Call("near", (Literal("park"),)))


def test_a_feature_collection_and_its_file(tmp_path):
    collection = {
        "type": "FeatureCollection",
        "features": [
            {"type": "Feature", "properties": {"name": "park"}, "geometry": PARK},
            {"type": "Feature", "id": 7, "properties": None, "geometry": {"type": "Point", "coordinates": [1, 2, 3]}},
        ],
    }  # fmt: skip
    (tmp_path / "places.geojson").write_text(json.dumps(collection))
    for given in (collection, tmp_path / "places.geojson", str(tmp_path / "places.geojson")):
        ask = made(given)
        assert list(ask["places"](IN_THE_PARK)) == ["park"]
        assert list(ask["places"](at(2, 1))) == ["7"]


@pytest.mark.parametrize(
    ("places", "told"),
    [
        ({"x": "POLYGON ((0 0, 1 1"}, "place 'x' cannot be read"),
        ({"x": {"type": "Polygone"}}, "place 'x' cannot be read"),
        ({"x": None}, "place 'x' cannot be read"),
        ({"x": 5}, "place 'x' cannot be read"),
        ({"x": "POINT EMPTY"}, "place 'x' is empty"),
        ({"x": "POLYGON ((0 0, 1 1, 1 0, 0 1, 0 0))"}, "Self-intersection.*make_valid"),
        ({"x": "POINT (40.7 -120)"}, "longitude first"),
        ({"type": "FeatureCollection", "features": [{"geometry": PARK}]}, "feature 0 has no name"),
        ({"type": "FeatureCollection", "features": [{"id": 1, "geometry": PARK}] * 2}, "two features are named '1'"),
        ("nowhere.geojson", "no GeoJSON file"),
        ([PARK], "places are a dict"),
        ({1: PARK}, "places are a dict"),
    ],
)  # fmt: skip
def test_what_is_no_place_is_refused(places, told):
    with pytest.raises(TidingsError, match=told):
        spatial.operators(places)


def test_a_file_of_something_else_is_refused(tmp_path):
    (tmp_path / "park.geojson").write_text(json.dumps(PARK))
    with pytest.raises(TidingsError, match="is a FeatureCollection"):
        spatial.operators(tmp_path / "park.geojson")


def test_operators_go_to_other_processes(ask):
    away = {each.name: each for each in pickle.loads(pickle.dumps(list(ask.values())))}
    assert [each.signature for each in away.values()] == [each.signature for each in ask.values()]
    assert [each.cost for each in away.values()] == [each.cost for each in ask.values()]
    assert list(away["places"](IN_THE_PARK)) == ["park", "city"]
    assert away["within"](IN_THE_PARK, "park") is True
    with pytest.raises(SubscriptionError, match="did you mean 'park'"):
        away["within"].check(Call("within", (Literal("prak"),)))


def test_many_places_agree_with_one_by_one_in_many_threads():
    random = np.random.default_rng(5)
    boxes = {}
    for number in range(60):
        west, south = random.uniform(-10, 10, 2)
        boxes[f"b{number}"] = shapely.box(
            west, south, west + random.uniform(0, 5), south + random.uniform(0, 5)
        )
    ask = made(boxes)
    events = [at(*random.uniform(-12, 12, 2)) for _ in range(60)]

    def both(event):
        inside = [name for name in boxes if ask["within"](event, name)]
        apart = [name for name in boxes if next(ask["distance"](event, name)) > 0]
        return list(ask["places"](event)), inside, sorted({*boxes} - {*apart}, key=list(boxes).index)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(both, events))
    assert all(one == two == three for one, two, three in found)
    assert any(one for one, _, _ in found)
