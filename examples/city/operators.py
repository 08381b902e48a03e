"""Operators for the cameras of a city: what stands behind the five subscriptions beside this file.

An event is a picture, as a recogniser has read it: where the camera is (`lat`, `lon`), how many of what it sees
(`seen`), the sizes of groups that move together (`groups`), who drives behind whom (`behind`), and the mean speed of
the cars in m/s (`speed`). The operators here only look at these attributes, so that the example runs anywhere; real
ones would run models over the picture or call a service, and take the time that each `cost` says, in seconds.

Three of them show what an operator can be: `chasePattern` is async, as one that calls a service would be,
`pedestrianCount` answers many calls at once (batch), and `mobPattern` yields a binding for each group it finds. An
event whose picture could not be read (`seen` is null) makes all that count things fail: the subscriptions that hang
on it are then reported as undecided, never silently matched or dropped. An event without coordinates or `seen` is not
of a camera: it does not match, and nothing fails.
"""

import asyncio
from math import asin, cos, radians, sin, sqrt

from tidings import Out, operator

# south, west, north, east
AREAS = {
    "Bronx": (40.785, -73.933, 40.915, -73.765),
    "Manhattan": (40.700, -74.020, 40.880, -73.907),
    "StatenIsland": (40.496, -74.256, 40.649, -74.052),
}
POINTS = {
    "TimesSquare": (40.7580, -73.9855),
    "StatueOfLiberty": (40.6892, -74.0445),
    "CityIsland": (40.8471, -73.7866),
}
CARS = {"car", "taxi", "policeCar", "bus"}


@operator(cost=10e-6)
def locIn(event, area: str):
    """Whether the camera is in the area."""
    south, west, north, east = known(area, AREAS)
    here = position(event)
    return here is not None and south <= here[0] <= north and west <= here[1] <= east


@operator(cost=10e-6)
def locWithin(event, place: str, metres: float):
    """Whether the camera is at most so far from the place."""
    distance = metres_from(event, place)
    return distance is not None and distance <= metres


@operator(cost=10e-6)
def distanceFrom(event, place: str, metres: Out[float]):
    """How far the camera is from the place."""
    distance = metres_from(event, place)
    if distance is not None:
        yield distance


@operator(cost=60e-3, timeout=2, retries=1)
async def chasePattern(event, hunter: str, hunted: str):
    """Whether one drives behind the other, fast; `anyCar` is every kind of car."""
    await asyncio.sleep(0)  # a real one waits here for a service that follows cars from camera to camera
    if event.attributes.get("speed", 0) < 15:
        return False
    return any(
        is_a(first, hunter) and is_a(second, hunted) for first, second in event.attributes.get("behind", [])
    )


@operator(cost=80e-3)
def mobPattern(event, people: Out[int]):
    """The number of people in each group that moves together; fewer than ten are no mob."""
    yield from (size for size in event.attributes.get("groups", []) if size >= 10)


@operator(cost=30e-3)
def trafficPattern(event, pattern: str):
    """`congestion`: many cars that hardly move. `accident`: a wreck on the road."""
    if known(pattern, {"congestion": 1, "accident": 2}) == 1:
        return sum(seen(event, kind) for kind in CARS) >= 20 and event.attributes.get("speed", 0) < 3
    return seen(event, "wreck") > 0


@operator(cost=20e-3, batch=True)
def pedestrianCount(calls, count: Out[int]):
    """How many people walk in each picture: one run of the model for all of them."""
    return [[seen(event, "pedestrian")] for (event,) in calls]


@operator(cost=15e-3)
def policeCarCount(event, count: Out[int]):
    yield seen(event, "policeCar")


@operator(cost=15e-3)
def tourBoatCount(event, count: Out[int]):
    yield seen(event, "tourBoat")


@operator(cost=15e-3)
def coastGuardBoatCount(event, count: Out[int]):
    yield seen(event, "coastGuardBoat")


def seen(event, kind):
    found = event.attributes.get("seen", {})
    if found is None:
        raise ValueError(f"the picture of {event.source} could not be read")
    return found.get(kind, 0)


def is_a(kind, wanted):
    return kind == wanted or (wanted == "anyCar" and kind in CARS)


def known(name, options):
    if name not in options:
        raise ValueError(f"unknown {name!r}; there are {', '.join(options)}")
    return options[name]


def position(event):
    """(latitude, longitude) of the camera; None for an event of something else."""
    found = event.attributes.get("lat"), event.attributes.get("lon")
    return None if None in found else found


def metres_from(event, place):
    """Along a great circle of a round Earth; None for an event without coordinates."""
    (latitude, longitude), here = known(place, POINTS), position(event)
    if here is None:
        return None
    north, east = radians(latitude - here[0]) / 2, radians(longitude - here[1]) / 2
    chord = sin(north) ** 2 + cos(radians(latitude)) * cos(radians(here[0])) * sin(east) ** 2
    return 2 * 6_371_009 * asin(sqrt(chord))
