"""docs/benchmarks.md, written from the result files, so that the page never says more than was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FIGURES = (
    ("gtopss-9a", "G-ToPSS 9(a)"),
    ("gtopss-9b", "G-ToPSS 9(b)"),
    ("gtopss-9c", "G-ToPSS 9(c)"),
    ("gtopss-9d", "G-ToPSS 9(d)"),
    ("gtopss-9e", "G-ToPSS 9(e)"),
    ("gtopss-9f", "G-ToPSS 9(f)"),
    ("gtopss-10a", "G-ToPSS 10(a)"),
    ("gtopss-10b", "G-ToPSS 10(b)"),
    ("cluster-9a", "RSS cluster 9(a)"),
    ("cluster-9a-million", "beyond RSS cluster 9(a)"),
    ("cluster-9b", "RSS cluster 9(b)"),
    *((f"cluster-9{letter}", f"RSS cluster 9({letter})") for letter in "cdefghi"),
    ("cluster-10", "RSS cluster 10"),
    ("cluster-placements", "beyond RSS cluster 9(i): CPU time of placements"),
    ("cluster-visits", "beyond RSS cluster 9(i): parts visited"),
    ("filters-abe", "filters on ABE-Gen's parameters"),
    ("network-12", "Graph constraints 12"),
    ("network-13", "Graph constraints 13"),
    ("network-14", "Graph constraints 14"),
    ("network-15", "Graph constraints 15"),
    ("network-16", "Graph constraints 16"),
    ("network-crossover", "beyond Graph constraints 12, selectivity 1/4"),
    ("network-crossover-half", "beyond Graph constraints 12, selectivity 1/2"),
    *(
        (f"operators-{number}-{model}", f"Sub-Order {number}, {model}")
        for number in range(4, 9)
        for model in ("independent", "chosen")
    ),
    ("joins-5", "Select-joins 5"),
    ("joins-5-output", "Select-joins 5, with output"),
    ("joins-8", "Select-joins 8"),
    ("joins-8-output", "Select-joins 8, with output"),
    ("joins-table-3", "Select-joins, Table 3"),
    ("joins-table-4", "Select-joins, Table 4"),
    ("joins-13", "Select-joins 13"),
    ("joins-14", "Select-joins 14"),
    ("joins-14-payload", "Select-joins 14, facts with payload"),
    *(
        (f"dissemination-{number}", f"Select-joins {number}")
        for number in (6, 7, 9, 10, 11, 12, 13, 14, 17, 18, 19, 20)
    ),
)
BARS = (
    ("bars", "What must hold"),
    ("containment-bars", "What must hold of the forest of containment"),
    ("cluster-bars", "What must hold of a cluster that divides subscriptions"),
    ("filter-bars", "What must hold of filters"),
    ("search-bars", "What must hold of word search"),
    ("network-bars", "What must hold of networks"),
    ("operator-bars", "What must hold of operators"),
    ("join-bars", "What must hold of joins"),
    ("dissemination-bars", "What must hold of networks of dissemination"),
    ("spark-bars", "What must hold, on Spark"),
    ("host-bars", "What must hold on several hosts"),
    ("service-bars", "What must hold of the service"),
    ("stream-bars", "What must hold of the way from a post to a listener"),
    ("backtest-bars", "What must hold of backtests"),
    ("delivery-bars", "What must hold of listeners, webhooks and memory"),
    ("mail-bars", "What must hold of mail"),
)
_INTRODUCTION = """# Benchmarks

Written by `python -m benchmarks report` from the files in `benchmarks/results`; do not edit.

Times are the best of five runs on one core. What counts is the ratio between contenders in one run: the papers'
figures were taken on machines of 2005, so only their courses and ratios are set beside ours. `make bench`
repeats everything; `benchmarks/workloads.py` says how publications and subscriptions are drawn.

