"""Select-joins: Figures 5 and 8, Tables 3 and 4, and the server's side of Figures 13 and 14, all schemes in one run.

The curves of the figures are lost; the text and the tables are what can be set beside ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.join_schemes import CHANGES, Choice, Point, choices, point
from benchmarks.join_workloads import S_ROWS, SEED, SUBSCRIPTIONS
from benchmarks.measure import Figure, ratios
from benchmarks.select_joins.trial import Tally
from tidings.dissemination.schemes import SCHEMES

DELTAS = "exact deltas"
_OUTPUT = 70e6 / 8  # bytes a second, at which the paper's server wrote its messages to disk
_DEFAULT_S_ROWS = 5_100
_TABLE_POINTS = (100_000, 300_000, 500_000)
_TABLE_3 = {
    "Enum-J": (484.8, 1464.0, 2461.5),
    "Enum-SJ": (27.3, 82.0, 137.6),
    "Ref-J+": (13.4, 14.3, 14.6),
    "Rel-Sel": (0.86, 0.95, 0.88),
    "Ref-SJ-Clu+": (0.38, 0.38, 0.39),
}
_TABLE_4 = {
    "Ref-SJ-Sub": (73.12, 99.54, 111.84),
    "Ref-SJ-Tup": (312.78, 305.88, 302.85),
    "Ref-SJ-Clu": (29.59, 38.15, 42.87),
    "Ref-SJ-Clu+": (16.88, 21.96, 24.68),
}
_MESSAGES_ONLY = (
    "Times are those of finding what is sent; nobody's copy is written. Enum-J and Enum-SJ give a list of subscribers for "
    f"a row. *{DELTAS.capitalize()}* is what an engine does for its users, in batches of 1,000: every affected "
    "subscription's rows, numbered, as Arrow columns; it does what Enum-SJ does and more, in a compiled loop."
)


def run(scale: float) -> Iterator[Figure]:
    points = {count: point(max(50, round(count * scale)), _DEFAULT_S_ROWS, scale) for count in SUBSCRIPTIONS}
    by_rows = {
        rows: point(max(50, round(SUBSCRIPTIONS[0] * scale)), rows, scale)
        for rows in S_ROWS  # 5,100 is measured already
    }
    yield from _times(
        "joins-5",
        "by number of subscriptions",
        "subscriptions",
        {float(count): one for count, one in points.items()},
        "Enum-J is the slowest, Enum-SJ next; Ref-J is quick, Ref-J+ less so; the four Ref-SJ are quick, Sub the "
        "slowest of them, Clu and Clu+ hardly above Tup",
    )
    yield from _times(
        "joins-8",
        "by joined rows of an insert (RJOR)",
        "joined rows of an inserted row",
        {round(one.results, 1): one for one in by_rows.values()},
        "Ref-J is very good at few joined rows and degrades quickly; Ref-SJ-Clu+ scales well",
    )
    yield _table_3(points)
    yield _table_4(points)
    yield _multi_way("joins-13", "general schema", choices(False, False, scale), _GENERAL, scale)
    yield _multi_way(
        "joins-14", "star schema, facts without payload", choices(True, True, scale), _STAR, scale
    )
    yield _multi_way(
        "joins-14-payload",
        "star schema, facts with a payload of 100 bytes",
        choices(True, False, scale),
        "the advantage is less than without a payload of facts, and still wide",
        scale,
    )


def _times(
    name: str, title: str, x_label: str, points: dict[float, Point], published: str
) -> Iterator[Figure]:
    """Processing alone, then with the output at the paper's speed."""
    for output in (False, True):
        taken = {
            scheme: [_seconds(one.tallies[scheme], output) for one in points.values()] for scheme in SCHEMES
        }
        if not output:
            taken[DELTAS] = [1 / one.deltas.per_second for one in points.values()]
        first = taken["Ref-SJ-Clu+"][0]
        deltas = ", ".join(f"{one.deltas.each:,.0f}" for one in points.values())
        note = (
            _MESSAGES_ONLY + f" Deltas of a change at the points: {deltas}."
            if not output
            else "As above, with the time that every byte sent takes at 70 Mbit/s, at which the published times include "
            "writing messages to disk; calculated, not measured. It is this that makes Enum-J the worst there."
        )
        yield Figure(
            name=f"{name}-output" if output else name,
            title=f"Processing of a change{' and output at 70 Mbit/s' if output else ''}, {title}",
            x_label=x_label,
            y_label="time of one change, relative",
            x=list(points),
            series={scheme: ratios(values, first) for scheme, values in taken.items()},
            reference=f"{first * 1e6:.0f} µs, the leftmost point of Ref-SJ-Clu+; means of {CHANGES:,} changes",
            published=published,
            log_y=True,
            log_x=name == "joins-5",
            note=note,
            seed=SEED,
        )


