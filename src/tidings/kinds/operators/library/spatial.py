"""Spatial operators: whether an event is in a place or near it, how far, and in which places. On shapely (the extra `spatial`).

Places are the user's own, so the operators are made for a set of them. Coordinates are longitude and latitude in
degrees (WGS 84, as in GeoJSON), an edge is straight in them, and a border belongs to its place; a place across the
180th meridian is cut in two there, as GeoJSON has it. Distances are those of `sphere`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from tidings.errors import EventError, TidingsError
from tidings.kinds.operators.functions.operator import Operator, Out
from tidings.kinds.operators.library.names import KnownNames, NamingOperator
from tidings.kinds.operators.library.sphere import ArcOutline
from tidings.model.attributes import values_at
from tidings.model.event import Event

try:
    import shapely
    from shapely.geometry import shape
    from shapely.geometry.base import BaseGeometry
except ModuleNotFoundError:
    raise TidingsError("places need shapely; install Tidings with the extra 'spatial'") from None

# An edge that is straight in degrees is no great circle; pieces of a tenth of a degree stay within 1.5 m of one.
STEP = 0.1

Geometry: TypeAlias = BaseGeometry | Mapping[str, Any] | str


def operators(
    places: Mapping[str, Geometry] | str | Path, latitude: str = "lat", longitude: str = "lon"
) -> list[Operator]:
    """`within(place)`, `near(place, metres)`, `distance(place, ?metres)` and `places(?name)` for these places.

    `places` maps names to geometries: of shapely, as GeoJSON objects, or as WKT texts. Or it is a GeoJSON
    FeatureCollection, or the path of one; a feature's name is its property "name", else its id. `latitude` and
    `longitude` are the attributes (paths, such as `position.lat`) where an event has its point. An event without one
    is nowhere; one whose coordinates are no point on Earth is an error.
    """
    known = NamedPlaces(places, latitude, longitude)
    return [
        NamingOperator("within", known.within, cost=20e-6, names=known.names),
        NamingOperator("near", known.near, cost=200e-6, names=known.names),
        NamingOperator("distance", known.distance, cost=200e-6, names=known.names),
        NamingOperator("places", known.places, cost=50e-6, names=known.names),
    ]


class NamedPlaces:
    """Named geometries, each prepared for many lookups, a tree over all of them, and the operators as methods."""

    def __init__(
        self, places: Mapping[str, Geometry] | str | Path, latitude: str = "lat", longitude: str = "lon"
    ) -> None:
        self.paths = (latitude, longitude)
        self.geometries = {name: geometry(name, given) for name, given in named(places).items()}
        self.names = KnownNames("place", self.geometries)
        self.order, self.shapes = list(self.geometries), list(self.geometries.values())
        shapely.prepare(self.shapes)
        self.tree = shapely.STRtree(self.shapes)
        self.outlines: dict[int, ArcOutline] = {}  # built when a distance is first computed

    def __reduce__(self) -> tuple[Any, ...]:
        # What is prepared does not travel to another process.
        return NamedPlaces, (self.geometries, *self.paths)

    def within(self, event: Event, place: str) -> bool:
        """Whether the event is in the place."""
        number, point = self.names[place], point_of(event, *self.paths)
        return point is not None and self._holds(number, point)

    def near(self, event: Event, place: str, metres: float) -> bool:
        """Whether the event is in the place or at most so far from it."""
        number, point = self.names[place], point_of(event, *self.paths)
        return point is not None and self._metres(number, point) <= metres

    def distance(self, event: Event, place: str, metres: Out[float]) -> Iterator[float]:
        """The distance of the event from the nearest point of the place; 0 inside."""
        number, point = self.names[place], point_of(event, *self.paths)
        if point is not None:
            yield self._metres(number, point)

    def places(self, event: Event, name: Out[str]) -> Iterator[str]:
        """Every place that the event is in, in the order in which the places were given."""
        point = point_of(event, *self.paths)
        if point is not None:
            latitude, longitude = point
            found = self.tree.query(shapely.Point(longitude, latitude), predicate="intersects")
            yield from (self.order[number] for number in sorted(found.tolist()))

    def _holds(self, number: int, point: tuple[float, float]) -> bool:
        latitude, longitude = point
        return bool(shapely.intersects_xy(self.shapes[number], longitude, latitude))

    def _metres(self, number: int, point: tuple[float, float]) -> float:
        if self._holds(number, point):
            return 0.0
        if number not in self.outlines:
            self.outlines[number] = outline(self.shapes[number])
        return self.outlines[number].metres(*point)


def point_of(event: Event, latitude: str, longitude: str) -> tuple[float, float] | None:
    """The position of the event: (latitude, longitude), or None if it has none."""
    found = []
    for path, most in ((latitude, 90), (longitude, 180)):
        values = values_at(event.attributes, path)
        if len(values) > 1:
            raise EventError(f"an event has one point, and this one has {len(values)} values at {path!r}")
        for value in values:
            try:
                degrees = float(value) if not isinstance(value, bool) else most + 1
            except (TypeError, ValueError):
                degrees = most + 1
            if not -most <= degrees <= most:  # nor is nan
                raise EventError(f"{path!r} is in degrees from -{most} to {most}, and is {value!r} here")
            found.append(degrees)
    if len(found) == 1:
        raise EventError(
            f"an event has both {latitude!r} and {longitude!r} or neither; this one has one of them"
        )
    return (found[0], found[1]) if found else None


def named(places: Mapping[str, Any] | str | Path) -> Mapping[str, Any]:
    """Names and geometries, out of whatever the user has them in."""
    if isinstance(places, str | Path):
        try:
            places = json.loads(Path(places).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise TidingsError(f"no GeoJSON file: {error}; give the path of a FeatureCollection") from None
        if not isinstance(places, Mapping) or places.get("type") != "FeatureCollection":
            raise TidingsError("a GeoJSON file of places is a FeatureCollection; this one is something else")
    if not isinstance(places, Mapping) or not all(isinstance(name, str) for name in places):
        raise TidingsError(
            "places are a dict from names to geometries, or a FeatureCollection; give one of them"
        )
    if places.get("type") != "FeatureCollection":
        return places
    found: dict[str, Any] = {}
    for number, feature in enumerate(places["features"]):
        name = (feature.get("properties") or {}).get("name", feature.get("id"))
        if name is None:
            raise TidingsError(f'feature {number} has no name; give it a property "name" or an id')
        if str(name) in found:
            raise TidingsError(f"two features are named {str(name)!r}; each place has a name of its own")
        found[str(name)] = feature.get("geometry")
    return found


def geometry(name: str, given: Geometry) -> BaseGeometry:
    """One place's geometry, if it can be one on Earth."""
    wanted = "give a geometry of shapely, a GeoJSON object or a WKT text"
    try:
        if isinstance(given, BaseGeometry):
            found = given
        elif isinstance(given, str):
            found = shapely.from_wkt(given)
        else:
            found = shape(given["geometry"] if given.get("type") == "Feature" else given)
    except (shapely.errors.ShapelyError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise TidingsError(f"place {name!r} cannot be read: {error}; {wanted}") from None
    if found.is_empty:
        raise TidingsError(f"place {name!r} is empty; {wanted}")
    if not found.is_valid:
        reason = shapely.is_valid_reason(found)
        raise TidingsError(f"place {name!r} is no valid geometry: {reason}; try shapely.make_valid")
    west, south, east, north = found.bounds
    if west < -180 or east > 180 or south < -90 or north > 90:
        raise TidingsError(
            f"place {name!r} reaches from {west:g}, {south:g} to {east:g}, {north:g}; "
            "coordinates are degrees, longitude first, then latitude"
        )
    return shapely.force_2d(found)


def outline(found: BaseGeometry) -> ArcOutline:
    """The rings, lines and points of a geometry."""
    parts = shapely.get_parts(shapely.segmentize(found, STEP))
    while (shapely.get_type_id(parts) >= shapely.GeometryType.MULTIPOINT).any():
        parts = shapely.get_parts(parts)
    areas = shapely.get_type_id(parts) == shapely.GeometryType.POLYGON
    lines = [*shapely.get_rings(parts[areas]), *parts[~areas]]
    return ArcOutline(*shapely.get_coordinates(lines, return_index=True))
