"""A disk that is full: events are refused with a sentence and a time to come again, and none that was accepted is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SERVED = """
import sys
from pathlib import Path
from tests.service.conftest import Running
from tidings.service.matching.local_stream import LocalStream
root = Path(sys.argv[1])

def fill():
    with open(root / "ballast", "ab", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass

with Running(data=root / "data") as served:
    asked, accepted = served.subscribe("WHERE n >= 0"), []
    for round in range(2):
        refused = []
        for n in range(40):
            if n == 10:
                fill()
            answer = served.http.post("/api/events", json={"n": n, "round": round, "text": "y" * 3_000})
            if answer.status_code == 202:
                accepted += answer.json()["ids"]
            else:
                refused.append((answer.status_code, answer.json()["detail"], answer.headers["retry-after"]))
        assert len(refused) > 3, refused
        assert {status for status, _, _ in refused} <= {503, 507}, refused
        assert all("could not be written" in said for _, said, _ in refused), refused
        (root / "ballast").unlink()
        again = served.http.post("/api/events", json={"n": 1, "round": f"{round} after"})
        assert again.status_code == 202, again.text
        accepted += again.json()["ids"]
    served.stream.stop()
    LocalStream(served.service.settings.data, served.service.mailbox).step()
    told = [one.event.id for one in served.service.mailbox.page([asked["id"]], after=0, limit=1_000)]
    assert told == accepted, (len(told), len(accepted))
with Running(data=root / "data") as served:  # and after a start
    assert served.publish({"n": 1, "round": "0 after"})["duplicates"] == 1
    assert [id for part in served.service.log.read() for id in part["id"].to_pylist()] == accepted
print("kept", len(accepted))
"""


@pytest.mark.slow  # tests/storage has the log alone
def test_a_service_on_a_full_disk_refuses_and_goes_on(tmp_path: Path) -> None:
    mount = 'mount -t tmpfs -o size=12m tidings "$1" && shift && exec "$@"'
    command = ["unshare", "-rm", "sh", "-c", mount, "sh", str(tmp_path), sys.executable, "-c", SERVED]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, timeout=120, cwd=ROOT)
    if done.stderr.startswith(("unshare", "mount")):
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()[:100]}")
    assert done.returncode == 0, done.stderr[-3_000:]
    assert done.stdout.startswith("kept")
