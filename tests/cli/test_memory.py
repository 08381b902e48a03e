"""`--memory`: an index that needs more is refused before anything is started."""

import pyarrow as pa

from tidings import Engine
from tidings.storage import versions
from tidings.storage.versions import Placement

from .conftest import tidings


def test_run_refuses_an_index_that_needs_more(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr("tidings.spark.startup.start_spark", lambda *given: started.append(given))
    engine = Engine()
    numbers = list(range(20_000))
    engine.subscribe_table("WHERE n = $n", pa.table({"id": list(map(str, numbers)), "n": numbers}))
    config = tmp_path / "stream.toml"
    config.write_text("")
    versions.publish(tmp_path / "data" / "index", engine)
    refused = tidings("run", config, "--memory", "1MB")
    assert refused.exit_code == 1
    sentence = " ".join(refused.stderr.split())
    assert "is not divided and needs" in sentence
    assert "1,000,000 are allowed; build it with --parts" in sentence
    parts = int(sentence.split("--parts ")[1].split(",")[0])
    version = versions.publish(tmp_path / "data" / "index", engine, placement=Placement("split", parts))
    versions.check_memory(tmp_path / "data" / "index", version, 1_000_000)
    assert not started


def test_a_size_is_read(tmp_path):
    (tmp_path / "stream.toml").write_text("")
    for size, sentence in (
        ("much", "'much' is no size; give one like 5GB or 500MB"),
        ("5", "too little; give 1MB"),
    ):
        refused = tidings("run", tmp_path / "stream.toml", "--memory", size)
        assert refused.exit_code == 2
        assert sentence in " ".join(refused.stderr.split())