The contenders for patterns: **Tidings**; the **counting** algorithm of G-ToPSS, compiled the same way; an algorithm in
the manner of **OPS** that treats every node as a variable; subscriptions tried **one by one**; and one **SPARQL** query
for each subscription with pyoxigraph. For a cluster, the algorithms of **RSS cluster**: matching with constraint tables as the node, containment and merging
on its server (`benchmarks/cluster`). For filters: the **interval** algorithm over posting lists, which for conjunctions
is the counting of the k-index, and expressions evaluated **one by one**, both compiled. For networks: **Figure 6**
(general) and **Figure 8** (SCC skipping) of Graph constraints, its baselines **BFS** and **index first**, and **auto**,
which chooses. For operators, whose figures count evaluations: **naive**, **Sequential** and **Sub-Order** of the paper,
**Adaptive**, which engines use, **cost alone** and **cost / (1 - selectivity)**, by which databases order the conditions
of one query, and **hindsight**, which knows the answers and only has to prove them. For joins: the nine **schemes** of Select-joins, Table 1, and
**exact deltas**, which engines give; DuckDB and PostgreSQL with the subscriptions in a table, and DuckDB running each
affected query again. `benchmarks/filter_workloads.py`, `conjunctions.py`, `network_workloads.py`, `operator_workloads.py`
and `join_workloads.py` draw what they are asked.
"""


def write(results: Path, page: Path) -> None:
    """Writes the page of all results in a folder."""
    parts = [_INTRODUCTION]
    for name, title in BARS:
        if (found := _read(results, name)) is not None:
            parts.append(f"## {title}\n\n{_origin(found)}\n\n{_bars(found)}\n")
    if (found := _read(results, "network-tables")) is not None:
        parts.append(f"## Tables of Graph constraints\n\n{_origin(found)}\n\n{_tables(found)}")
    figures = [(name, label, found) for name, label in FIGURES if (found := _read(results, name)) is not None]
    if figures:
        parts.append("## The papers' figures\n\n" + _overview(figures))
        parts += [_figure(name, label, found, results, page) for name, label, found in figures]
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(parts), encoding="utf-8")


def _read(results: Path, name: str) -> dict[str, Any] | None:
    path = results / f"{name}.json"
    found: dict[str, Any] | None = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    return found


def _origin(found: dict[str, Any]) -> str:
    machine = found["machine"]
    return (
        f"Commit {found['commit']}, {machine['processor']}, {machine['cores']} cores, Python {machine['python']}; "
        f"calibration loop {found['calibration_ms']} ms."
    )


def _bars(found: dict[str, Any]) -> str:
    lines = ["| what | bar | measured | holds |", "|---|---|---|---|"]
    lines += [
        f"| {bar['what']} | {bar['bar']} | {bar['measured']} | {'yes' if bar['holds'] else '**no**'} |"
        for bar in found["bars"]
    ]
    return "\n".join(lines)


def _tables(found: dict[str, Any]) -> str:
    parts = []
    for table in found["tables"]:
        parts += [f"### {table['title']}", "", "| what | published | ours |", "|---|---|---|"]
        parts += [f"| {name} | {published:,g} | {ours:,.6g} |" for name, published, ours in table["rows"]]
        parts.append("")
    return "\n".join(parts)


def _overview(figures: list[tuple[str, str, dict[str, Any]]]) -> str:
    """Ours beside the published courses: how each series changes from the first to the last point."""
    lines = ["| figure | published | measured, first to last point |", "|---|---|---|"]
    for _, label, found in figures:
        if isinstance(found["x"][0], str):
            lines.append(f"| {label} | {found['published']} | see the figure (1 = {found['reference']}) |")
            continue
        courses = [
            f"{name}: {values[0]:,.4g} to {values[-1]:,.4g}" for name, values in found["series"].items()
        ]
        lines.append(f"| {label} | {found['published']} | {'; '.join(courses)} (1 = {found['reference']}) |")
    return "\n".join(lines) + "\n"


def _figure(name: str, label: str, found: dict[str, Any], results: Path, page: Path) -> str:
    title = found["title"].replace("\n", " ")
    there = found["published_series"].items()
    series = found["series"] | {f"{contender}, published": values for contender, values in there}
    picture = Path("..") / (results / f"{name}.png").relative_to(page.parent.parent)
    lines = [
        f"### {label}: {title}",
        "",
        f"![{title}]({picture.as_posix()})",
        "",
        f"| {found['x_label']} | " + " | ".join(series) + " |",
        "|---|" + "---|" * len(series),
    ]
    for i, x in enumerate(found["x"]):
        at = x.replace("\n", ", ") if isinstance(x, str) else f"{x:,}"
        cells = [_value(values[i]) + _range(found, name, i) for name, values in series.items()]
        lines.append(f"| {at} | " + " | ".join(cells) + " |")
    if name.startswith("network-crossover"):
        lines += ["", _winners(found)]
    if found.get("note"):
        lines += ["", found["note"]]
    return "\n".join([*lines, "", f"1 = {found['reference']}. {_origin(found)}", ""])


def _value(value: float | None) -> str:
    """Four digits, and more only where a number has more before the point."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.4g}"


def _range(found: dict[str, Any], series: str, i: int) -> str:
    """The lowest and the highest value of several seeds."""
    if series not in found.get("spread", {}):
        return ""
    low, high = found["spread"][series][i]
    return f" ({_value(low)} to {_value(high)})" if low != high else ""


def _winners(found: dict[str, Any]) -> str:
    """Who wins where, said of the points that were measured."""
    costs, series = found["x"], found["series"]
    search = series["BFS"]
    words = [f"With compiled expressions BFS takes {search[0] / series['Figure 8, SCC skipping'][0]:.2f} x"]
    words[0] += " the time of SCC skipping."
    for name in ("Figure 8, SCC skipping", "Figure 6", "index first"):
        slower = [cost for cost, taken in zip(costs, search, strict=True) if taken > series[name][0]]
        words.append(
            f"{name} beats BFS from {slower[0]:g} µs an expression on."
            if slower
            else f"{name} never beats BFS up to {costs[-1]:g} µs an expression."
        )
    return " ".join(words)
