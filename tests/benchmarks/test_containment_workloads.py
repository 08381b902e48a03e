"""Families of subscriptions: as many have a container as were requested, and few have more than five."""

import numpy as np
import pytest

from benchmarks.containment_workloads import COPIES, subscriptions
from benchmarks.workloads import Parameters
from tidings import Engine
from tidings.containment.contains import contains
from tidings.containment.forest import parents
from tidings.language.parser import parse
from tidings.model.taxonomy import Taxonomy


@pytest.mark.parametrize("overlap", [0.0, 0.5, 0.9])
def test_the_share_that_has_a_container_is_the_overlap(overlap):
    _, texts = subscriptions(Parameters(subscriptions=1500, shapes=50, overlap=overlap))
    assert len({id for id, _ in texts}) == len(texts) == 1500
    engine = Engine()
    assert engine.subscribe_many(texts) == []
    assert abs((parents(engine) >= 0).mean() - overlap) < 0.04


def test_edges_are_of_mixed_numbers_and_containers_few():
    _, texts = subscriptions(Parameters(subscriptions=120, shapes=20, overlap=0.7))
    queries = [parse(text) for _, text in texts]
    assert len({len(query.where.parts) for query in queries}) > 5
    assert sum("price" in text for _, text in texts) > 5
    containers = [sum(a is not b and contains(a, b, Taxonomy()).holds for a in queries) for b in queries[:40]]
    assert 1 < max(containers) <= COPIES + 1
    assert np.mean(containers) > 0.7
    assert subscriptions(Parameters(subscriptions=120, shapes=20, overlap=0.7))[1] == texts
