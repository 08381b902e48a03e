"""Subscriptions of which many contain others: families of generalised copies. RSS cluster, Section 5.

`workloads.make` gives publications and seeds, of 10 edges each; with it alone hardly one subscription contains another. A seed with its
family is

    seed          n12 p4 n7, n7 p9 ?a, …, n3 price ?v, ?v > 60
    copies        each contains the one before: edges are left out, a node has become a variable, the bound is lower
    siblings      the seed with other nodes where the last copy, the root, has none: the root contains them too

so edges are of mixed numbers. `overlap` is the share of subscriptions that have a container; the others are roots, and seeds without a family.
"""

from __future__ import annotations

import random
from dataclasses import replace

from benchmarks import texts
from benchmarks.workloads import Parameters, Workload, make

COPIES = 5
"""The most containers that a subscription has."""
_TESTED = 0.2  # of the seeds
_VARIABLE = 0.3  # of the copies
_FEWEST_EDGES = 3

Triple = tuple[str, str, str]


class Subscription:
    """Triples as they are written, and the lower bound of ?v, if there is one."""

    def __init__(self, triples: list[Triple], bound: int | None) -> None:
        self.triples, self.bound = triples, bound

    @property
    def text(self) -> str:
        test = "" if self.bound is None else f" AND ?v > {self.bound}"
        return f"SELECT * WHERE {', '.join(f'({s}, {p}, {o})' for s, p, o in self.triples)}{test}"


def subscriptions(parameters: Parameters) -> tuple[Workload, list[tuple[str, str]]]:
    """A workload with publications, and (id, text) of the subscriptions with families."""
    rng = random.Random(parameters.seed)
    sizes = _family_sizes(rng, parameters.subscriptions, parameters.overlap)
    workload = make(replace(parameters, subscriptions=max(200, len(sizes))))
    found: list[str] = []
    for row, size in enumerate(sizes):
        found += [each.text for each in _family(rng, _seed(rng, workload, row), size, workload)]
    rng.shuffle(found)
    return workload, [(f"s{number}", text) for number, text in enumerate(found)]


def _family_sizes(rng: random.Random, total: int, overlap: float) -> list[int]:
    """Sizes that sum up to `total`, in which all but one of each family have a container."""
    contained, largest = round(total * overlap), max(COPIES + 1, round(2 / max(1 - overlap, 1e-3)))
    sizes: list[int] = []
    room = total - contained  # for roots
    while contained > 0 and room > 0:
        fewest = -(-contained // room)  # in each that is left, so that all find room
        size = min(contained, max(fewest, rng.randint(1, largest - 1)))
        sizes.append(size + 1)
        contained -= size
        room -= 1
    return sizes + [1] * room


def _seed(rng: random.Random, workload: Workload, row: int) -> Subscription:
    edges = workload.subscriptions
    columns = (edges.subject[row], edges.label[row], edges.object[row])
    triples = [
        (texts._name(s), f"p{p}", texts._name(o))
        for s, p, o in zip(*(column.tolist() for column in columns), strict=True)
    ]
    if rng.random() >= _TESTED:
        return Subscription(triples, None)
    node = rng.choice([s for s, _, _ in triples])
    return Subscription([*triples, (node, "price", "?v")], rng.randrange(20, 100))


def _family(rng: random.Random, seed: Subscription, size: int, workload: Workload) -> list[Subscription]:
    found = [seed]
    while len(found) < size and len(found) <= COPIES and len(found[-1].triples) > _FEWEST_EDGES:
        found.append(_wider(rng, found[-1], len(found)))
    kept = {node for s, _, o in found[-1].triples for node in (s, o)}
    free = sorted({node for s, _, o in seed.triples for node in (s, o) if node[0] == "n"} - kept)
    while len(found) < size:
        node, other = rng.choice(free or [""]), f"n{rng.randrange(workload.parameters.nodes)}"
        swapped = [(other if s == node else s, p, other if o == node else o) for s, p, o in seed.triples]
        found.append(Subscription(swapped, seed.bound))
    return found


def _wider(rng: random.Random, given: Subscription, number: int) -> Subscription:
    """A copy that contains the given one."""
    few = max(_FEWEST_EDGES, len(given.triples) - rng.choice((1, 2)))
    tested = [triple for triple in given.triples if triple[1] == "price"]
    others = [triple for triple in given.triples if triple[1] != "price"]
    triples = sorted(rng.sample(others, min(len(others), few - len(tested)))) + tested
    nodes = sorted({node for s, _, o in triples for node in (s, o) if node[0] == "n"})
    if len(nodes) > 2 and rng.random() < _VARIABLE:
        node, variable = rng.choice(nodes), f"?w{number}"
        triples = [(variable if s == node else s, p, variable if o == node else o) for s, p, o in triples]
    return Subscription(triples, None if given.bound is None else given.bound - rng.randint(1, 3))
