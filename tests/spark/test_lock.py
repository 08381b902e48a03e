"""One stream a checkpoint, and no start before a killed one's JVM is gone."""

import os
import subprocess
import sys
import threading
import time

import pytest

from tidings.spark.lock import StreamBusy, StreamLock


@pytest.fixture
def bystander():
    """A process that stands for a JVM."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


def test_a_second_stream_is_refused(tmp_path):
    lock = StreamLock(tmp_path, os.getpid())
    with pytest.raises(StreamBusy, match="another stream is running"):
        StreamLock(tmp_path, os.getpid())
    lock.release()
    StreamLock(tmp_path, os.getpid()).release()


def killed(folder, pid):
    """What a stream that was killed leaves: the name of its JVM, and no lock."""
    lock = StreamLock(folder, pid)
    os.close(lock._file)


def test_a_start_waits_for_the_jvm_of_a_killed_one(tmp_path, bystander):
    killed(tmp_path, bystander.pid)
    threading.Timer(0.3, bystander.kill).start()
    began = time.monotonic()
    StreamLock(tmp_path, os.getpid()).release()
    assert 0.2 < time.monotonic() - began < 10


def test_a_jvm_that_does_not_end_is_named(tmp_path, bystander):
    killed(tmp_path, bystander.pid)
    with pytest.raises(StreamBusy, match=f"process {bystander.pid} of a killed stream"):
        StreamLock(tmp_path, os.getpid(), patience=0.2)


def test_another_process_with_the_same_id_is_not_waited_for(tmp_path, bystander):
    killed(tmp_path, bystander.pid)
    (tmp_path / "LOCK").write_text(f"{bystander.pid} 1")
    StreamLock(tmp_path, os.getpid(), patience=0.2).release()


def test_the_same_process_may_start_again(tmp_path, bystander):
    killed(tmp_path, bystander.pid)
    StreamLock(tmp_path, bystander.pid, patience=0.2).release()
