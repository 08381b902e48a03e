"""Six relays in network namespaces below a centre with two links, 2,000 listeners, 300 of them matching each event.

              ┌── a ──┬── a1        every line is a veth pair of its own, whose bytes the kernel counts;
    centre ───┤       └── a2        listeners are in the namespaces of their relays, and are connected over loopback
              └── b ──┬── b1
                      └── b2

    sudo python -m benchmarks.relays.live [--seconds 30] [--spark]

Reported: how often each event crossed each link, the bytes that the centre has sent beside those of unicast (what all
listeners have received), and latencies from publishing to the listener, at the centre and at the relays, in one run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
PARENTS = {"a": "c", "b": "c", "a1": "a", "a2": "a", "b1": "b", "b2": "b"}
LISTENERS, MATCHING, RATE, AT_CENTRE = 2_000, 300, 20, 20
_PORT = 8750
_ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}


class Namespaces:
    """The namespaces and the links between them. `address(child)` is where a child finds its parent."""

    def __init__(self, stack: ExitStack) -> None:
        self._prefix = f"tdr{os.getpid() % 10_000}"
        for name in ("c", *PARENTS):
            _ip("netns", "add", self.name(name))
            stack.callback(_ip, "netns", "del", self.name(name), check=False)
            self.run(name, "ip", "link", "set", "lo", "up")
        for at, (child, parent) in enumerate(PARENTS.items(), 1):
            ends = f"{self._prefix}{at}u", f"{self._prefix}{at}d"
            _ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
            for end, name, host in ((ends[0], parent, 1), (ends[1], child, 2)):
                _ip(
                    "link",
                    "set",
                    end,
                    "netns",
                    self.name(name),
                    "name",
                    f"to-{child if host == 1 else parent}",
                )
                device = f"to-{child if host == 1 else parent}"
                self.run(name, "ip", "addr", "add", f"10.77.{at}.{host}/24", "dev", device)
                self.run(name, "ip", "link", "set", device, "up")

    def name(self, name: str) -> str:
        return f"{self._prefix}-{name}"

    def address(self, child: str) -> str:
        return f"http://10.77.{list(PARENTS).index(child) + 1}.1:{_PORT}"

    def command(self, name: str, *command: str) -> list[str]:
        return ["ip", "netns", "exec", self.name(name), *command]

    def run(self, name: str, *command: str) -> str:
        return subprocess.run(self.command(name, *command), check=True, capture_output=True, text=True).stdout

    def sent(self, parent: str, child: str) -> int:
        """The bytes that have left a namespace towards a child."""
        return int(self.run(parent, "cat", f"/sys/class/net/to-{child}/statistics/tx_bytes"))


def _ip(*command: str, check: bool = True) -> None:
    subprocess.run(["ip", *command], check=check, capture_output=True)


class Process:
    """A Python module in a namespace, given a line on its standard input."""

    def __init__(self, spaces: Namespaces, name: str, module: str, given: dict[str, Any], log: Path) -> None:
        self._process = subprocess.Popen(
            spaces.command(name, sys.executable, "-m", module),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log.open("w"),
            text=True,
            env=_ENVIRONMENT,
            cwd=ROOT,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(given) + "\n")
        self._process.stdin.flush()

    def await_line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def finish(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._process.communicate("")[0])
        return answer

    def cpu(self) -> float:
        """Seconds of processor time that it has used, with those of its children that have ended."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()


class Calls:
    """HTTP calls inside a namespace."""

    def __init__(self, spaces: Namespaces) -> None:
        self._spaces = spaces

    def get(self, name: str, path: str) -> str:
        return self._spaces.run(name, "curl", "-s", "--max-time", "20", f"http://127.0.0.1:{_PORT}{path}")

    def post(self, name: str, path: str, body: object) -> Any:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(body, file)
            file.flush()
            kind = "Content-Type: application/json"
            url = f"http://127.0.0.1:{_PORT}{path}"
            return json.loads(
                self._spaces.run(name, "curl", "-s", "-X", "POST", "-H", kind, "-d", f"@{file.name}", url)
            )

    def await_ready(self, name: str, seconds: float = 240) -> None:
        deadline = time.monotonic() + seconds
        while True:
            try:
                if '"ok"' in self.get(name, "/ready"):
                    return
            except subprocess.CalledProcessError:
                pass
            if time.monotonic() > deadline:
                raise SystemExit(f"{name} does not become ready")
            time.sleep(0.5)

    def counts(self, name: str) -> dict[str, float]:
        """The metrics of links, added up by name and direction."""
        found: dict[str, float] = {}
        for line in self.get(name, "/metrics").splitlines():
            if line.startswith("tidings_link_") and "_created" not in line:
                key = line.partition("{")[0] + (" up" if 'direction="up"' in line else "")
                found[key] = found.get(key, 0.0) + float(line.rsplit(" ", 1)[1])
        return found


