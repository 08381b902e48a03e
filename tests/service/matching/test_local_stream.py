"""The stream in the service's own process: what it leaves on disk, and going on where the last one ended."""

from __future__ import annotations

import json
from pathlib import Path

from tidings import Event
from tidings.service.matching.local_stream import LocalStream
from tidings.service.matching.stream_position import answered
from tidings.service.service import Service
from tidings.service.settings import Settings


def test_the_mailbox_knows_how_far_it_is(tmp_path: Path) -> None:
    service = Service(Settings(tmp_path))
    try:
        service.start(driver=False)
        stream = LocalStream(tmp_path, service.mailbox)
        for number in ("1", "2"):
            service.log_writer.accept([Event("s", {"topic": "sport"}, number)])
            stream.step()
            assert answered(tmp_path / "checkpoint", service.mailbox, service.log) == service.log.end()
        service.expiry.retain()  # which has to know what may be read again
        service.log_writer.accept([Event("s", {"topic": "sport"}, "3")])
        assert LocalStream(tmp_path, service.mailbox).step() == 0
        assert service.mailbox.last_batch("in-process") == 3
    finally:
        service.stop()


def test_a_folder_with_records_of_micro_batches_is_taken_over(tmp_path: Path) -> None:
    """As the first version of this stream has left them."""
    spark = tmp_path / "checkpoint" / "spark"
    service = Service(Settings(tmp_path))
    try:
        service.start(driver=False)
        service.log_writer.accept([Event("s", {}, "1")])
        LocalStream(tmp_path, service.mailbox).step()
        end = service.log.end()
        for name, content in (("offsets", f"v1\n{{}}\n{json.dumps(end._asdict())}"), ("commits", "v1")):
            (spark / name).mkdir()
            (spark / name / "1").write_text(content)
        stream = LocalStream(tmp_path, service.mailbox)
        service.log_writer.accept([Event("s", {}, "2")])
        stream.step()
        service.expiry.retain()
        assert answered(tmp_path / "checkpoint", service.mailbox, service.log) == service.log.end()
    finally:
        service.stop()
