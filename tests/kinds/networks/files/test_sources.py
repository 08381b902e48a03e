"""Networks from files: the same one from every form, and what is wrong with a file told with its line."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import EXAMPLES
from tidings.kinds.networks.faults import NetworkError
from tidings.kinds.networks.files.graphml import MAX_GRAPHML
from tidings.kinds.networks.files.sources import read_network

NODES = "id,where,cost\npub,,\n\"middle, big\",topic = 'sport',2\nsub,topic IN ('sport'),0.5\nalone,,\n"
EDGES = 'source,target,where,cost\npub,"middle, big",age > 18,1\n"middle, big",sub,,\n'
GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="node" attr.name="where" attr.type="string"/>
  <key id="d1" for="all" attr.name="cost" attr.type="double"/>
  <key id="d2" for="edge" attr.name="where" attr.type="string"/>
  <key id="d3" for="node" attr.name="colour" attr.type="string"/>
  <graph id="G" edgedefault="directed">
    <node id="pub"><data key="d3">red</data></node>
    <node id="middle, big"><data key="d0">topic = 'sport'</data><data key="d1">2</data></node>
    <node id="sub"><data key="d0">topic IN ('sport')</data><data key="d1">0.5</data></node>
    <node id="alone"/>
    <edge source="pub" target="middle, big"><data key="d2">age &gt; 18</data><data key="d1">1</data></edge>
    <edge source="middle, big" target="sub"/>
  </graph>
</graphml>
"""


def write(folder, **files):
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_text(content)


def facts(network):
    """Everything that files say of a network."""
    event = {"topic": "sport", "age": 20}
    return (
        sorted(map(repr, network.nodes())),
        sorted(map(repr, network.edges())),
        list(network.top("pub", event)),
    )


@pytest.fixture
def network(tmp_path):
    write(tmp_path, nodes_csv=NODES, edges_csv=EDGES)
    return read_network(tmp_path)


def test_two_tables_in_csv(network, tmp_path):
    assert dict(network.nodes()) == {
        "pub": None,
        "middle, big": "topic = 'sport'",
        "sub": "topic IN ('sport')",
        "alone": None,
    }
    assert set(network.edges()) == {("pub", "middle, big", "age > 18"), ("middle, big", "sub", None)}
    assert dict(network.top("pub", {"topic": "sport", "age": 20})) == {"middle, big": 3.0, "sub": 3.5}
    assert list(network.top("pub", {"topic": "sport", "age": 18})) == []
    for name in ("nodes.csv", "edges.csv"):
        assert facts(read_network(tmp_path / name)) == facts(network)


def test_parquet(network, tmp_path):
    folder = tmp_path / "parquet"
    folder.mkdir()
    nodes = {"id": ["pub", "middle, big", "sub", "alone"], "kind": [1, 2, 3, 4], "cost": [0, 2, 0.5, None]}
    nodes["where"] = [None, "topic = 'sport'", "topic IN ('sport')", None]
    edges = {"source": ["pub", "middle, big"], "target": ["middle, big", "sub"], "where": ["age > 18", None]}
    pq.write_table(pa.table(nodes), folder / "nodes.parquet")
    pq.write_table(pa.table({**edges, "cost": [1, 0]}), folder / "edges.parquet")
    assert facts(read_network(folder)) == facts(network)
    assert facts(read_network(folder / "edges.parquet")) == facts(network)


def test_graphml(network, tmp_path):
    folder = tmp_path / "drawn"
    folder.mkdir()
    (folder / "net.graphml").write_text(GRAPHML)
    assert facts(read_network(folder / "net.graphml")) == facts(network)
    assert facts(read_network(folder)) == facts(network)


def test_graphml_without_directions_goes_both_ways(tmp_path):
    path = tmp_path / "net.graphml"
    path.write_text(
        GRAPHML.replace('"directed"', '"undirected"').replace('target="sub"', 'target="sub" directed="true"')
    )
    assert {(a, b) for a, b, _ in read_network(path).edges()} == {
        ("pub", "middle, big"),
        ("middle, big", "pub"),
        ("middle, big", "sub"),
    }


def test_graphml_has_defaults(tmp_path):
    path = tmp_path / "net.graphml"
    default = 'attr.name="where" attr.type="string"><default>age = 1</default></key>'
    path.write_text(GRAPHML.replace('attr.name="where" attr.type="string"/>', default, 1))
    assert dict(read_network(path).nodes())["alone"] == "age = 1"


def test_a_saved_network(network, tmp_path):
    network.save(tmp_path / "saved")
    assert facts(read_network(tmp_path / "saved")) == facts(network)


def test_edges_alone_name_their_nodes(tmp_path):
    write(tmp_path, routes_csv="source,target\na,b\nb,c\na,c\n")
    network = read_network(tmp_path / "routes.csv")
    assert dict(network.nodes()) == {"a": None, "b": None, "c": None}
    assert len(list(network.edges())) == 3


