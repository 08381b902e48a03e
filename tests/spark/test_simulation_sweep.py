"""A sweep of the simulator as a Spark job: the same results as one value after another."""

from tidings.dissemination.simulator.runs import run
from tidings.dissemination.simulator.scenario import scenario_of
from tidings.spark.joins.simulation_sweep import sweep


def test_a_sweep_on_spark(spark) -> None:
    scenario = scenario_of(
        {
            "schemes": ["Ref-SJ-Clu+"],
            "network": {"nodes": 10},
            "workload": {"subscriptions": 300, "r_rows": 100, "s_rows": 100, "changes": 20},
            "sweep": {"caches.repository": [0, 5, 50]},
        }
    )
    expected = [result for value, one in scenario.runs() for result in run(one, value)]
    assert sweep(spark, scenario) == expected
    assert [result.value for result in expected] == [0, 5, 50]
