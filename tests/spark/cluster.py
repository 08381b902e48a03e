"""A standalone Spark cluster for tests and benchmarks: a master and workers, on the loopback or on hosts of their own.

A *host* is a network namespace with one end of a cable in a bridge, a cache folder of its own, and none of the folders that are hidden
from it. The bridge, the master and the driver are in a namespace too, the hub: nothing is changed in the network of this machine. All
that was made is removed at the end; what a killed run has left, at the next start.

    hub 10.77.0.1 (bridge, master, driver, store) ── host 0: 10.77.0.10 ── host 1: 10.77.0.11 …
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark

from tests.spark.conftest import start
from tests.storage.caches import own_cache
from tidings.spark import class_archive
from tidings.spark.settings import LOG4J

HOME = Path(pyspark.__file__).parent
HUB = "10.77.0.1"
_PREFIX = "tidings-"
# What a private mount of `ip netns exec` hides from the processes inside; then the command itself.
_HIDING = 'while [ "$1" != -- ]; do mount -t tmpfs none "$1" || exit 1; shift; done; shift; exec "$@"'


def java_service(name: str, *arguments: str) -> tuple[str, ...]:
    """The command of one of Spark's own daemons."""
    options = ("-cp", str(HOME / "jars" / "*"), "-Xmx256m", "-XX:TieredStopAtLevel=1", LOG4J)
    return (str(class_archive.java()), *options, f"org.apache.spark.deploy.{name}", *arguments)


@contextmanager
def running(*command: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process, ended with its children by the id of its group."""
    # What Spark's start scripts would set, for the executors' own class path.
    process = start(*command, SPARK_HOME=str(HOME), SPARK_SCALA_VERSION="2.13", **environment)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    """On the loopback."""
    wait_until(lambda: _is_open(port), process, "a port takes too long to open")


def _is_open(port: int) -> bool:
    with suppress(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    return False


def wait_until(is_done, process: subprocess.Popen[bytes], what: str, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not is_done():
        assert process.poll() is None, f"a process ended before its time: {process.args!r:.300}"
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


@contextmanager
def loopback_cluster(folder: Path, workers: int) -> Iterator[str]:
    """A master and workers of one core on the loopback; the address of the master."""
    port = free_port()
    place = ("--host", "127.0.0.1", "--webui-port", "0")
    with ExitStack() as stack:
        master = stack.enter_context(running(*java_service("master.Master", *place, "--port", str(port))))
        wait_for_port(port, master)
        for number in range(workers):
            work = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work{number}"))
            worker = java_service("worker.Worker", *place, *work, f"spark://127.0.0.1:{port}")
            stack.enter_context(running(*worker))
        yield f"spark://127.0.0.1:{port}"


def why_no_hosts() -> str:
    """Why hosts cannot be made here; empty if they can."""
    if os.geteuid():
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "network namespaces need the command ip"
    name = f"{_PREFIX}{os.getpid()}-probe"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if made.returncode:
        return f"no network namespace can be made here: {made.stderr.strip()}"
    try:
        inside = ["ip", "netns", "exec", name, "mount", "-t", "tmpfs", "none", "/mnt"]
        tried = subprocess.run(inside, capture_output=True, text=True)
        link = ["ip", "-n", name, "link", "add", "bridge", "type", "bridge"]
        tried = tried if tried.returncode else subprocess.run(link, capture_output=True, text=True)
        return f"no host can be made here: {tried.stderr.strip()}" if tried.returncode else ""
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False)


@dataclass
class Host:
    """A network namespace. `folder` has its cache and what its worker writes."""

    name: str
    address: str
    folder: Path
    hidden: tuple[Path, ...] = ()

    def command(self, *command: str) -> tuple[str, ...]:
        """A command as it is run on this host."""
        hidden = (str(path) for path in self.hidden)
        return ("ip", "netns", "exec", self.name, "sh", "-c", _HIDING, "sh", *hidden, "--", *command)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "XDG_CACHE_HOME": str(own_cache(self.folder / "cache")),
            "SPARK_LOCAL_IP": self.address,
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
        }

    def pids(self) -> list[int]:
        listed = subprocess.run(["ip", "netns", "pids", self.name], capture_output=True, text=True)
        return [int(pid) for pid in listed.stdout.split()]

    def kill(self) -> int:
        """Kills all processes of the host at once, as if its power failed; returns how many."""
        killed = 0
        while pids := self.pids():
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
            time.sleep(0.02)  # one that was just forked
        return killed

    def remove(self) -> None:
        self.kill()
        subprocess.run(["ip", "netns", "del", self.name], check=False)


@contextmanager
def hosts(folder: Path, count: int, hidden: tuple[Path, ...] = ()) -> Iterator[tuple[Host, list[Host]]]:
    """The hub and so many hosts, which do not see the folders that are hidden."""
    _remove_left()
    with ExitStack() as stack:
        made = []
        for number in range(-1, count):
            name = f"{_PREFIX}{os.getpid()}-{'hub' if number < 0 else number}"
            address = HUB if number < 0 else f"10.77.0.{10 + number}"
            host = Host(name, address, folder / name, () if number < 0 else hidden)
            host.folder.mkdir(parents=True)
            _run("netns", "add", name)
            stack.callback(host.remove)
            _run("-n", name, "link", "set", "lo", "up")
            made.append(host)
        hub, *others = made
        _run("-n", hub.name, "link", "add", "bridge", "type", "bridge")
        _run("-n", hub.name, "addr", "add", f"{HUB}/24", "dev", "bridge")
        _run("-n", hub.name, "link", "set", "bridge", "up")
        for number, host in enumerate(others):
            cable = f"cable{number}"
            _run(
                "-n",
                hub.name,
                "link",
                "add",
                cable,
                "type",
                "veth",
                "peer",
                "name",
                "eth0",
                "netns",
                host.name,
            )
            _run("-n", hub.name, "link", "set", cable, "master", "bridge", "up")
            _run("-n", host.name, "addr", "add", f"{host.address}/24", "dev", "eth0")
            _run("-n", host.name, "link", "set", "eth0", "up")
        yield hub, others


def _run(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr}"


def _remove_left() -> None:
    """Removes the namespaces of runs that were killed."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    for line in listed.splitlines():
        name = line.split()[0]
        owner = name.removeprefix(_PREFIX).partition("-")[0]
        if name.startswith(_PREFIX) and owner.isdecimal() and not Path(f"/proc/{owner}").exists():
            Host(name, "", Path()).remove()


@contextmanager
def host_cluster(hub: Host, others: list[Host], cores: int) -> Iterator[str]:
    """A master on the hub and a worker on each host; the address of the master."""
    master = f"spark://{HUB}:7077"
    with ExitStack() as stack:
        place = ("--host", HUB, "--port", "7077", "--webui-port", "0")
        command = hub.command(*java_service("master.Master", *place))
        process = stack.enter_context(running(*command, **hub.environment))
        probe = hub.command("bash", "-c", f"exec 3<>/dev/tcp/{HUB}/7077")
        quiet = subprocess.DEVNULL
        wait_until(
            lambda: subprocess.run(probe, stderr=quiet).returncode == 0, process, "the master takes too long"
        )
        for host in others:
            work = ("--cores", str(cores), "--memory", "1g", "--work-dir", str(host.folder / "work"))
            place = ("--host", host.address, "--webui-port", "0")
            command = host.command(*java_service("worker.Worker", *place, *work, master))
            stack.enter_context(running(*command, **host.environment))
        yield master
