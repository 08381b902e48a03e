"""`tidings index`: builds, shows and changes an index of subscriptions for streams and Spark jobs."""

from __future__ import annotations

import warnings
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from tidings.cli import compiling, options, terminal

if TYPE_CHECKING:
    import pyarrow as pa

    from tidings.engine.engine import Engine
    from tidings.storage.division import Division, Trees

_BAR = 30  # characters of the longest
ROOT = click.argument("root", type=options.Index(file_okay=False, path_type=Path))


@click.group()
def index() -> None:
    """Build, show and change an index of subscriptions.

    An index is a folder that streams and Spark jobs open ('tidings run', tidings.spark.match). Every change makes
    a new version, such as v3+1234, which a running stream uses from its next micro-batch on.

    'build' and 'show' take an address too, such as s3://bucket/index (with the extra 'remote' and what fsspec needs for that
    address). Each host that opens an index there fetches it once.
    """


@index.command()
@ROOT
@options.subscriptions
@options.patterns
@options.taxonomy
@options.prefix
@options.networks
@options.tables
@options.operators
@options.parts
@options.place
@options.merge
@options.apart
@click.option(
    "--sample",
    "samples",
    multiple=True,
    metavar="EVENTS",
    help="A file or folder of events like those to come, by which the place is chosen and subscriptions are put into parts. May be"
    " repeated.",
)
@click.option(
    "--memory",
    type=options.Size(least=1_000_000),
    metavar="SIZE",
    help="How much of the index one Python process will have open, such as 1GB: --place auto divides a larger one into --parts.",
)
def build(
    root: Path | str,
    subscriptions: Path | str,
    patterns: str | None,
    taxonomy: Path | None,
    prefixes: tuple[str, ...],
    networks: tuple[str, ...],
    tables: Path | None,
    modules: tuple[str, ...],
    parts: int | None,
    place: str,
    merge: int,
    apart: bool,
    samples: tuple[str, ...],
    memory: int | None,
) -> None:
    """Build the index of a file of subscriptions in the folder ROOT.

    If ROOT holds an index, the new subscriptions take the place of the old ones.

    With --parts, the subscriptions are divided, so that no process has to hold all of them; answers are the same. Those that
    call operators, wait in networks or join tables stay together in front of the parts.

    \b
    Example:
      tidings index build data/index -s subscriptions.txt -t topics.ttl
      tidings index build data/index -s subscriptions.txt --network exchange=exchange/
      tidings index build data/index -s subscriptions.txt --tables tables.toml
      tidings index build data/index -s subscriptions.txt --parts 8 --place split
      tidings index build data/index -s subscriptions.txt --parts 8 --sample feeds/ --memory 1GB
      tidings index build s3://bucket/index -s subscriptions.txt
    """
    compiling.choose([subscriptions, taxonomy, tables, *networks])
    from tidings.cli.subscriptions import load, network_options, operator_options, prefix_options
    from tidings.storage import versions
    from tidings.storage.division import Placement

    if parts is None and (merge or apart or samples or memory):
        raise click.UsageError(
            "--merge, --apart, --sample and --memory say how an index is divided; give --parts too"
        )
    options.check_division(parts, place, merge, apart)
    engine = load(
        subscriptions,
        taxonomy,
        prefix_options(prefixes),
        patterns=patterns,
        networks=network_options(networks),
        operators=operator_options(modules),
        tables=tables,
    )
    sample = _sample(samples)
    if isinstance(root, Path):
        options.need_folder(root, "as ROOT")
    placement = None if parts is None else Placement(place, parts, merge, apart)
    version = versions.publish(root, engine, placement=placement, sample=sample, memory=memory)
    terminal.out.print(f"{root} is now {version}: {terminal.counted(len(engine), 'subscription')}")
    if (division := versions.division(root, version)) is not None:
        terminal.out.print(f"{_pieces(division)}, place {division.place}")
    if (choice := versions.choice(root, version)) is not None:
        terminal.out.print(choice.reason)


def _sample(places: tuple[str, ...]) -> pa.Table | None:
    """The first events of files and folders."""
    if not places:
        return None
    from tidings.cli import events
    from tidings.containment.summaries import SAMPLE
    from tidings.model.event import to_table

    portions = (portion for path in events.files(places) for portion in events.read(path))
    return to_table(islice(chain.from_iterable(portions), SAMPLE))


