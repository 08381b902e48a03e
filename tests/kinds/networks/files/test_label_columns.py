"""Labels in files mean what they mean in Python, in every form of file, for every match function."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from tidings import Engine, Event, Network, read_network
from tidings.cli import main
from tidings.kinds.networks.faults import NetworkError
from tidings.kinds.networks.files.sources import network_of_rows

SETS: dict[str, tuple[str, ...] | None] = {
    "all": None,
    "none": (),
    "a": ("a",),
    "ab": ("a", "b"),
    "odd": ('it\'s "x", y', "2024"),
}
LABELS = ("a", "b", "c", 'it\'s "x", y', "2024")
EVENTS = [{}, *({"tags": list(some)} for size in (1, 2) for some in product(LABELS, repeat=size))]


def cell(labels: tuple[str, ...] | None) -> str:
    return "" if labels is None else "; ".join(labels) or ";"


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def in_python(match: str) -> Network:
    network = Network(match, labels="tags")
    network.add_node("p")
    for name, labels in SETS.items():
        network.add_node(name, labels)
        network.add_edge("p", name)
    return network


def in_csv(folder: Path, match: str) -> Path:
    rows = [f"{name},{quoted(cell(labels))}" for name, labels in SETS.items()]
    (folder / "nodes.csv").write_text("\n".join([f"id,{match}:tags", "p,", *rows]) + "\n")
    (folder / "edges.csv").write_text("source,target\n" + "".join(f"p,{name}\n" for name in SETS))
    return folder


def in_parquet(folder: Path, match: str) -> Path:
    lists = pa.array([None, *SETS.values()], pa.list_(pa.string()))
    pq.write_table(pa.table({"id": ["p", *SETS], f"{match}:tags": lists}), folder / "nodes.parquet")
    edges = pa.table({"source": ["p"] * len(SETS), "target": list(SETS)})
    pq.write_table(edges, folder / "edges.parquet")
    return folder


def in_graphml(folder: Path, match: str) -> Path:
    nodes = "".join(
        f'<node id="{name}"><data key="k">{escape(cell(labels))}</data></node>'
        for name, labels in SETS.items()
    )
    edges = "".join(f'<edge source="p" target="{name}"/>' for name in SETS)
    path = folder / "g.graphml"
    path.write_text(
        f'<graphml><key id="k" for="node" attr.name="{match}:tags"/><graph edgedefault="directed">'
        f'<node id="p"/>{nodes}{edges}</graph></graphml>'
    )
    return path


def saved(folder: Path, match: str) -> Path:
    in_python(match).save(folder / "net")
    return folder / "net"


@pytest.mark.parametrize("match", ["overlap", "subset", "superset"])
@pytest.mark.parametrize("form", [in_csv, in_parquet, in_graphml, saved])
def test_files_mean_what_python_means(form, match: str, tmp_path: Path) -> None:
    read, wanted = read_network(form(tmp_path, match)), in_python(match)
    sent = network_of_rows(**json.loads(json.dumps(read.rows())))  # as to a service
    answers = [sorted(wanted.evaluate("p", event)) for event in EVENTS]
    assert [sorted(read.evaluate("p", event)) for event in EVENTS] == answers
    assert [sorted(sent.evaluate("p", event)) for event in EVENTS] == answers
    assert len(set(map(tuple, answers))) > 3


def test_labels_beside_an_expression_and_on_edges(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,where,overlap,subset:topics\np,,,\nn,age > 3 OR vip = 1,a;b,x\n")
    (tmp_path / "edges.csv").write_text("source,target,superset\np,n,a; c\n")
    network = read_network(tmp_path)
    for age, labels, topics in product((1, 5), (["a"], ["a", "b"], ["c"], []), (["x", "y"], ["y"])):
        reached = list(network.evaluate("p", {"age": age, "labels": labels, "topics": topics}))
        right = age > 3 and "x" in topics and {"a", "b"} & set(labels) and set(labels) <= {"a", "c"}
        assert bool(reached) == bool(right)


def test_a_wrong_cell_is_told_with_its_row(tmp_path: Path) -> None:
    nodes = pa.table({"id": ["p", "n"], "overlap": pa.array([None, [1]], pa.list_(pa.int64()))})
    pq.write_table(nodes, tmp_path / "nodes.parquet")
    pq.write_table(pa.table({"source": ["p"], "target": ["n"]}), tmp_path / "edges.parquet")
    with pytest.raises(
        NetworkError, match=r"row 2: the column 'overlap' has \[1\]; give labels with semicolons"
    ):
        read_network(tmp_path)
    (tmp_path / "edges.csv").write_text("source,target,overlap:my topics\np,n,a\n")
    (tmp_path / "nodes.parquet").unlink()
    assert list(read_network(tmp_path / "edges.csv").evaluate("p", {"my topics": ["a"]})) == ["n"]
    (tmp_path / "edges.csv").write_text("source,target,where,overlap\np,n,age >,a\n")
    with pytest.raises(NetworkError, match="edges.csv:2: the expression of this row cannot be read"):
        read_network(tmp_path / "edges.csv")


def test_a_misspelled_column_is_told(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\np,q\n")
    for name, meant in (("overlapp", "overlap"), ("Subset:tags", "subset"), ("super-set", "superset")):
        (tmp_path / "nodes.csv").write_text(f"id,{name}\np,\nq,a\n")
        with pytest.raises(
            NetworkError, match=f"has a column '{name}'; a column of labels is called {meant}"
        ):
            read_network(tmp_path)
    (tmp_path / "nodes.csv").write_text("id,note,owner,set\np,,,\nq,a,b,c\n")
    assert len(read_network(tmp_path)) == 2


def test_the_engine_and_the_command_line_match_by_labels(tmp_path: Path) -> None:
    folder = in_csv(tmp_path, "overlap")
    engine = Engine(networks={"net": read_network(folder)})
    engine.subscribe("s", "WHERE n = 1 VIA net AT 'ab'")
    events = [Event("p", {"n": 1, "tags": tags}, id=tags[0]) for tags in (["b", "c"], ["c"])]
    assert [found.event for event in events for found in engine.publish(event)] == ["b"]
    (tmp_path / "s.txt").write_text("s: WHERE n = 1 VIA net AT 'ab'\n")
    (tmp_path / "e.json").write_text(json.dumps({"source": "p", "n": 1, "tags": ["b", "c"]}))
    arguments = ["match", "-n", f"net={folder}", "-s", str(tmp_path / "s.txt"), str(tmp_path / "e.json")]
    assert "1 notification" in CliRunner().invoke(main, arguments).output