def _seconds(tally: Tally, output: bool) -> float:
    return tally.each(tally.seconds) + (tally.each(tally.bytes) / _OUTPUT if output else 0.0)


def _table_3(points: dict[int, Point]) -> Figure:
    return _table(
        "joins-table-3",
        "Table 3: bytes that leave the server for a change",
        "kB a change",
        points,
        {scheme: list(values) for scheme, values in _TABLE_3.items()},
        lambda tally: tally.each(tally.bytes) / 1e3,
        "1,000 bytes",
        "Published is node stress: all that the server sends into an overlay of 1,000 nodes, which for one message of a "
        "reformulation is several copies, with what the network adds. Ours is bytes injected: each message once, and one "
        "copy for each target where there are targets. So enumerations compare directly (a row has 112 bytes here, 108 "
        "there, because rows have a key), and the ratios between the others.",
    )


def _table_4(points: dict[int, Point]) -> Figure:
    return _table(
        "joins-table-4",
        "Table 4: size of a description",
        "bytes of a skyline",
        points,
        {scheme: list(values) for scheme, values in _TABLE_4.items()},
        lambda tally: tally.description,
        "a byte; means over messages that carry a skyline",
        "A number is four bytes. A point of a skyline has two, or one where all its points are rows (Tup, Clu): the "
        "published sizes say so, the text does not. How widths of ranges below zero were drawn again is not said either; "
        "the seed is the one of forty whose numbers of affected subscriptions come nearest to Table 3.",
    )


def _table(
    name: str,
    title: str,
    y_label: str,
    points: dict[int, Point],
    published: dict[str, list[float]],
    value: Callable[[Tally], float],
    reference: str,
    note: str,
) -> Figure:
    last = _TABLE_POINTS[-1]
    words = "; ".join(f"{scheme} {values[0]:g} to {values[-1]:g}" for scheme, values in published.items())
    return Figure(
        name=name,
        title=title,
        x_label="subscriptions",
        y_label=y_label,
        x=[float(count) for count in _TABLE_POINTS],
        series={
            scheme: [float(f"{value(points[count].tallies[scheme]):.4g}") for count in _TABLE_POINTS]
            for scheme in published
        },
        reference=reference,
        published=f"100K to {last // 1000}K: {words}",
        published_series=dict(published),  # type: ignore[arg-type]
        log_y=True,
        note=note,
        seed=SEED,
    )


_GENERAL = "Rel-Sel's traffic is 9 times that of the best decomposition, the worst one's 20 % above it"
_STAR = "traffic of Rel-Sel, Ref-J and Enum-J 5, 9 and 127 times that of Ref-SJ-Clu+"


def _multi_way(name: str, title: str, found: tuple[Choice, ...], published: str, scale: float) -> Figure:
    best = min((one for one in found if one.name.startswith("Ref-SJ")), key=lambda one: one.delivered)
    times = ", ".join(f"{one.name} {one.seconds * 1e6:,.0f} µs" for one in found)
    chosen = "; ".join(
        f"{one.name.rpartition(', ')[2]}: {one.semijoins}" for one in found if one.name.startswith("Ref-SJ")
    )
    beside = ", ".join(
        f"{one.name} {one.sent / best.sent:,.2f} x and {one.delivered / max(best.delivered, 1e-9):,.2f} x"
        for one in found
        if one is not best
    )
    central = [one.central for one in found if one.name.startswith("Ref-SJ")]
    return Figure(
        name=name,
        title=f"Joins of two to four tables, {title}: bytes of a change",
        x_label="scheme and decomposition",
        y_label="bytes, all kinds of joins together",
        x=[one.name.replace(", ", "\n") for one in found],
        series={
            "sent by the server": [float(f"{one.sent:.4g}") for one in found],
            "delivered to subscribers": [float(f"{one.delivered:.4g}") for one in found],
            "of these, rows of S": [float(f"{one.central:.4g}") for one in found],
        },
        reference=f"a byte; means of {CHANGES:,} changes",
        published=published,
        log_y=True,
        note=(
            "The paper shows traffic of an overlay, which lies between what a server sends (each message once) and what "
            "all subscribers together are sent; both are shown. Only rows of S, the table in the middle, can be filtered by "
            f"one table or another: they are {best.central / max(best.delivered, 1e-9):.0%} of what is delivered, and differ "
            f"by {max(central) / max(min(central), 1e-9) - 1:.0%} from one choice to another. How ranges on T and U were "
            "drawn is not said; here they are drawn as those on R. "
            f"Sent and delivered, beside {best.name}: {beside}. "
            f"Semijoins chosen: {chosen}. *Worst* takes the dearest form of each table by sampled costs, *arbitrary* "
            f"the middle one of all decompositions in their order. Processing of a change: {times}."
            if scale == 1
            else ""
        ),
        seed=SEED,
    )