@index.command()
@ROOT
@options.operators
def show(root: Path | str, modules: tuple[str, ...]) -> None:
    """Show the versions in ROOT and the content of the current one. All of its files are read and checked.

    Of an index that is divided, the subscriptions and bytes of the front and of each part are drawn as bars, with the share of the matches of
    the sample, if there was one. If it is divided by containment, it follows how many subscriptions contain others, and which contain the most.
    """
    compiling.choose([root])
    from tidings.cli.subscriptions import operator_options
    from tidings.storage import remote_index, versions

    version = versions.current(root)
    has_checksums = versions.verify(root, version)
    engine = versions.open(root, version, operators=operator_options(modules))
    here = remote_index.local_root(root, *version)
    division = versions.division(root, version)
    stored = _stored(here / f"v{version.base}")
    changes = (here / f"v{version.base}.tail").read_bytes()[: version.offset].count(b"\n")
    tables = engine.joins.tables.values()
    bases = sorted(int(p.name[1:]) for p in here.glob("v*") if p.is_dir() and p.name[1:].isdecimal())
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    for name, value in (
        ("version", f"{version}"),
        ("bases on disk", ", ".join(f"v{number}" for number in bases)),
        ("subscriptions", f"{len(engine):,}"),
        ("of these in the base", f"{stored['subscriptions'][1] - (division.mergers if division else 0):,}"),
        ("changes in the tail", f"{changes:,}"),
        ("shapes of patterns", f"{stored['shapes'][1]:,}"),
        ("classes", f"{len(engine.taxonomy):,}"),
        ("prefixes", ", ".join(engine.prefixes) or "only the built-in ones"),
        ("networks", ", ".join(f"{name}: {len(n):,} nodes" for name, n in engine.networks.items()) or "none"),
        ("operators", _operators(engine)),
        ("tables", ", ".join(f"{table.name} ({', '.join(table.names)})" for table in tables) or "none"),
        ("subscriptions that join tables", f"{len(engine.joins):,}"),
        ("index of patterns", _size(*stored["patterns"])),
        ("index of filters", _size(*stored["filters"])),
        ("ids and texts", _size(*stored["subscriptions"])),
        ("divided", "no" if division is None else f"{_pieces(division)}, place {division.place}"),
        ("files", "as they were written" if has_checksums else "without checksums; the next base has them"),
    ):
        table.add_row(name, value)
    terminal.out.print(table)
    if (choice := versions.choice(root, version)) is not None:
        terminal.out.print(choice.reason)
    if division is not None:
        terminal.out.print(_bars(division))
    if division is not None and division.trees is not None:
        terminal.out.print(_trees(division.trees))


