"""`tidings demo`: runs a service with sample data, with nothing to configure, and shows its page.

It starts `tidings serve` on a folder of its own, with 20,000 generated subscriptions, and is its client: it makes
sample subscriptions, publishes sample feeds, subscribes once more while the stream runs, and measures a burst of
events. Then it publishes generated news as long as the page is open. Ending the demo ends the service too.
"""

from __future__ import annotations

import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from tidings.cli import options, terminal
from tidings.cli.demo import demo_data
from tidings.errors import TidingsError

if TYPE_CHECKING:
    from tidings.client import Client, Notification, Receipt, Status, Subscription

PORT = 8750
LATE = "night trains"
LATE_TEXT = "SELECT ?title WHERE (?item, rss:title, ?title) AND ?title MATCHES '(?i)night train'"
LATE_BEFORE = "markets.json"
NEWS_EVERY = 0.5  # seconds
PATIENCE = 180.0  # seconds for whatever is waited for
LOG = "service.log"
_POLL_SECONDS = 0.05


@click.command()
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Work in this folder and leave everything there, instead of in a temporary one.",
)
@click.option(
    "--no-page", is_flag=True, help="End when the page was seen to answer, and do not keep it open."
)
@click.option(
    "--chaos",
    is_flag=True,
    help="Kill one process of the service after the other instead, and check that no notification is lost; then end.",
)
@click.option(
    "--port",
    type=click.IntRange(1, 65_535),
    metavar="N",
    help=f"The port of the page. Without it: {PORT}, or any free one if that is taken.",
)
def demo(keep: Path | None, no_page: bool, chaos: bool, port: int | None) -> None:
    """Start a service, publish sample feeds to it, and show its page.

    Sixteen sample feeds are published to a service on this machine and matched by its Spark stream against the
    subscriptions of examples/subscriptions.txt and 20,000 generated ones. Then more news are published, and the page
    shows the matches, until Ctrl-C. Needs Java 17 or newer; the page is there in under a minute.

    With --chaos a worker, the JVM, the driver and the service are killed one after the other; at the end it prints how
    many events were published, received, lost and received twice.
    """
    from tidings.spark.startup import need_spark

    need_spark()
    with ExitStack() as stack:
        stack.enter_context(ended_by_signals())
        folder = keep or Path(stack.enter_context(TemporaryDirectory(prefix="tidings-demo-")))
        options.need_folder(folder, "by --keep")
        if any(folder.iterdir()):
            raise click.ClickException(f"{folder} is not empty; name a new folder")
        play = Demo(folder, stack, port)
        if chaos:
            from tidings.cli.demo.chaos import Chaos

            play = Chaos(folder, stack, port)
        with suppress(KeyboardInterrupt):
            play.play()
            if not chaos:
                play.check_page() if no_page else play.show_page()
    if keep:
        given = [*play.options, *(("--port", str(play.port)) if play.port != PORT else ())]
        command = shlex.join(["tidings", "serve", "--data", str(keep), *given])
        terminal.out.print(
            f"\nAll is in {keep}: subscriptions, the event log, the index, notifications. To go on with it:\n"
            f"  {command}"
        )


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Treats other signals like Ctrl-C, so that the demo always ends what it has started."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Demo:
    """The steps of the demo, in order; `stack` ends what they began."""

    def __init__(self, folder: Path, stack: ExitStack, port: int | None) -> None:
        from tidings.cli.subscriptions import SubscriptionFile

        self.folder, self.stack = folder, stack
        self.port = _free_port() if port is None else _need_port(port)
        examples = demo_data.folder()
        questions = SubscriptionFile.read(examples / "subscriptions.txt")
        self.questions = [(entry.id, entry.text) for entry in questions.entries]
        self.options = ["--taxonomy", str(examples / "taxonomy.ttl")]
        for name, iri in questions.prefixes.items():
            self.options += ["--prefix", f"{name}={iri}"]
        self.feeds = sorted((examples / "feeds").iterdir())
        self.subscribed: dict[str, Subscription] = {}
        self.seen = 0  # number of the last notification
        self.published = self.notifications = 0
        self.latencies: list[float] = []
        self.bar = stack.enter_context(
            Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                TimeElapsedColumn(),
                console=terminal.out,
                transient=True,
                disable=not terminal.out.is_terminal,
            )
        )

    def play(self) -> None:
        self._say("Tidings", "sample feeds through a service, and Spark Structured Streaming behind it")
        self._gather()
        self._start()
        self._subscribe()
        refused = self._publish_feeds()
        rate = self._burst()
        self._summary(refused, rate)

    def check_page(self) -> None:
        """Publishes some news, and requests the page once."""
        self._publish(list(islice(demo_data.news(), 20)))
        self._wait_for_answers()
        self._look_at_page()

    def show_page(self) -> None:
        """Keeps the page alive until Ctrl-C."""
        self.bar.stop()
        self._say("Page", "what is published from now on appears there as it is matched")
        terminal.out.print(Text.assemble("\n    ", (self.client.address, "bold underline"), "\n"))
        terminal.note("Ctrl-C ends the demo.")
        for event in demo_data.news():
            self._publish([event])
            time.sleep(NEWS_EVERY)

    # The acts

    def _gather(self) -> None:
        """Writes the generated subscriptions into the registry before the service starts."""
        from tidings.service.model import Subscription
        from tidings.service.settings import Settings
        from tidings.service.store.database import open_stores
        from tidings.service.subscriptions import tickets

        began, now = time.perf_counter(), time.time()
        with self._working("adding generated subscriptions"):
            registry, mailbox = open_stores(Settings(self.folder.absolute()))
            registry.add_many(
                [
                    Subscription(
                        tickets.new_id("s"),
                        text,
                        name,
                        "",
                        tickets.digest(tickets.new_secret()),
                        tickets.new_secret("f"),
                        now,
                        None,
                    )
                    for name, text in demo_data.operators()
                ]
            )
            registry.close()
            mailbox.close()
        self._say("Generated", f"{demo_data.OPERATORS:,} subscriptions", time.perf_counter() - began)

    def _start(self) -> None:
        from tidings.client import Client

        began = time.perf_counter()
        self._launch()
        self.stack.callback(self._stop)
        self.client: Client = self.stack.enter_context(Client(f"http://127.0.0.1:{self.port}"))
        with self._working("starting the service and its Spark stream"):
            status = self._until(lambda status: status.ready)
        took = time.perf_counter() - began
        summary = f"at {self.client.address}, the index is {status.index_version}, the stream runs"
        self._say("Service", summary, took)

    def _launch(self) -> None:
        """Starts the process of the service; -P: it imports nothing from the folder that the user is in."""
        command = [sys.executable, "-P", "-c", "from tidings.cli import main; main()", "serve"]
        command += ["--data", str(self.folder), "--port", str(self.port), *self.options]
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / LOG).open("ab") as out:
            # In a session of its own: Ctrl-C is for the demo, which ends the service in its turn.
            self.process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)

    def _subscribe(self) -> None:
        for name, text in self.questions:
            self.subscribed[name] = self.client.subscribe(text, title=name)
        self._say("Subscribed", f"to the {len(self.subscribed)} subscriptions of subscriptions.txt")

    def _publish_feeds(self) -> int:
        """Posts each feed and waits for its notifications; returns how many feeds were refused."""
        from tidings.client import ServiceError

        self._say("Feeds", f"{len(self.feeds)} files, posted one after the other")
        refused = 0
        with self._working("first micro-batch: starting workers"):
            for path in self.feeds:
                if path.name == LATE_BEFORE:
                    self._subscribe_late()
                kind = "jsonfeed" if path.suffix == ".json" else "application/xml"
                began = time.perf_counter()
                try:
                    receipt = self._publish(path.read_bytes(), format=kind, source=path.name)
                except ServiceError as error:
                    refused += 1
                    self._print(_feed_line(path.name, f"refused: {error}", "yellow"))
                    continue
                notifications = self._wait_for_answers()
                seconds = time.perf_counter() - began
                first = "" if self.latencies else ", with the start of Spark's Python workers"
                line = f"{receipt.accepted} events"
                self._print(_feed_line(path.name, line, "bold", f"{seconds:.2f} s{first}"))
                self.latencies.append(seconds)
                self._show(notifications)
        return refused

    def _subscribe_late(self) -> None:
        self.subscribed[LATE] = self.client.subscribe(LATE_TEXT, title=LATE)
        self._print(Text("  + a subscription is added while the stream runs", style="bold magenta"))
        self._print(Text(f"      {LATE}: {LATE_TEXT}", style="magenta"))

    def _show(self, notifications: int) -> None:
        """Prints the notifications of the sample subscriptions, and the count of the generated ones."""
        own = [
            (name, notification)
            for name, subscription in self.subscribed.items()
            for notification in self.client.notifications(subscription, after=self.seen)
        ]
        for name, notification in sorted(own, key=lambda pair: pair[1].number):
            self._print(Text("      ") + _notification_line(name, notification))
            self.seen = notification.number
        if others := notifications - len(own):
            self._print(Text(f"      and {others} notifications of generated subscriptions", style="green"))

    def _burst(self) -> float:
        """Publishes many events; the rate is from the first post to the last notification."""
        events = demo_data.advisories()
        subscriptions = demo_data.OPERATORS + len(self.subscribed)
        self._say("Burst", f"{len(events):,} generated advisories against {subscriptions:,} subscriptions")
        began = time.perf_counter()
        with self._working("advisories"):
            self._publish(events)
            notifications = self._wait_for_answers()
        seconds = time.perf_counter() - began
        self._print(Text(f"  {notifications:,} notifications in {seconds:.1f} s", style="green"))
        return len(events) / seconds

    def _summary(self, refused: int, rate: float) -> None:
        status = self.client.status()
        self._say("Summary", "")
        for name, value in (
            (
                "events",
                f"{status.events:,} ({len(self.feeds) - refused} feeds of {len(self.feeds)}, and the burst)",
            ),
            ("subscriptions", f"{status.subscriptions['active']:,}"),
            ("notifications", f"{status.notifications:,}"),
            ("a feed", f"{median(self.latencies):.2f} s from its post to its notifications, at the median"),
            ("the burst", f"{rate:,.0f} events/s, durable and matched against all subscriptions"),
        ):
            self._print(Text.assemble("  ", (f"{name:<16}", "dim"), (value, "bold")))

    def _look_at_page(self) -> None:
        import httpx

        page = httpx.get(self.client.address, headers={"Accept": "text/html"}, timeout=PATIENCE)
        latest = httpx.get(self.client.address, headers={"Accept": "application/json"}, timeout=PATIENCE)
        page.raise_for_status()
        shown = [
            notification["event"]["title"]
            for notification in latest.json()["notifications"]
            if notification["event"]
        ]
        self._say("Page", f"{self.client.address} shows the last {len(shown)} notifications")
        self._print(Text(f"  {shown[0]}", style="bold"))

    # What they have in common

    def _publish(self, events: object, **how: str) -> Receipt:
        receipt = self.client.publish(events, **how)
        self.published += receipt.accepted
        return receipt

    def _wait_for_answers(self) -> int:
        """Waits until the stream has matched everything that was published; returns the number of notifications."""
        before = self.notifications
        self.notifications = self._until(lambda status: status.events >= self.published).notifications
        return self.notifications - before

    def _until(self, holds: Callable[[Status], bool]) -> Status:
        from tidings.client import ServiceError

        deadline = time.monotonic() + PATIENCE
        while True:
            if self.process.poll() is not None:
                raise TidingsError(f"the service has ended; the last line of its log: {self._last_words()}")
            with suppress(ServiceError):  # it does not listen yet
                if holds(status := self.client.status()):
                    return status
            if time.monotonic() > deadline:
                raise TidingsError(
                    f"the service takes too long; the last line of its log: {self._last_words()}"
                )
            time.sleep(_POLL_SECONDS)

    def _last_words(self) -> str:
        lines = (self.folder / LOG).read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "none"

    def _stop(self) -> None:
        """Lets the service finish its micro-batch and end its Spark."""
        with self._working("ending the service"):
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    @contextmanager
    def _working(self, what: str) -> Iterator[None]:
        task = self.bar.add_task(what, total=None)
        try:
            yield
        finally:
            self.bar.remove_task(task)

    def _say(self, title: str, sentence: str, seconds: float | None = None) -> None:
        took = f"  ({seconds:.1f} s)" if seconds is not None else ""
        self._print(Text.assemble((f"{title:<12}", "bold blue"), sentence, (took, "dim")))

    def _print(self, line: Text) -> None:
        # Lines stay whole in a log; in a terminal a long one is cut rather than wrapped into the next.
        if terminal.out.is_terminal:
            terminal.out.print(line, soft_wrap=False, no_wrap=True, overflow="ellipsis")
        else:
            terminal.out.print(line)


def _notification_line(name: str, notification: Notification) -> Text:
    line = Text(name, style="bold green")
    for variable, value in notification.bindings.items():
        line.append_text(Text.assemble((f"  ?{variable} ", "cyan"), terminal.brief(value)))
    return line


def _free_port() -> int:
    """The default port, or any free one."""
    for port in (PORT, 0):
        with suppress(OSError):
            return _bound(port)
    raise TidingsError("no port of this machine is free; end something that listens, and try again")


def _need_port(port: int) -> int:
    try:
        return _bound(port)
    except OSError as error:
        raise TidingsError(
            f"port {port} cannot be used ({str(error.strerror).lower()}); name another one by --port"
        ) from None


def _bound(port: int) -> int:
    """Listens at a port for a moment; 0 is any free one."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        return int(listener.getsockname()[1])


def _feed_line(name: str, text: str, style: str, remark: str = "") -> Text:
    return Text.assemble("  ", (f"{name:<22}", style), text, (remark and f"  ({remark})", "dim"))
