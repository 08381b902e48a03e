"""`tidings run` as a process of its own, with Spark and all."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from tidings.spark import notifications
from tidings.storage import versions

from .conftest import EXAMPLES

COMMAND = [sys.executable, "-c", "from tidings.cli import main; main()"]
ENVIRONMENT = {**os.environ, "COLUMNS": "200"}


@pytest.mark.timeout(300)
def test_a_stream_takes_new_files_and_questions_and_ends_after_an_interrupt(tmp_path):
    shutil.copytree(EXAMPLES, tmp_path / "stream")
    root = tmp_path / "stream" / "data" / "index"
    command = [*COMMAND, "run", "-f", "ndjson", "stream/stream.toml"]
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:
        process = subprocess.Popen(command, cwd=tmp_path, env=ENVIRONMENT, stdout=out, stderr=err)
        try:
            _until(process, lambda: (tmp_path / "out").read_text().count("\n") >= 32)
            versions.append(
                root, [versions.Change("greetings", "WHERE (?i, rss:title, ?t) AND ?t LIKE 'Hello%'")]
            )
            (tmp_path / "hello.nt").write_text('<http://e/1> <http://purl.org/rss/1.0/title> "Hello you" .\n')
            shutil.move(tmp_path / "hello.nt", tmp_path / "stream" / "feeds" / "hello.nt")
            _until(process, lambda: "Hello you" in (tmp_path / "out").read_text())
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
        finally:
            process.kill()
    assert "141 events; 33 notifications" in (tmp_path / "err").read_text()
    assert "broken.rss: not readable as XML" in (tmp_path / "err").read_text()
    assert notifications(tmp_path / "stream" / "data" / "output").num_rows == 33


def _until(process, holds, seconds=120):
    ends = time.monotonic() + seconds
    while not holds():
        assert process.poll() is None, "the stream ended too early"
        assert time.monotonic() < ends, "the stream took too long"
        time.sleep(0.1)