def _trees(trees: Trees) -> Table:
    """How many contain others, how deep containment goes, and who contains the most."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    table.add_row("roots that contain others", f"{trees.roots:,}")
    table.add_row("containers above the lowest", f"{trees.depth:,}")
    largest = ", ".join(f"{id}: {below:,}" for id, below in trees.largest)
    table.add_row("largest trees", largest or "none")
    return table


def _stored(base: Path) -> dict[str, tuple[int, int]]:
    """Bytes and rows of the arrays of a base, of the front and all parts together."""
    from tidings.arrays import folders
    from tidings.storage.division import pieces_of

    counts = {"patterns": "row_shape", "filters": "code_at", "subscriptions": "valid_until"}
    found = dict.fromkeys([*counts, "shapes"], (0, 0))
    for folder in pieces_of(base):
        for name, column in counts.items():
            arrays, facts = folders.load(folder / name)
            size, rows = found[name]
            found[name] = size + folders.size(arrays), rows + len(arrays[column])
            if name == "patterns":
                found["shapes"] = 0, found["shapes"][1] + len(facts["variables"])
    return found


def _pieces(division: Division) -> str:
    in_parts = sum(piece.subscriptions for piece in division.parts)
    parts = terminal.counted(len(division.parts), "part")
    mergers = f" with {terminal.counted(division.mergers, 'merger')}" if division.mergers else ""
    return f"{division.front.subscriptions:,} in the front{mergers} and {in_parts:,} in {parts}"


def _bars(division: Division) -> Table:
    """Subscriptions and bytes of each piece, with a bar as long as its share of the largest."""
    table = Table(show_header=False, box=None, pad_edge=False)
    for align in ("left", "right", "right", "left", "left"):
        table.add_column(justify=align, style="dim" if not table.columns else "")
    pieces = {"front": division.front} | {f"part {i}": piece for i, piece in enumerate(division.parts)}
    most = max(piece.bytes for piece in pieces.values())
    loads = {f"part {i}": f"{load:.0%} of matches" for i, load in enumerate(division.loads)}
    for name, piece in pieces.items():
        bar = "█" * max(1, round(_BAR * piece.bytes / most))
        subscriptions = terminal.counted(piece.subscriptions, "subscription")
        load = loads.get(name, "")
        size = f"{piece.bytes / 1e6:,.1f} MB" if piece.bytes >= 1e6 else f"{piece.bytes / 1e3:,.0f} kB"
        table.add_row(name, subscriptions, size, bar, load)
    return table


@index.command()
@ROOT
@click.argument("id")
@click.argument("text")
@options.operators
def add(root: Path | str, id: str, text: str, modules: tuple[str, ...]) -> None:
    """Add the subscription ID with TEXT to ROOT; one with the same ID is replaced.

    \b
    Example:
      tidings index add data/index goals "WHERE (?item, rss:title, ?t) AND ?t CONTAINS 'goal'"
      tidings index add data/index dear "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE per > 90"
    """
    compiling.choose([root])
    from tidings.cli.subscriptions import operator_options, warn_of_mistakes_in
    from tidings.engine.engine import BroadSubscription, EmptySubscription
    from tidings.storage import versions

    operators = operator_options(modules)
    with warnings.catch_warnings(record=True) as remarks:
        warnings.simplefilter("always", BroadSubscription)
        warnings.simplefilter("always", EmptySubscription)
        version = versions.append(root, [versions.Change(id, text)], operators=operators)
    for remark in remarks:
        terminal.warn(str(remark.message))
    warn_of_mistakes_in(id, text, versions.open(root, version, operators=operators))
    terminal.out.print(f"{root} is now {version}: {id} added")


@index.command()
@ROOT
@click.argument("id")
@options.operators
def remove(root: Path | str, id: str, modules: tuple[str, ...]) -> None:
    """Remove the subscription ID from ROOT."""
    compiling.choose([root])
    from tidings.cli.subscriptions import operator_options
    from tidings.storage import versions

    operators = operator_options(modules)
    if id not in versions.open(root, versions.current(root), operators=operators):
        raise click.ClickException(f"there is no subscription {id!r} in {root}")
    version = versions.append(root, [versions.Change(id, None)], operators=operators)
    terminal.out.print(f"{root} is now {version}: {id} removed")


@index.command()
@ROOT
@click.argument("name")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@options.operators
def network(root: Path | str, name: str, path: Path, modules: tuple[str, ...]) -> None:
    """Add the network at PATH to ROOT under NAME; one with the same NAME is replaced.

    PATH is as for 'tidings network'. Subscriptions are placed in it with VIA NAME AT 'node'. If a network is replaced, the
    subscriptions in it stay; one whose node is missing gets no notifications.

    \b
    Example:
      tidings index network data/index exchange exchange/
      tidings index add data/index shoes "WHERE topic = 'sport' VIA exchange AT 'acme shoes'"
    """
    compiling.choose([root, path])
    from tidings.cli.subscriptions import operator_options
    from tidings.kinds.networks.files.sources import read_network
    from tidings.storage import versions

    added = read_network(path)
    version = versions.set_network(root, name, added, operators=operator_options(modules))
    terminal.out.print(f"{root} is now {version}: network {name} of {terminal.counted(len(added), 'node')}")


@index.command()
@ROOT
@options.operators
def compact(root: Path | str, modules: tuple[str, ...]) -> None:
    """Rebuild the index in ROOT with all changes since it was built.

    Every change since the last build makes matching a little slower; after many of them this makes it fast again.
    """
    compiling.choose([root])
    from tidings.cli.subscriptions import operator_options
    from tidings.storage import versions

    operators = operator_options(modules)
    version = versions.compact(root, operators=operators)
    engine = versions.open(root, version, operators=operators)
    terminal.out.print(f"{root} is now {version}: {terminal.counted(len(engine), 'subscription')}")


def _operators(engine: Engine) -> str:
    """The operators that are called, and the number of their predicates."""
    called = engine.stats().operators
    predicates = terminal.counted(sum(operator.predicates for operator in called), "predicate")
    return f"{', '.join(operator.operator for operator in called)}: {predicates}" if called else "none"


def _size(bytes: int, count: int) -> str:
    each = f", {bytes / count:,.0f} bytes a subscription" if count else ""
    return f"{bytes / 1e6:,.1f} MB{each}"
