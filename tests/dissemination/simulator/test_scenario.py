"""Scenarios: what they measure, and one sentence with the key for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidings.dissemination.simulator.results import Result
from tidings.dissemination.simulator.runs import run
from tidings.dissemination.simulator.scenario import Scenario, ScenarioError, read, scenario_of

SMALL = {
    "schemes": ["Enum-SJ", "Rel-Sel", "Ref-J+", "Ref-SJ-Clu+"],
    "network": {"nodes": 30, "routers": 100},
    "workload": {"subscriptions": 2_000, "r_rows": 300, "s_rows": 300, "payload": 500, "changes": 60},
}


def by_scheme(content: dict[str, object]) -> dict[str, Result]:
    return {result.scheme: result for result in run(scenario_of(content))}


def test_schemes_side_by_side() -> None:
    plain = by_scheme(SMALL)
    assert list(plain) == SMALL["schemes"]
    assert plain["Ref-SJ-Clu+"].traffic < min(plain[name].traffic for name in ("Rel-Sel", "Ref-J+"))
    assert plain["Enum-SJ"].latency_hops == 1
    assert all(result.latency_ms > 0 for result in plain.values())
    cached = by_scheme({**SMALL, "caches": {"repository": 1_000}})
    assert cached["Ref-J+"].traffic < plain["Ref-J+"].traffic / 2
    assert cached["Ref-J+"].latency_hops == plain["Ref-J+"].latency_hops
    assert cached["Enum-SJ"] == plain["Enum-SJ"]
    # What a subscriber gets is the same, whoever keeps payloads.
    paper = by_scheme({**SMALL, "caches": {"repository": 1_000, "names_lost": False}})
    assert paper["Ref-J+"].hops == plain["Ref-J+"].hops


def test_loss_and_churn_cost_traffic() -> None:
    lossy = by_scheme({**SMALL, "loss": {"packet": 0.5, "acknowledgment": 0.5}})
    plain = by_scheme(SMALL)
    assert lossy["Ref-J+"].hops > 1.5 * plain["Ref-J+"].hops
    churned = by_scheme({**SMALL, "network": {"nodes": 30, "churn": 5, "kind": "tree"}})
    assert churned["Ref-J+"].messages == plain["Ref-J+"].messages


def test_a_chain_of_three_tables() -> None:
    workload = {"tables": 3, "subscriptions": 500, "r_rows": 300, "s_rows": 200, "t_rows": 200, "changes": 60}
    names = ["Enum-J", "Rel-Sel", "Ref-J", "Ref-SJ-Clu+", "Ref-SJ-Full", "Ref-SJ-Full+"]
    network = {"kind": "tree", "nodes": 20}
    content = {"schemes": names, "network": network, "workload": {**workload, "payload": 1_000}}
    found = by_scheme(content)
    binary, full, plus = (found[name] for name in names[3:])
    # Of the rows that join a neighbour, fewer occur in the whole join.
    assert 0 < full.hops == plus.hops < binary.hops < found["Rel-Sel"].hops
    assert plus.traffic < full.traffic < binary.traffic < found["Ref-J"].traffic
    routed = by_scheme({**content, "schemes": names[:4], "network": {"nodes": 20}})
    assert routed["Enum-J"].traffic == found["Enum-J"].traffic > 0
    assert 0 < routed["Ref-SJ-Clu+"].traffic < routed["Rel-Sel"].traffic


def test_longer_semijoins_of_two_tables_reach_the_same() -> None:
    network = {"kind": "tree", "nodes": 30}
    found = by_scheme({**SMALL, "schemes": ["Ref-SJ-Clu", "Ref-SJ-Full", "Ref-SJ-Full+"], "network": network})
    assert len({result.hops for result in found.values()}) == 1


def test_a_sweep() -> None:
    scenario = scenario_of({**SMALL, "sweep": {"caches.repository": [0, 50]}})
    assert [(value, one.caches.repository) for value, one in scenario.runs()] == [(0, 0), (50, 50)]  # type: ignore[union-attr]
    assert Scenario().runs() == [(None, Scenario())]


MISTAKES = [
    ({"network": {"node": 5}}, "there is no setting 'network.node'; did you mean 'nodes'?"),
    ({"newtork": {}}, "there is no setting 'newtork'; did you mean 'network'?"),
    ({"network": {"nodes": "many"}}, "'network.nodes' is 'many'; it needs a whole number, such as 100"),
    ({"network": {"nodes": True}}, "'network.nodes' is True; it needs a whole number, such as 100"),
    ({"network": {"nodes": 0}}, "'network.nodes' is 0; it needs a number from 1 to 100,000"),
    ({"network": {"kind": "ring"}}, "'network.kind' is 'ring'; it needs \"can\" or \"tree\""),
    ({"network": 5}, r"'network' is 5; it needs a section \[network\] of settings"),
    ({"loss": {"packet": 2}}, "'loss.packet' is 2; it needs a number from 0 to 0.9"),
    ({"caches": {"names_lost": 1}}, "'caches.names_lost' is 1; it needs true or false, such as true"),
    ({"schemes": ["Ref-SJ-Clu"[:-1]]}, "'schemes' names 'Ref-SJ-Cl', which is none; did you mean 'Ref-SJ-Clu'?"),
    ({"schemes": []}, r"'schemes' is \[\]; it needs a list of names"),
    ({"sweep": {"caches.repo": [1]}}, "there is no setting 'sweep.caches.repo'; did you mean 'caches.repository'?"),
    ({"sweep": {"caches.repository": 5}}, "'sweep.caches.repository' is 5; it needs a list of values"),
    ({"schemes": ["Ref-SJ-Full+"]}, "'schemes' names 'Ref-SJ-Full\\+', which needs a network whose 'kind' is \"tree\""),
    ({"workload": {"tables": 4}}, "'workload.tables' is 4; it needs a number from 2 to 3"),
    ({"sweep": {}}, "'sweep' needs one setting and its values"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "sentence"), MISTAKES)
def test_a_mistake_is_one_sentence_with_its_key(content: dict[str, object], sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        scenario_of(content)


def test_a_file_that_is_no_toml(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text("nodes = = 5")
    with pytest.raises(ScenarioError, match="bad.toml is no TOML"):
        read(path)
