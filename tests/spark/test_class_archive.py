"""The class archive may be missing, made, or spoilt: a session starts all the same."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
from tidings.spark import class_archive, session
if "spoil" in sys.argv:
    with open(class_archive.locate(), "r+b") as file:
        file.truncate(40_000_000)
session("local[1,4]", settings={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})
"""


def play(cache, *arguments: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    environment.pop("JDK_JAVA_OPTIONS", None)  # which Java remarks on
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, env=environment, cwd=cache, timeout=150, capture_output=True, text=True)


@pytest.mark.slow
def test_made_by_the_first_session_and_dropped_when_spoilt(tmp_path):
    first = play(tmp_path)
    assert (first.returncode, first.stdout, first.stderr) == (0, "", "")
    (class_archive,) = (tmp_path / "tidings").iterdir()
    assert class_archive.suffix == ".jsa"
    class_archive.chmod(0o644)
    assert play(tmp_path, "spoil").returncode == 0
    assert not class_archive.exists()


def test_no_place_for_it_is_no_harm(tmp_path, monkeypatch):
    from tidings.spark import class_archive

    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert class_archive.locate() is None
    assert class_archive.java_options(None) == ""
