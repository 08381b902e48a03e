"""`tidings demo`: the whole way at once, with nothing to configure.

Sample feeds -> event log -> a Spark stream on local cores -> notifications, with a subscription that is added while
the stream runs, and a burst of events at the end that gives a rate.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from tidings.cli import samples, terminal

if TYPE_CHECKING:
    from tidings.cli.streaming import Batches
    from tidings.engine import Engine
    from tidings.log import EventLog
    from tidings.spark import Batch, Stream

MASTER = "local[*,4]"
LATE = "night trains"
LATE_TEXT = "SELECT ?title WHERE (?item, rss:title, ?title) AND ?title MATCHES '(?i)night train'"
LATE_BEFORE = "markets.json"
BURST_BATCH = 5_000


@click.command()
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Work in this folder and leave everything there, instead of in a temporary one.",
)
def demo(keep: Path | None) -> None:
    """Run sample feeds through a Spark stream and show the notifications.

    Sixteen sample feeds go through an event log and Spark Structured Streaming on local cores, against the questions
    of examples/subscriptions.txt and 100,000 generated ones. Needs Java 17 or newer; takes under a minute.
    """
    with ExitStack() as stack:
        folder = keep or Path(stack.enter_context(TemporaryDirectory(prefix="tidings-demo-")))
        if folder.exists() and any(folder.iterdir()):
            raise click.ClickException(f"{folder} is not empty; name a new folder")
        Demo(folder, stack).play()
    if keep:
        terminal.out.print(
            f"\nAll is in {keep}: the event log, the index, the notifications as Parquet.\n"
            f"  tidings index show {keep}/index"
        )


class Demo:
    """The acts of the demo, in order; `stack` ends what they began."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.index = folder / "index"
        self.stack = stack
        self.events = self.notifications = 0
        self.subscriptions = 0
        self.latencies: list[float] = []
        self.bar = stack.enter_context(
            Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[done]}"),
                TimeElapsedColumn(),
                console=terminal.out,
                transient=True,
                disable=not terminal.out.is_terminal,
            )
        )

    def play(self) -> None:
        self._say("Tidings", f"sample feeds through Spark Structured Streaming on {MASTER}")
        self._build()
        stream, log, batches = self._start()
        feeds = sorted((samples.folder() / "feeds").iterdir())
        refused = self._publish_feeds(feeds, stream, log, batches)
        rate = self._burst(stream, log, batches)
        self.bar.stop()
        self._summary(len(feeds), refused, rate)

    def _build(self) -> None:
        from tidings import versions

        task = self.bar.add_task("building the index", total=None, done="")
        began = time.perf_counter()
        engine = self._engine()
        own = len(engine)
        engine.subscribe_table(samples.TEMPLATE, samples.operators())
        version = versions.publish(self.index, engine)
        self.subscriptions = len(engine)
        self.bar.remove_task(task)
        self._say(
            "Index",
            f"{own} questions from subscriptions.txt and {samples.OPERATORS:,} of one template: {version}",
            time.perf_counter() - began,
        )

    def _engine(self) -> Engine:
        from tidings.cli.subscriptions import load

        examples = samples.folder()
        return load(
            examples / "subscriptions.txt", examples / "taxonomy.ttl", {"adv": "http://example.org/advisory#"}
        )

    def _start(self) -> tuple[Stream, EventLog, Batches]:
        from tidings.cli.streaming import Batches
        from tidings.log import EventLog
        from tidings.spark.starting import start_spark

        task = self.bar.add_task("starting Spark", total=None, done="")
        began = time.perf_counter()
        spark = start_spark(MASTER, self.index)
        self.stack.callback(spark.stop)
        from tidings.spark import run

        log = self.stack.enter_context(EventLog(self.folder / "log"))
        batches = Batches()
        stream = run(
            spark,
            log.folder,
            self.index,
            self.folder / "notifications",
            self.folder / "checkpoint",
            on_batch=batches,
            max_events=BURST_BATCH,
        )
        self.stack.callback(stream.stop)
        self.bar.remove_task(task)
        self._say("Spark", f"version {spark.version}, the stream is running", time.perf_counter() - began)
        return stream, log, batches

    def _publish_feeds(self, feeds: list[Path], stream: Stream, log: EventLog, batches: Batches) -> int:
        """Each feed is appended to the log and answered by the next micro-batch. How many were refused."""
        from tidings import feeds as reader
        from tidings.errors import EventError

        self._say("Feeds", f"{len(feeds)} files, one after the other into the event log")
        task = self.bar.add_task("first micro-batch: starting workers", total=None, done="")
        refused = 0
        for number, path in enumerate(feeds, 1):
            if path.name == LATE_BEFORE:
                self._subscribe_late()
            try:
                events = reader.read(path.read_bytes(), path.name)
            except EventError as error:
                refused += 1
                self._print(
                    _feed_line(path.name, f"refused: {str(error).removeprefix(f'{path.name}: ')}", "yellow")
                )
            else:
                began = time.perf_counter()
                log.append(events)
                answered = list(batches.until(len(events), stream))
                seconds = time.perf_counter() - began
                first = "" if self.latencies else ", with the start of Spark's Python workers"
                self._print(_feed_line(path.name, f"{len(events)} events", "bold", f"{seconds:.2f} s{first}"))
                self.latencies.append(seconds)
                for batch in answered:
                    self._show(batch)
            done = f"{number} of {len(feeds)}"
            self.bar.update(task, description="feeds", total=len(feeds), completed=number, done=done)
        self.bar.remove_task(task)
        return refused

    def _subscribe_late(self) -> None:
        from tidings import versions

        version = versions.append(self.index, [versions.Change(LATE, LATE_TEXT)])
        self.subscriptions += 1
        self._print(Text(f"  + a question is added while the stream runs ({version})", style="bold magenta"))
        self._print(Text(f"      {LATE}: {LATE_TEXT}", style="magenta"))

    def _show(self, batch: Batch) -> None:
        self._count(batch)
        rows = batch.table().to_pylist()
        own = [row for row in rows if not row["subscription"].startswith(samples.CROWD)]
        for line in terminal.notification_lines(own, source=False):
            self._print(Text("      ") + line)
        if crowd := len(rows) - len(own):
            self._print(
                Text(f"      and {crowd} of the {samples.OPERATORS:,} operators are told", style="green")
            )

    def _burst(self, stream: Stream, log: EventLog, batches: Batches) -> float:
        """Many events at once; the rate is from the first one's append to the last one's notification."""
        events = samples.advisories()
        self._say(
            "Burst", f"{len(events):,} generated advisories at once, against {self.subscriptions:,} questions"
        )
        task = self.bar.add_task("advisories", total=len(events), done="")
        before, answered = self.notifications, 0
        began = time.perf_counter()
        log.append(events)
        for batch in batches.until(len(events), stream):
            self._count(batch)
            answered += batch.events
            self.bar.update(task, completed=answered, done=f"{answered:,}")
            told = f"{batch.events:,} events, {batch.notifications:,} notifications"
            self._print(Text(f"  micro-batch {batch.id:<3} {told}"))
        seconds = time.perf_counter() - began
        self.bar.remove_task(task)
        self._print(
            Text(f"  {self.notifications - before:,} notifications in {seconds:.1f} s", style="green")
        )
        return len(events) / seconds

    def _count(self, batch: Batch) -> None:
        self.events += batch.events
        self.notifications += batch.notifications

    def _summary(self, feeds: int, refused: int, rate: float) -> None:
        self._say("Summary", "")
        for name, value in (
            ("events", f"{self.events:,} ({feeds - refused} feeds of {feeds}, and the burst)"),
            ("subscriptions", f"{self.subscriptions:,}"),
            ("notifications", f"{self.notifications:,}"),
            ("a feed", f"{median(self.latencies):.2f} s from the log to its notifications, at the median"),
            ("the burst", f"{rate:,.0f} events/s, each against all subscriptions"),
        ):
            self._print(Text.assemble("  ", (f"{name:<16}", "dim"), (value, "bold")))

    def _say(self, title: str, sentence: str, seconds: float | None = None) -> None:
        took = f"  ({seconds:.1f} s)" if seconds is not None else ""
        self._print(Text.assemble((f"{title:<8}", "bold blue"), sentence, (took, "dim")))

    def _print(self, line: Text) -> None:
        # Lines stay whole in a log; in a terminal a long one is cut rather than wrapped into the next.
        if terminal.out.is_terminal:
            terminal.out.print(line, soft_wrap=False, no_wrap=True, overflow="ellipsis")
        else:
            terminal.out.print(line)


def _feed_line(name: str, told: str, style: str, remark: str = "") -> Text:
    return Text.assemble("  ", (f"{name:<22}", style), told, (remark and f"  ({remark})", "dim"))
