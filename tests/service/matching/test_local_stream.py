"""The stream in the service's own process: what it leaves on disk, for whatever asks how far it is."""

from __future__ import annotations

from pathlib import Path

from tidings import Event
from tidings.service.matching.local_stream import LocalStream
from tidings.service.service import Service
from tidings.service.settings import Settings
from tidings.spark.offsets import batch_range, last_batches


def test_a_kill_before_a_batch_is_noted_as_done_leaves_its_range(tmp_path: Path) -> None:
    service = Service(Settings(tmp_path))
    try:
        service.start(driver=False)
        stream = LocalStream(tmp_path, service.mailbox)
        ends = []
        for number in ("1", "2"):
            service.log_writer.accept([Event("s", {"topic": "sport"}, number)])
            stream.step()
            ends.append(service.log.end())
        checkpoint = tmp_path / "checkpoint"
        (checkpoint / "spark" / "commits" / "2").unlink()
        assert last_batches(checkpoint) == (1, 2)
        assert batch_range(checkpoint, 2)[:2] == tuple(ends)
        service.expiry.retain()  # which has to know what may be read again
    finally:
        service.stop()
