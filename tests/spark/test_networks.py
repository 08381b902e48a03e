"""Places in networks in Spark: the source of an event is the node that publishes it."""

from tidings import Engine, Event
from tidings.kinds.networks.expressions import read_condition
from tidings.kinds.networks.naive import reached
from tidings.kinds.networks.network import Network
from tidings.spark import match, run
from tidings.storage import versions
from tidings.storage.event_log import EventLog

from .conftest import expected, rows

SUBSCRIBERS = ("east", "west", "all")


def exchange() -> Network:
    """Two desks, a hub in a circle with another, and three subscribers behind them."""
    network = Network()
    for name, where in (
        ("desk", None),
        ("night desk", "hour >= 20 OR hour < 6"),
        ("hub", "price < 100"),
        ("second hub", None),
        ("east", "topic = 'oil'"),
        ("west", None),
        ("all", None),
    ):
        network.add_node(name, where)
    for source, target, where in (
        ("desk", "hub", None),
        ("night desk", "second hub", None),
        ("hub", "second hub", "EXISTS topic"),
        ("second hub", "hub", None),
        ("hub", "east", None),
        ("second hub", "west", "topic != 'oil'"),
        ("second hub", "all", None),
    ):
        network.add_edge(source, target, where, cost=0.5 if source == "hub" else 0.0)
    return network


def placed(folder):
    engine = Engine(networks={"exchange": exchange()})
    for node in SUBSCRIBERS:
        engine.subscribe(node, f"WHERE hour >= 0 VIA exchange AT '{node}'")
    engine.subscribe("anywhere", "WHERE price = 7")
    versions.publish(folder, engine)
    return folder


def impressions(count: int) -> list[dict]:
    return [
        {
            "id": str(i),
            "source": ("desk", "night desk", "hub", "nobody's", None)[i % 5],
            "hour": i % 24,
            "price": i * 7 % 120,
            "topic": ("oil", "gas", None)[i % 3],
        }
        for i in range(count)
    ]


def test_a_batch_equals_one_process_and_a_search_through_the_graph(spark, tmp_path):
    index, given = placed(tmp_path / "index"), impressions(120)
    frame = spark.createDataFrame(given, "id string, source string, hour int, price int, topic string")
    found = rows(match(frame.repartition(3), index).toArrow())
    assert found == rows(versions.open(index, versions.current(index)).publish_many(_events(given)))
    nodes = {name: where and read_condition(where, name) for name, where in exchange().nodes()}
    edges = {(a, b): where and read_condition(where, a) for a, b, where in exchange().edges()}
    wanted = {
        (event.id, node)
        for event in _events(given)
        for node in reached(nodes, edges, event.source, event.attributes) & set(SUBSCRIBERS)
    }
    assert {(row[0], row[1]) for row in found if row[1] != "anywhere"} == wanted
    assert len(wanted) > 40
    assert {row[3] for row in found if row[1] == "east"} == {(("exchange.cost", "0.5"),)}


def test_a_frame_without_sources_reaches_no_place(spark, tmp_path):
    frame = spark.sql("SELECT '1' AS id, 7 AS price, 3 AS hour")
    assert [row[1] for row in rows(match(frame, placed(tmp_path / "index")).toArrow())] == ["anywhere"]


def test_a_running_stream_sees_a_changed_network_from_the_next_micro_batch_on(spark, tmp_path):
    index, batches = placed(tmp_path / "index"), []
    event = Event(id="1", source="desk", attributes={"hour": 12, "price": 5, "topic": "oil"})

    def told():
        stream.drain()
        found = rows(batches[-1].table())
        assert found == expected(index, [event])
        return [row[1] for row in found]

    with EventLog(tmp_path / "log") as log:
        log.append([event])
        places = tmp_path / "log", index, tmp_path / "out", tmp_path / "checkpoint"
        with run(spark, *places, on_batch=batches.append) as stream:
            assert told() == ["all", "east"]
            versions.append(
                index,
                [
                    versions.NetworkChange("exchange", "remove_edge", ("second hub", "all")),
                    versions.NetworkChange("exchange", "set_where", (("second hub", "west"), None)),
                    versions.NetworkChange("exchange", "add_node", ("new", "price < 6")),
                    versions.Change("new", "WHERE topic = 'oil' VIA exchange AT 'new'"),
                    versions.NetworkChange("exchange", "add_edge", ("east", "new")),
                ],
            )
            log.append([event])
            assert told() == ["east", "new", "west"]
            versions.append(index, [versions.NetworkChange("exchange", "remove_node", ("hub",))])
            log.append([event])
            stream.drain()
            assert batches[-1].notifications == 0
    assert [row[1] for row in rows(batches[0].table())] == ["all", "east"]


def _events(given: list[dict]) -> list[Event]:
    return [
        Event(
            id=row["id"],
            source=row["source"] or "",
            attributes={name: row[name] for name in ("hour", "price", "topic") if row[name] is not None},
        )
        for row in given
    ]