def test_the_example_is_read():
    network = read_network(EXAMPLES / "exchange")
    assert len(network) > 10


@pytest.mark.parametrize(
    ("nodes", "edges", "sentence"),
    [
        (NODES + "sub,,\n", EDGES, "nodes.csv:6: the node 'sub' is there already, at {0}/nodes.csv:4"),
        (NODES + ",a = 1,\n", EDGES, "nodes.csv:6: the node has no id"),
        (NODES, EDGES + "pub,subb,,\n", "edges.csv:4: the edge's target 'subb' is no node; is 'sub' meant?"),
        (NODES, EDGES + "pub,,,\n", "edges.csv:4: the edge has no target"),
        (NODES, EDGES + "middle - big,sub,,\n", "edges.csv:4: the edge's source"),
        (
            NODES,
            EDGES + '"middle, big",sub,,\n',
            "edges.csv:4: the edge 'middle, big' -> 'sub' is there already",
        ),
        (NODES, EDGES + "pub,sub,age >,\n", "edges.csv:4: the expression of this row cannot be read"),
        (
            NODES,
            EDGES + 'pub,sub,"(?a, b, ?c)",\n',
            "edges.csv:4: the expression of this row has a graph",
        ),
        (NODES + "x,,-1\n", EDGES, "nodes.csv:6: the cost '-1' is not a number from 0 up"),
        (NODES + "x,,cheap\n", EDGES, "nodes.csv:6: the cost 'cheap' is not a number"),
        (NODES + 'x,"a\n= 1",\ny,,-1\n', EDGES, "nodes.csv: row 6: the cost '-1'"),
        ("ids\na\n", EDGES, "nodes.csv has no column 'id'; is 'ids' it?"),
        (NODES, "from,to\na,b\n", "edges.csv has no column 'source'; its columns are from, to"),
        (NODES, EDGES + "a,b,c,d,e\n", "edges.csv:4 is not readable as CSV"),
        (NODES, "", "edges.csv is not readable as CSV"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path, nodes, edges, sentence):
    write(tmp_path, nodes_csv=nodes, edges_csv=edges)
    with pytest.raises(NetworkError) as wrong:
        read_network(tmp_path)
    assert f"{tmp_path}/{sentence.format(tmp_path)}" in str(wrong.value)


BOMB = '<!DOCTYPE graphml [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ("", "is not readable as GraphML"),
        ("<graphml><graph>", "is not readable as GraphML"),
        ("<rss/>", "is <rss>, not GraphML"),
        ("<graphml><graph/>\n<graph/></graphml>", ":2: more than one graph is no network"),
        ("<graphml><graph><node id='a'>\n<graph/></node></graph></graphml>", ":2: more than one graph"),
        ("<graphml><graph>\n\n<hyperedge/></graph></graphml>", ":3: a hyperedge is no network"),
        ("<graphml><graph>\n<node/></graph></graphml>", ":2: a <node> has no id"),
        ("<graphml><graph>\n<edge source='a'/></graph></graphml>", ":2: a <edge> has no target"),
        (
            "<graphml><graph><node id='a'/>\n<edge source='a' target='b'/></graph></graphml>",
            ":2: the edge's target 'b'",
        ),
        (BOMB + "]><graphml><graph><node id='&i;'/></graph></graphml>", "is not readable as GraphML"),
        (
            '<!DOCTYPE graphml [<!ENTITY x SYSTEM "file:///etc/passwd">]><graphml><graph><node id="&x;"/></graph></graphml>',
            "is not readable as GraphML",
        ),
        ("<graphml>" * 1000, "is not readable as GraphML"),
    ],
)
def test_hostile_and_broken_graphml_is_refused(tmp_path, document, sentence):
    path = tmp_path / "net.graphml"
    path.write_text(document)
    with pytest.raises(NetworkError) as wrong:
        read_network(path)
    assert sentence in str(wrong.value)
    assert "root:" not in str(wrong.value)


def test_what_is_no_network(tmp_path):
    with pytest.raises(NetworkError, match="there is no file or folder"):
        read_network(tmp_path / "none")
    with pytest.raises(NetworkError, match="is empty; give nodes.csv or edges.csv"):
        read_network(tmp_path)
    write(tmp_path, notes_txt="x", nodes_csv=NODES, bad_parquet="PAR1")
    with pytest.raises(NetworkError, match="is no network by its name"):
        read_network(tmp_path / "notes.txt")
    with pytest.raises(NetworkError, match="there is no edges.csv beside"):
        read_network(tmp_path / "nodes.csv")
    with pytest.raises(NetworkError, match="is not readable as Parquet"):
        read_network(tmp_path / "bad.parquet")
    assert MAX_GRAPHML < 1 << 30