def texts(count: int, first: int = 0) -> list[dict[str, str]]:
    buckets = LISTENERS // MATCHING
    return [
        {"text": f"WHERE bucket = {(first + at) % buckets} AND price < {1_000 + at}", "valid_for": "never"}  # type: ignore[dict-item]
        for at in range(count)
    ]


def measure(seconds: float, spark: bool, work: Path, stack: ExitStack) -> dict[str, Any]:
    spaces = Namespaces(stack)
    calls = Calls(spaces)
    services: dict[str, Process] = {}
    for name in ("c", *PARENTS):
        upstream = [] if name == "c" else [spaces.address(name)]
        matching = "spark" if name == "c" and spark else "process"
        given = {
            "data": str(work / name),
            "host": "0.0.0.0",
            "port": _PORT,
            "matching": matching,
            "upstream": upstream,
        }
        process = Process(spaces, name, "benchmarks.relays.serve", given, work / f"{name}.log")
        stack.callback(process.end)
        services[name] = process
        calls.await_ready(name)
        print(f"{name} is ready", flush=True)
    share = -(-LISTENERS // len(PARENTS))
    listening = {}
    for name in ("c", *PARENTS):
        count = AT_CENTRE if name == "c" else share
        items = calls.post(name, "/api/subscriptions/bulk", texts(count))["items"]
        ids = [item["id"] for item in items]
        given = {"host": "127.0.0.1", "port": _PORT, "subscriptions": ids}
        listening[name] = Process(spaces, name, "benchmarks.relays.listeners", given, work / f"{name}-l.log")
        stack.callback(listening[name].end)
    for name, process in listening.items():
        assert process.await_line() == "ready", (work / f"{name}-l.log").read_text()
    print("all listeners are connected", flush=True)
    time.sleep(20)  # indexes are folded
    before = {child: spaces.sent(parent, child) for child, parent in PARENTS.items()}
    busy = {name: process.cpu() for name, process in services.items()}
    heard = sum(process.cpu() for process in listening.values())
    publisher = Process(
        spaces,
        "c",
        "benchmarks.relays.publisher",
        {"port": _PORT, "rate": RATE, "seconds": seconds, "buckets": LISTENERS // MATCHING},
        work / "publisher.log",
    )
    published = int(publisher.await_line())
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and any(
        calls.counts(name).get("tidings_link_messages_total up", 0) < published for name in PARENTS
    ):
        time.sleep(1)
    time.sleep(5)
    bytes_sent = {child: spaces.sent(parent, child) - before[child] for child, parent in PARENTS.items()}
    metrics = {name: calls.counts(name) for name in ("c", *PARENTS)}
    used = {
        "load of the machine": os.getloadavg()[0],
        "cores of the services": round(sum(p.cpu() - busy[n] for n, p in services.items()) / seconds, 2),
        "cores of the listeners": round((sum(p.cpu() for p in listening.values()) - heard) / seconds, 2),
    }
    told = {name: process.finish() for name, process in listening.items()}
    return summary(published, bytes_sent, metrics, told) | used


def summary(
    published: int, bytes_sent: dict[str, int], metrics: dict[str, dict[str, float]], told: dict[str, Any]
) -> dict[str, Any]:
    at_relays = [second for name in PARENTS for second in told[name]["seconds"]]
    unicast = sum(told[name]["bytes"] for name in PARENTS)
    wanted = sum(
        len(range(at % (LISTENERS // MATCHING), published, LISTENERS // MATCHING))
        for name in PARENTS
        for at in range(len(told[name]["orders"]))
    )
    quantiles = lambda values: [round(1000 * float(q)) for q in np.percentile(values, [50, 95])]  # noqa: E731
    from_centre = bytes_sent["a"] + bytes_sent["b"]
    centre, relays = quantiles(told["c"]["seconds"]), quantiles(at_relays)
    return {
        "events": published,
        "notifications": len(at_relays),
        "notifications wanted": wanted,
        "twice": sum(told[name]["twice"] for name in told),
        "in order": all(order == sorted(order) for name in told for order in told[name]["orders"].values()),
        "events over each link": {
            name: metrics[name].get("tidings_link_messages_total up", 0) for name in PARENTS
        },
        "duplicates": sum(metrics[name].get("tidings_link_duplicates_total", 0) for name in PARENTS),
        "bytes from the centre": from_centre,
        "bytes of unicast": unicast,
        "ratio": round(unicast / max(1, from_centre), 1),
        "centre p50, p95 ms": centre,
        "relays p50, p95 ms": relays,
        "p95 above the centre ms": relays[1] - centre[1],
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--spark", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tidings-relays-") as work, ExitStack() as stack:
        found = measure(given.seconds, given.spark, Path(work), stack)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
