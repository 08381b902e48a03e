"""`tidings run`: runs a stream from its sources through the event log and Spark to notifications."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING

import click
from rich.live import Live
from rich.text import Text

from tidings.cli import options, terminal
from tidings.cli.notification_output import NotificationWriter, open_writer

if TYPE_CHECKING:
    from tidings.cli.stream_config import StreamConfig
    from tidings.cli.stream_sources import StreamSources
    from tidings.kinds.operators.functions.operator import Operator
    from tidings.spark import Batch, Stream
    from tidings.storage.event_log import EventLog

STARTING = "starting Spark"
WAITING = "waiting for events"
DATA = "as 'data' in the configuration"


@click.command()
@click.argument("config", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="CONFIG.toml")
@click.option("--once", is_flag=True, help="Match the events that are there now, and end.")
@click.option(
    "--format",
    "-f",
    type=click.Choice(("text", "ndjson", "none")),
    default="text",
    show_default=True,
    help="The format of notifications on standard output; Parquet files are written in any case.",
)
@options.memory
def run(config: Path, once: bool, format: str, memory: int | None) -> None:
    """Run a stream: sources, event log, Spark, notifications.

    CONFIG.toml names the feeds to follow, the folders to watch, and the subscriptions; examples/stream.toml has
    every key, with what it is for. Ctrl-C ends the stream after the micro-batch under way; the next run goes on
    where this one ended. Nothing is lost and nothing is notified twice.

    \b
    A small CONFIG.toml:
      subscriptions = "subscriptions.txt"
      [sources]
      feeds = ["https://example.org/news.rss"]
      folders = ["inbox"]

    While it runs, 'tidings index add' and 'tidings index remove' change its subscriptions, 'tidings index network' its
    networks, which CONFIG.toml names by [networks] and NAME = "PATH". Operators that the subscriptions call are named
    by operators = ["FILE.py", "package.module"].
    """
    from tidings.cli.stream_config import StreamConfig

    with ExitStack() as stack:
        writer = None if format == "none" else stack.enter_context(open_writer(format, None))
        _Run(StreamConfig.read(config), writer, stack, memory).play(once)


class _Run:
    """One run of a stream; `stack` ends what it began."""

    def __init__(
        self, config: StreamConfig, writer: NotificationWriter | None, stack: ExitStack, memory: int | None
    ) -> None:
        self.config, self.writer, self.stack, self.memory = config, writer, stack, memory
        self.events = self.notifications = self.batches = 0
        self.version = ""
        self.forwards = self.false_positives = 0
        self.began = time.monotonic()
        self.interrupted = False
        # Where answers go to the terminal, the status must be drawn by the same console, or they would cut it up.
        self.console = terminal.out if terminal.out.is_terminal else terminal.err
        self.status: Live | None = None
        self.operators: list[Operator] = []

    def play(self, once: bool) -> None:
        from tidings.cli.stream_sources import StreamSources
        from tidings.storage.event_log import EventLog

        config = self.config
        self._prepare_index()
        for folder in (config.states, config.log, config.output, config.checkpoint):
            options.need_folder(folder, DATA)
        with EventLog(self.config.log) as log:
            if self.console.is_terminal:
                self.status = self.stack.enter_context(Live(console=self.console, transient=True))
            sources = StreamSources(self.config, log, terminal.warn)
            batches = MicroBatches()
            if once:
                self._show("reading the sources")
                sources.once()
                self._follow(self._start(log, batches, once=True), batches, None)
            else:
                stream = self._start(log, batches, once=False)
                sources.start()
                self._follow(stream, batches, sources)
        if self.status is not None:
            self.status.stop()
        terminal.note("; ".join(self._counts()))

    def _prepare_index(self) -> None:
        """Builds the index in the first run; later runs leave it to 'tidings index'."""
        from tidings.cli.subscriptions import load, operator_options
        from tidings.spark.version_pins import last_base
        from tidings.storage import remote_index, versions

        config = self.config
        self.operators = operator_options(config.operators)  # their errors are reported before Spark starts
        if remote_index.has_index(config.index):
            versions.check_memory(config.index, versions.current(config.index), self.memory)
            return
        if config.subscriptions is None:
            raise click.ClickException(
                f"there is no index in {config.index}; name a file of subscriptions in the configuration,"
                " or build the index with 'tidings index build'"
            )
        engine = load(
            config.subscriptions,
            config.taxonomy,
            config.prefixes,
            networks=config.networks,
            operators=self.operators,
        )
        if isinstance(config.index, Path):
            options.need_folder(config.index, DATA)
        # An index that was lost must not get the versions that the checkpoint has pinned.
        version = versions.publish(config.index, engine, at_least=last_base(config.checkpoint) + 1)
        terminal.note(f"{config.index} is now {version}: {len(engine):,} subscriptions")

    def _start(self, log: EventLog, batches: MicroBatches, once: bool) -> Stream:
        from tidings.spark.startup import start_spark

        self._show(STARTING)
        spark = start_spark(self.config.master, self.config.index, self.config.settings)
        self.stack.callback(spark.stop)
        # From here on an interrupt lets the micro-batch under way come to its end.
        for number in (signal.SIGINT, signal.SIGTERM):
            self.stack.callback(signal.signal, number, signal.signal(number, self._interrupt))
        from tidings.spark import run as run_stream

        stream = run_stream(
            spark,
            log.folder,
            self.config.index,
            self.config.output,
            self.config.checkpoint,
            on_batch=batches,
            interval=self.config.interval,
            available_now=once,
            max_events=self.config.max_events,
            operators=self.operators,
            memory=self.memory,
        )
        self.stack.callback(stream.stop)
        self._show(WAITING)
        return stream

    def _follow(self, stream: Stream, batches: MicroBatches, sources: StreamSources | None) -> None:
        """Prints finished batches until the stream ends or is interrupted."""
        while stream.is_active and not self.interrupted:
            for batch in batches.ready(0.25):
                self._take(batch)
            self._show(WAITING)
            if sources is not None and sources.failure is not None:
                raise sources.failure
        if self.interrupted:
            if sources is not None:
                sources.stop()
            self._show("finishing the micro-batch; Ctrl-C again to end at once")
            stream.finish()
        else:
            stream.wait(10)  # raises what made it end, if anything did
        for batch in batches.ready(0.25):
            self._take(batch)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True

    def _take(self, batch: Batch) -> None:
        self.batches += 1
        self.events += batch.events
        self.notifications += batch.notifications
        self.version = batch.version
        self.forwards += batch.visits.forwards
        self.false_positives += batch.visits.false_positives
        if self.writer is not None and (batch.notifications or batch.errors):
            self.writer.write(batch.table())

    def _counts(self) -> list[str]:
        counts = {"micro-batch": self.batches, "event": self.events, "notification": self.notifications}
        found = [terminal.counted(number, noun) for noun, number in counts.items()]
        if self.forwards:
            visits = terminal.counted(self.forwards, "visit")
            found.append(f"{visits} of parts, {self.false_positives:,} without a match")
        return found

    def _show(self, doing: str) -> None:
        if self.status is not None:
            clock = f"{time.monotonic() - self.began:.0f} s"
            line = "   ".join([clock, *self._counts(), *([self.version] if self.version else []), doing])
            self.status.update(Text(line, style="reverse", no_wrap=True, overflow="ellipsis"))
        elif doing == STARTING:
            terminal.note(doing)


class MicroBatches:
    """Passes the finished micro-batches of a stream from Spark's thread to the one that prints."""

    def __init__(self) -> None:
        self._done: SimpleQueue[Batch] = SimpleQueue()

    def __call__(self, batch: Batch) -> None:
        self._done.put(batch)

    def ready(self, seconds: float) -> Iterator[Batch]:
        """The finished batches; waits for the first of them, at most so long."""
        try:
            yield self._done.get(timeout=seconds)
            while True:
                yield self._done.get_nowait()
        except Empty:
            return
