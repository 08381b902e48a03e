"""A wheel in an empty environment with empty caches: the first match, the first notification, the demo."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that has the wheel and its extras, and nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(ROOT)], check=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True)
    programs = folder / "env" / "bin"
    wheel = next(folder.glob("tidings-*.whl"))
    pinned = ["--constraint", str(ROOT / "requirements.lock")]
    subprocess.run([programs / "pip", "install", "-q", *pinned, f"{wheel}[service,spark]"], check=True)
    return programs


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """The environment of a user who has no caches yet."""
    kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME") if name in os.environ}
    return {**kept, "HOME": str(tmp_path), "LANG": "C.UTF-8"}


def test_a_filter_and_an_event(installed: Path, home: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "subscriptions.txt").write_text("cheap: WHERE topic = 'sport' AND price < 20\n")
    (tmp_path / "event.json").write_text('{"topic": "sport", "price": 12, "title": "Tickets"}')
    command = [installed / "tidings", "match", "-s", "subscriptions.txt", "event.json"]
    began = time.monotonic()
    done = subprocess.run(command, cwd=tmp_path, env=home, capture_output=True, text=True, check=True)
    assert time.monotonic() - began < 5
    assert done.stdout.startswith("cheap  (Tickets")


def test_a_service_from_nothing_and_again(installed: Path, home: dict[str, str], tmp_path: Path) -> None:
    times = [_serve(installed, home, tmp_path), _serve(installed, home, tmp_path)]
    print(*(f"port {port:.1f} s, first notification {told:.1f} s" for port, told in times), sep="\n")
    assert times[0][0] < 5
    assert times[0][1] < 90
    assert times[1][0] < 3
    assert times[1][1] < 25


def _serve(installed: Path, home: dict[str, str], folder: Path) -> tuple[float, float]:
    """Seconds from the start until the port answers, and until an event that was posted then is a notification."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [installed / "tidings", "serve", "--port", str(port), "--data", str(folder / "data")]
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=folder, env=home)
    try:
        while True:
            try:
                _ask(f"{address}/health")
                break
            except OSError:
                assert process.poll() is None
                assert time.monotonic() - began < 60
                time.sleep(0.05)
        answered = time.monotonic() - began
        made = _ask(f"{address}/api/subscriptions", {"text": "WHERE topic = 'sport' AND price < 20"})
        _ask(f"{address}/api/events", {"topic": "sport", "price": 12, "at": time.time()})
        while not _ask(f"{address}/api/subscriptions/{made['id']}/notifications")["items"]:
            assert time.monotonic() - began < 300
            time.sleep(0.1)
        told = time.monotonic() - began
        while not any(folder.glob(".cache/tidings/loops/complete-*")):  # what compiles in the background
            assert time.monotonic() - began < 600
            time.sleep(0.5)
        return answered, told
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def _ask(address: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def test_the_demo(installed: Path, home: dict[str, str], tmp_path: Path) -> None:
    began = time.monotonic()
    command = [installed / "tidings", "demo", "--no-page"]
    done = subprocess.run(
        command, cwd=tmp_path, env=home, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "notifications" in done.stdout
    print(f"the demo from nothing: {time.monotonic() - began:.0f} s\n{done.stdout}")
