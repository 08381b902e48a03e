"""The content-addressable network: zones divide the space, and a message reaches each zone of its region once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dissemination.schemes.worlds import BINARY, STAR, binary_server, changes, ranges, star
from tests.examples import examples, seeds
from tidings.dissemination.kernels import zones as kernels
from tidings.dissemination.network.can import ContentAddressable
from tidings.dissemination.network.regions import Region, space_of
from tidings.dissemination.network.zones import Zones
from tidings.dissemination.schemes import SCHEMES, Server, audience
from tidings.errors import TidingsError
from tidings.kinds.joins.schema.order_keys import HIGHEST, LOWEST

EDGE = 14  # coordinates of points and boxes


def some_zones(rng: np.random.Generator, dimensions: int, nodes: int) -> Zones:
    points = rng.integers(0, EDGE, (int(rng.integers(0, 60)), dimensions))
    zones = Zones(points, 0, [some_region(rng, dimensions) for _ in range(int(rng.integers(0, 5)))])
    for node in range(1, nodes):
        zones.visits += rng.integers(0, 20, len(zones))
        zones.join(node)
    return zones


def some_region(rng: np.random.Generator, dimensions: int) -> Region:
    """Boxes that hold one anchor: from it up or down in each dimension, at times to the end of the space."""
    anchor = rng.integers(0, EDGE, dimensions)
    anchor = np.where(
        rng.random(dimensions) < 0.5, np.where(np.arange(dimensions) % 2, HIGHEST, LOWEST), anchor
    )
    other = rng.integers(0, EDGE, (int(rng.integers(1, 4)), dimensions))
    return Region(np.minimum(anchor, other), np.maximum(anchor, other), anchor)


def meeting(zones: Zones, region: Region) -> set[int]:
    """By brute force: the zones that have a point in common with some box."""
    return {
        zone
        for zone in range(len(zones))
        if any(
            (np.maximum(zones.low[zone], low) <= np.minimum(zones.high[zone], high)).all()
            for low, high in zip(region.low, region.high, strict=True)
        )
    }


def touching(zones: Zones, one: int, other: int) -> bool:
    """By brute force: the zones share a border in one dimension, and a stretch in every other."""
    borders = 0
    for d in range(zones.low.shape[1]):
        low, high = zones.low[:, d].tolist(), zones.high[:, d].tolist()
        if high[one] < low[other] or high[other] < low[one]:
            if high[one] + 1 != low[other] and high[other] + 1 != low[one]:
                return False
            borders += 1
    return borders == 1


@examples(60)
@given(st.integers(0, 2**32), st.sampled_from([2, 4, 6]), st.integers(1, 25))
def test_zones_divide_the_space(seed: int, dimensions: int, nodes: int) -> None:
    rng = np.random.default_rng(seed)
    zones = some_zones(rng, dimensions, nodes)
    for point in rng.integers(-3, EDGE + 3, (40, dimensions)):
        assert ((zones.low <= point) & (point <= zones.high)).all(axis=1).sum() == 1
    for point, zone in zip(zones.points, zones.zone_of.tolist(), strict=True):
        assert zones.at(point) == zone
    for zone in range(len(zones)):
        expected = {other for other in range(len(zones)) if other != zone and touching(zones, zone, other)}
        assert set(zones.beside(zone)) == expected
        assert len(zones.beside(zone)) == len(expected)


@examples(100)
@given(st.integers(0, 2**32), st.sampled_from([2, 4, 6]), st.integers(1, 25))
def test_every_zone_of_a_region_is_reached_once(seed: int, dimensions: int, nodes: int) -> None:
    rng = np.random.default_rng(seed)
    zones = some_zones(rng, dimensions, nodes)
    for _ in range(5):
        region, start = some_region(rng, dimensions), int(rng.integers(len(zones)))
        tree = zones.tree(region, start)
        assert sorted(tree.zones.tolist()) == sorted(meeting(zones, region))
        for zone, parent in zip(tree.zones.tolist()[1:], tree.parents.tolist()[1:], strict=True):
            assert zone in zones.beside(int(tree.zones[parent]))
        path = tree.path.tolist()
        assert path[0] == start
        assert path[-1] == tree.zones[0] == zones.at(region.anchor)
        assert len(set(path)) == len(path)
        assert all(after in zones.beside(before) for before, after in pairwise(path))


def test_a_zone_finds_its_children_by_itself() -> None:
    rng = np.random.default_rng(1)
    zones, region = some_zones(rng, 4, 20), some_region(rng, 4)
    tree = zones.tree(region, 0)
    out = np.empty(len(zones), np.int32)
    for position, zone in enumerate(tree.zones.tolist()):
        count = kernels.children(zones.arrays, region, zone, out)
        assert out[:count].tolist() == tree.zones[tree.parents == position].tolist()


def check(network: ContentAddressable, scheme, change) -> int:  # type: ignore[no-untyped-def]
    """Everybody whom a message is for gets it once, from a node that was sent it; how many got something."""
    total = 0
    for message in scheme.messages(change):
        if message.targets is not None:
            continue
        ways = list(network.visits(message))
        got = np.concatenate([np.empty(0, np.int64), *(way.subscriptions for way in ways)])
        assert np.sort(got).tolist() == audience(message, scheme.server).tolist()
        total += len(got)
        for way, counted in zip(ways, network.visits(message, named=False), strict=True):
            assert counted.counts.tolist() == way.counts.tolist()
            assert way.parents.tolist()[:1] == [-1]
            assert (way.parents[1:] < np.arange(1, len(way.parents))).all()
            assert way.counts.sum() == len(way.subscriptions)
            assert set(way.nodes.tolist()) <= set(network.nodes)
    return total


@pytest.mark.parametrize("name", ["Rel-Sel", "Ref-J", "Ref-J+", "Ref-SJ-Sub", "Ref-SJ-Clu", "Ref-SJ-Clu+"])
@pytest.mark.parametrize("seed", seeds(1, 10))
def test_a_message_reaches_its_audience(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    server = binary_server(seed, 60)
    sample = [m for change in changes(rng, server, 5) for m in SCHEMES[name](server).messages(change)]
    network, scheme, got = ContentAddressable(server, 12, sample), SCHEMES[name](server), 0
    for number, change in enumerate(changes(rng, server, 40)):
        if number % 10 == 5:
            network.join()
            network.leave(int(rng.choice(network.nodes[1:])))
        if number == 20:
            server.unsubscribe(7)
            network.unsubscribe(7)
        got += check(network, scheme, change)
    assert got > 0


@pytest.mark.parametrize("name", ["Rel-Sel", "Ref-J", "Ref-SJ-Clu+"])
def test_joins_of_many_tables(name: str) -> None:
    rng = np.random.default_rng(3)
    server = Server(STAR)
    for others in (("r",), ("r", "t"), ("r", "t", "u"), ("t", "u")):
        signature = star(*others)
        chosen = [next(signature.semijoins(table)) for table in signature.tables]
        server.subscribe(signature, [ranges(rng, 30) for _ in signature.tables], chosen)
    network, scheme = ContentAddressable(server, 9), SCHEMES[name](server)
    assert sum(check(network, scheme, change) for change in changes(rng, server, 40)) > 0


def test_the_server_is_where_anchors_lie() -> None:
    server = binary_server(1, 80)
    network = ContentAddressable(server, 20)
    (message,) = SCHEMES["Rel-Sel"](server).messages(next(changes(np.random.default_rng(1), server, 1)))
    (way,) = network.visits(message)
    assert way.nodes[0] == 0
    assert space_of(BINARY) == space_of(next(BINARY.semijoins("s")))


def test_what_cannot_be() -> None:
    network = ContentAddressable(binary_server(1, 5), 2)
    with pytest.raises(TidingsError, match="node 0 cannot leave"):
        network.leave(0)
    zones = Zones(np.zeros((3, 2), np.int64), 0)
    with pytest.raises(TidingsError, match="the last node"):
        zones.leave(0)
