"""python -m benchmarks [NAME …]: bars, figures, report; without a name, all of them."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import click

from benchmarks.measure import RESULTS, ROOT, keep

FIGURES = {
    "gtopss-memory": "G-ToPSS 9(a), 9(c), 9(d)",
    "gtopss-time": "G-ToPSS 9(b), 9(e), 9(f)",
    "gtopss-alternatives": "G-ToPSS 10(a), 10(b)",
    "cluster-lookup": "RSS cluster 9(a)",
    "cluster-constraints": "RSS cluster 9(b)",
    "cluster-containment": "RSS cluster 9(c), 9(d), 9(f)",
    "cluster-merging": "RSS cluster 9(e), 9(g), 9(h)",
    "cluster-throughput": "RSS cluster 9(i), 10",
    "cluster-placements": "CPU time and visited parts of replicate, split and contain",
    "filters-abe": "filters beside counting, on ABE-Gen's parameters",
    "network-selectivity": "Graph constraints 12, 13, 14",
    "network-size": "Graph constraints 15, 16",
    "network-crossover": "where BFS, the index and SCC skipping win",
    "operators": "Sub-Order 4 to 8, under two models of events",
    "joins": "Select-joins 5, 8, 13, 14, Tables 3 and 4",
    "dissemination": "Select-joins 6, 7, 9 to 14, 17 to 20, in a simulated network",
}
BARS = {
    "bars": "what must hold, in one process",
    "containment-bars": "what must hold of the forest of containment",
    "cluster-bars": "what must hold of a cluster that divides subscriptions",
    "filter-bars": "what must hold of filters",
    "search-bars": "what must hold of word search",
    "network-bars": "what must hold of networks; Graph constraints, Tables 1 to 3",
    "operator-bars": "what must hold of operators and their schedulers",
    "join-bars": "what must hold of joins",
    "dissemination-bars": "what must hold of networks of dissemination",
    "spark-bars": "what must hold, on Spark",
    "host-bars": "what must hold on several hosts",
    "service-bars": "what must hold of the service",
    "stream-bars": "what must hold of the way from a post to a listener",
    "backtest-bars": "what must hold of backtests",
    "delivery-bars": "what must hold of listeners, webhooks and memory",
    "mail-bars": "what must hold of mail",
}
NAMES = (*BARS, *FIGURES, "report")


@click.command(epilog="\b\n" + "\n".join(f"{name:22}{text}" for name, text in {**BARS, **FIGURES}.items()))
@click.argument("names", nargs=-1, type=click.Choice(NAMES), metavar="[NAME]...")
@click.option("--scale", default=1.0, show_default=True, help="Size of the workloads; the papers' is 1.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder of the results.  [default: benchmarks/results, or build/benchmarks at other scales]",
)
def main(names: tuple[str, ...], scale: float, out: Path | None) -> None:
    """Reproduce the papers' figures, measure the bars, and write the report in docs/benchmarks.md.

    The status is 1 if a bar does not hold.
    """
    folder = out or (RESULTS if scale == 1 else ROOT / "build" / "benchmarks")
    held = True
    for name in names or NAMES:
        click.echo(f"== {name}")
        if name in FIGURES:
            for figure in import_module(f"benchmarks.figures.{name.replace('-', '_')}").run(scale):
                click.echo(f"{keep(figure, folder)}: {figure.title}")
        elif name in BARS:
            held &= import_module(f"benchmarks.{name.replace('-', '_')}").run(scale, folder)
        else:
            import_module("benchmarks.report").write(folder, ROOT / "docs" / "benchmarks.md")
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
