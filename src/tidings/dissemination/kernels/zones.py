"""Routing in a content-addressable network: zones are boxes that divide a space of integer points. Select-joins, A.

    low, high    one line for each zone: its first and last coordinate in every dimension
    first        where a zone's neighbours begin in `beside`

A region is a union of boxes that all hold its anchor p, so with a point it holds all points between it and p. Let q be the
point of a zone z nearest to p, d the first dimension in which they differ, and q' the point q moved one step towards p in d,
across z's border. If z meets the region, then q and q' are in it. So the zone that holds q' meets the region too, is nearer to
p, and is the one parent of z: all zones of a region are a tree below the zone that holds p, and a zone finds its children among
its neighbours without knowing any other.
"""

from __future__ import annotations

from tidings.arrays.compiled import compiled, inlined


@inlined
def nearest(anchor, low, high, zone, d):  # type: ignore[no-untyped-def]
    """The coordinate of the zone's point that is nearest to the anchor."""
    return min(max(anchor[d], low[zone, d]), high[zone, d])


@inlined
def is_parent(low, high, anchor, parent, zone):  # type: ignore[no-untyped-def]
    """Whether one zone holds the point next to another one, towards the anchor."""
    crossed = False
    for d in range(len(anchor)):
        q = nearest(anchor, low, high, zone, d)
        if not crossed and q != anchor[d]:
            crossed = True
            q += 1 if q < anchor[d] else -1
        if q < low[parent, d] or q > high[parent, d]:
            return False
    return crossed


@inlined
def meets(low, high, anchor, box_low, box_high, zone):  # type: ignore[no-untyped-def]
    """Whether the zone's point nearest to the anchor is in some box."""
    for box in range(len(box_low)):
        inside = True
        for d in range(len(anchor)):
            q = nearest(anchor, low, high, zone, d)
            if q < box_low[box, d] or q > box_high[box, d]:
                inside = False
                break
        if inside:
            return True
    return False


@compiled
def children(zones, region, zone, out):  # type: ignore[no-untyped-def]
    """The neighbours of a zone that meet the region and have it as their parent; how many."""
    found = 0
    for at in range(zones.first[zone], zones.first[zone + 1]):
        other = zones.beside[at]
        if is_parent(zones.low, zones.high, region.anchor, zone, other) and meets(
            zones.low, zones.high, region.anchor, region.low, region.high, other
        ):
            out[found] = other
            found += 1
    return found


@compiled
def spread(zones, region, root, out_zone, out_parent):  # type: ignore[no-untyped-def]
    """All zones that meet the region, from the root on, parents first, each with its parent's position; how many."""
    out_zone[0] = root
    out_parent[0] = -1
    reached, count = 0, 1
    while reached < count:
        found = children(zones, region, out_zone[reached], out_zone[count:])
        for at in range(count, count + found):
            out_parent[at] = reached
        count += found
        reached += 1
    return count


@inlined
def distance(zones, goal, zone):  # type: ignore[no-untyped-def]
    """From the zone's nearest point, in units of each dimension, of which only the inhabited part counts."""
    total = 0.0
    for d in range(len(goal)):
        q = nearest(goal, zones.low, zones.high, zone, d)
        q = min(max(q, zones.least[d]), zones.most[d])
        g = min(max(goal[d], zones.least[d]), zones.most[d])
        total += abs(float(q - g)) / float(zones.most[d] - zones.least[d] + 1)
    return total


@compiled
def route(zones, goal, start, out):  # type: ignore[no-untyped-def]
    """The zones from `start` to the one that holds the goal, both included; how many.

    The neighbour nearest to the goal is next. Where none is nearer by that measure, it is the one across the border in the first
    dimension that differs, which is no farther and lies nearer in fact: so the way ends.
    """
    zone, count = start, 1
    out[0] = start
    while True:
        here, best, best_distance, sure = distance(zones, goal, zone), -1, 0.0, -1
        for at in range(zones.first[zone], zones.first[zone + 1]):
            other = zones.beside[at]
            if is_parent(zones.low, zones.high, goal, other, zone):
                sure = other
            there = distance(zones, goal, other)
            if best < 0 or there < best_distance:
                best, best_distance = other, there
        if sure < 0:  # nothing differs
            return count
        zone = best if best_distance < here else sure
        out[count] = zone
        count += 1


@compiled
def holders(points, forms, first, region, form, zone, out):  # type: ignore[no-untyped-def]
    """The points of a zone that have a form and are in the region; how many."""
    found = 0
    for at in range(first[zone], first[zone + 1]):
        if forms[at] & form:
            for box in range(len(region.low)):
                inside = True
                for d in range(points.shape[1]):
                    if points[at, d] < region.low[box, d] or points[at, d] > region.high[box, d]:
                        inside = False
                        break
                if inside:
                    out[found] = at
                    found += 1
                    break
    return found


@compiled
def delivered(points, forms, first, region, form, zones, out, counts):  # type: ignore[no-untyped-def]
    """The points of several zones that have a form and are in the region, zone after zone, and how many of each."""
    total = 0
    for number in range(len(zones)):
        counts[number] = holders(points, forms, first, region, form, zones[number], out[total:])
        total += counts[number]
    return total


@inlined
def is_inside(low, high, region, zone):  # type: ignore[no-untyped-def]
    """Whether one box of the region holds the whole zone."""
    for box in range(len(region.low)):
        whole = True
        for d in range(low.shape[1]):
            if low[zone, d] < region.low[box, d] or high[zone, d] > region.high[box, d]:
                whole = False
                break
        if whole:
            return True
    return False


@compiled
def counted(inhabited, zones, region, form, visited, counts):  # type: ignore[no-untyped-def]
    """As `delivered`, without naming the points: those of a zone that lies in a box are not looked at, where all have the form."""
    for number in range(len(visited)):
        zone = visited[number]
        first, last = inhabited.first[zone], inhabited.first[zone + 1]
        if inhabited.common[zone] & form and is_inside(zones.low, zones.high, region, zone):
            counts[number] = last - first
            continue
        found = 0
        for at in range(first, last):
            if inhabited.forms[at] & form:
                for box in range(len(region.low)):
                    inside = True
                    for d in range(inhabited.points.shape[1]):
                        value = inhabited.points[at, d]
                        if value < region.low[box, d] or value > region.high[box, d]:
                            inside = False
                            break
                    if inside:
                        found += 1
                        break
        counts[number] = found
