"""The bars that must hold in one process, each with what was measured beside it.

Times are the best of five on one core. Kernels are measured on publications that were read before, over
subscriptions of 250 structures and over subscriptions that each have their own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click
import pyoxigraph as ox

from benchmarks import texts
from benchmarks.baselines import Counting
from benchmarks.contenders import CLUSTER, per_publication, scaled
from benchmarks.measure import best, calibration, context, write_json
from benchmarks.tidings_index import Tidings
from benchmarks.workloads import Parameters, Workload, make, make_same_structure
from tidings import Engine, Event
from tidings.model.event import to_table

MILLION = 10  # times the default number of subscriptions


@dataclass(frozen=True, slots=True)
class Bar:
    what: str
    bar: str
    measured: str
    holds: bool


def run(scale: float, folder: Path) -> bool:
    """Measures every bar, prints and keeps the table; whether all hold."""
    bars = [bar for measure in BARS for bar in measure(scale)]
    show(bars)
    write_json(folder / "bars.json", {"scale": scale, "bars": [asdict(bar) for bar in bars], **context()})
    return all(bar.holds for bar in bars)


def show(bars: Sequence[Bar]) -> None:
    """The table what | bar | measured | holds, with the calibration loop's time."""
    rows = [("what", "bar", "measured", "holds")]
    rows += [(bar.what, bar.bar, bar.measured, "yes" if bar.holds else "NO") for bar in bars]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo(" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    click.echo(f"calibration loop: {calibration() * 1e3:.1f} ms")


def kernel(scale: float) -> Iterator[Bar]:
    """RSS cluster workload, 100 matches; ten times the subscriptions; index size."""
    parameters = scaled(CLUSTER, scale)
    times = {}
    for shapes, words in ((CLUSTER.shapes, "250 structures"), (None, "a structure each")):
        workload = make(replace(parameters, shapes=shapes))
        index = Tidings(workload)
        times[words] = per_publication(index, workload)
        taken = times[words] * 1e6
        what = f"kernel, {parameters.subscriptions:,} subscriptions, {words}"
        measured = f"{taken:.1f} µs, {_matches(index, workload):.0f} matches"
        yield Bar(what, "at most 100 µs a publication", measured, taken <= 100)
        size = index.nbytes / parameters.subscriptions
        yield Bar(
            f"index size, {words}", "at most 300 bytes a subscription", f"{size:.0f} bytes", size <= 300
        )
        del index
    more = replace(parameters, subscriptions=MILLION * parameters.subscriptions)
    workload = make(more)
    grown = per_publication(Tidings(workload), workload)
    ratio = grown / times["250 structures"]
    yield Bar(
        f"kernel, {more.subscriptions:,} subscriptions",
        f"at most 2 x the time at {parameters.subscriptions:,}",
        f"{ratio:.2f} x ({grown * 1e6:.1f} µs)",
        ratio <= 2,
    )


def same_structure(scale: float) -> Iterator[Bar]:
    """One structure, different constraints, against the counting baseline."""
    workload = make_same_structure(scaled(CLUSTER, scale))
    ours = per_publication(Tidings(workload), workload)
    counting = per_publication(Counting(workload), workload)
    yield Bar(
        f"one structure, {len(workload.subscriptions):,} constraints",
        "at least 100 x faster than counting",
        f"{counting / ours:.0f} x ({ours * 1e6:.1f} µs, {counting * 1e6:,.0f} µs)",
        counting / ours >= 100,
    )


def documents(scale: float) -> Iterator[Bar]:
    """Bytes in, notifications out, beside reading the bytes alone."""
    workload = make(scaled(CLUSTER, scale))
    engine = loaded(workload)
    for syntax, media_type, name in (
        ("rdfxml", "application/rdf+xml", "RDF/XML"),
        ("turtle", "text/turtle", "Turtle"),
    ):
        contents = texts.documents(workload, syntax)
        table = to_table(
            Event(source="bench", id=str(i), datacontenttype=media_type, data=data)
            for i, data in enumerate(contents)
        )
        engine.publish_many(table)
        whole = best(lambda table=table: engine.publish_many(table))  # type: ignore[misc]
        alone = best(lambda contents=contents, kind=media_type: _parse(contents, kind))  # type: ignore[misc]
        yield Bar(
            f"{name} bytes to notifications, {len(workload.subscriptions):,} subscriptions",
            "at least 0.4 of the rate of parsing alone",
            f"{alone / whole:.2f} ({len(contents) / whole:,.0f} documents/s)",
            alone / whole >= 0.4,
        )


def loading(scale: float) -> Iterator[Bar]:
    """Texts and tables, parsed and indexed."""
    shared = texts.subscription_texts(make(scaled(CLUSTER, scale)))
    yield _rate("loading texts of 250 structures", 10_000, len(shared), lambda: _subscribe(shared))
    own = texts.subscription_texts(_starred(scaled(CLUSTER, scale / 5)))
    yield _rate("loading texts of a structure each", 1_500, len(own), lambda: _subscribe(own))
    template, table = texts.alerts(max(1000, round(1_000_000 * scale)))
    yield _rate("subscribe_table", 500_000, len(table), lambda: _subscribe_table(template, table))


BARS: tuple[Callable[[float], Iterator[Bar]], ...] = (kernel, same_structure, documents, loading)


def _matches(index: Tidings, workload: Workload) -> float:
    """Matches of a publication, on average."""
    count = len(workload.publications)
    return len(index.match(index.prepare(workload, count))) / count


def _starred(parameters: Parameters) -> Workload:
    return make(replace(parameters, shapes=None, starred=1.0))


def _rate(what: str, bar: int, count: int, run: Callable[[], object]) -> Bar:
    rate = count / best(run)
    return Bar(what, f"at least {bar:,} a second", f"{rate:,.0f} a second", rate >= bar)


def _parse(contents: Sequence[bytes], media_type: str) -> None:
    syntax = ox.RdfFormat.from_media_type(media_type)
    for data in contents:
        deque(ox.parse(data, format=syntax), maxlen=0)


_PROBE = Event.from_rdf("<urn:a> <urn:b> <urn:c> .", "nt")


def _subscribe(pairs: Sequence[tuple[str, str]]) -> Engine:
    engine = Engine()
    rejected = engine.subscribe_many(pairs)
    assert not rejected, rejected
    engine.publish(_PROBE)  # an index is built when it is first needed
    return engine


def _subscribe_table(template: str, table: object) -> Engine:
    engine = Engine()
    engine.subscribe_table(template, table)
    engine.publish(_PROBE)
    return engine


def loaded(workload: Workload) -> Engine:
    """An engine with all subscriptions of a workload, loaded by shape."""
    engine = Engine()
    for template, table in texts.tables_by_shape(workload):
        engine.subscribe_table(template, table)
    engine.publish(_PROBE)
    return engine
