"""A session whose workers run a Python without this package gets one sentence, before any job of its own."""

import pickle
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark import cloudpickle

from tidings import TidingsError
from tidings.model.event import to_table
from tidings.spark import match, worker_python

from .conftest import words

BARE = Path(sys.base_prefix) / "bin" / "python3"  # without the packages of the environment
RUN = "import pickle, sys; print(pickle.loads(sys.stdin.buffer.read())(0))"


def test_the_probe_runs_where_the_package_is_missing(tmp_path):
    """The function that is sent to a worker needs nothing of this package."""
    sent = cloudpickle.dumps(worker_python._probe())
    assert pickle.loads(sent)(0) == ""
    # What Spark gives every worker, and nothing else.
    path = ":".join(map(str, (Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip")))
    (tmp_path / "tidings").mkdir()  # a folder of this name is not the package
    path += f":{tmp_path}"
    done = subprocess.run([BARE, "-S", "-c", RUN], env={"PYTHONPATH": path}, input=sent, capture_output=True)
    assert Path(done.stdout.decode().strip()).exists(), done.stderr


def test_workers_without_the_package_are_one_sentence(spark, index, tmp_path, monkeypatch):
    frame = spark.createDataFrame(to_table(words(0, 1)))
    monkeypatch.setattr(worker_python, "_checked", set())
    with monkeypatch.context() as patched:
        patched.setattr(
            spark.sparkContext, "pythonExec", str(tmp_path / "python")
        )  # which fails sooner than a real one
        with pytest.raises(
            TidingsError, match="which has no package tidings; install it there, or set PYSPARK_PYTHON="
        ):
            match(frame, index)
    match(frame, index)
    assert worker_python._checked == {spark.sparkContext.applicationId}
