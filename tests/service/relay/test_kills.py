"""Relays are killed at random moments under load: subscribers get every notification once, in order."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from tests.service.conftest import Running, Served
from tests.service.relay.test_relay import until

ROOT = Path(__file__).parents[3]
KILLS, RATE = 20, 40


class Relay:
    """`tidings relay` in a process of its own."""

    def __init__(self, centre: Served, data: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])
        self._command = [
            sys.executable,
            "-c",
            "from tidings.cli import main; main()",
            "relay",
            "--upstream",
            centre.url,
        ]
        self._command += ["--port", str(self.port), "--data", str(data)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def await_ready(self) -> None:
        def is_ready() -> bool:
            try:
                return httpx.get(f"http://127.0.0.1:{self.port}/ready").status_code == 200
            except httpx.HTTPError:
                return False

        until(is_ready, 60)

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_notification_comes_once_and_in_order(tmp_path: Path) -> None:
    rng = random.Random(16)
    with Running(data=tmp_path / "centre") as centre:
        relay = Relay(centre, tmp_path / "relay")
        relay.start()
        relay.await_ready()
        listeners = None
        try:
            base = f"http://127.0.0.1:{relay.port}"
            texts = [{"text": f"WHERE topic = 't{at % 4}' AND seq >= {at}"} for at in range(20)]
            made = httpx.post(f"{base}/api/subscriptions/bulk", json=texts, timeout=60).json()["items"]
            ids = [item["id"] for item in made]
            until(lambda: any(link.ids for link in centre.service.downstream.links()), 30)
            listeners = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.relays.listeners"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
            )
            assert listeners.stdin is not None
            assert listeners.stdout is not None
            given = {"host": "127.0.0.1", "port": relay.port, "subscriptions": ids, "last": "0"}
            listeners.stdin.write(json.dumps(given) + "\n")
            listeners.stdin.flush()
            assert listeners.stdout.readline() == "ready\n"
            seq = 0
            for _ in range(KILLS):
                until_kill = time.monotonic() + rng.uniform(0.1, 1.5)
                while time.monotonic() < until_kill:
                    seq += 1
                    centre.publish(
                        {
                            "id": str(seq),
                            "source": "s",
                            "topic": f"t{seq % 4}",
                            "seq": seq,
                            "sent": time.time(),
                        }
                    )
                    time.sleep(1 / RATE)
                relay.kill()
                for _ in range(rng.randrange(5)):
                    seq += 1
                    centre.publish(
                        {
                            "id": str(seq),
                            "source": "s",
                            "topic": f"t{seq % 4}",
                            "seq": seq,
                            "sent": time.time(),
                        }
                    )
                relay.start()
                if rng.random() < 0.7:  # others are killed while they start
                    relay.await_ready()
            relay.await_ready()
            wanted = {
                id: [n for n in range(1, seq + 1) if n % 4 == at % 4 and n >= at] for at, id in enumerate(ids)
            }

            def arrived() -> bool:
                page = httpx.get(f"{base}/api/subscriptions/{ids[seq % 4]}/notifications?limit=1").json()[
                    "items"
                ]
                return bool(page) and page[0]["event"]["id"] == str(seq)

            until(arrived, 60)
            time.sleep(5)
            told = json.loads(listeners.communicate("")[0])
            assert told["orders"] == wanted
            assert told["twice"] == 0
        finally:
            relay.kill()
            if listeners is not None and listeners.poll() is None:
                listeners.kill()
