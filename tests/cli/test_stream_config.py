"""The file of `tidings run`, and the sources it names."""

from pathlib import Path

import pytest

from tidings import TidingsError
from tidings.cli.stream_config import StreamConfig
from tidings.cli.stream_sources import WatchedFolders
from tidings.storage.event_log import EventLog

from .conftest import EXAMPLES, tidings


def test_the_commented_example_names_every_key_and_shows_the_defaults():
    config = StreamConfig.read(EXAMPLES / "stream.toml")
    assert config.index == EXAMPLES.absolute() / "data" / "index"
    assert config.subscriptions is not None
    assert config.subscriptions.exists()
    assert config.networks == {"exchange": EXAMPLES.absolute() / "exchange"}
    default = StreamConfig(*[Path()] * 5)
    assert (config.every, config.master, config.max_events) == (
        default.every,
        default.master,
        default.max_events,
    )


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("data = ", "not readable as TOML"),
        ("subscription = 's.txt'", "subscription is not known; did you mean subscriptions?"),
        ("[sources]\nfeed = []", "sources.feed is not known; did you mean sources.feeds?"),
        ("[sources]\nfeeds = 'http://x'", "sources.feeds is 'http://x'; it must be a list of texts"),
        ("[spark]\nmax_events = true", "spark.max_events is True; it must be a whole number"),
        ("[networks]\nex = ['a.csv']", "networks.ex is ['a.csv']; it must be a text"),
        ("[prefixes]\nex = 5", "prefixes.ex is 5; it must be a text"),
    ],
)
def test_a_fault_is_told_with_its_key(content, told, tmp_path):
    (tmp_path / "c.toml").write_text(content)
    with pytest.raises(TidingsError, match=r"c\.toml") as caught:
        StreamConfig.read(tmp_path / "c.toml")
    assert told in str(caught.value)


def test_a_stream_without_questions_says_what_to_do(tmp_path):
    (tmp_path / "c.toml").write_text("data = 'data'")
    result = tidings("run", tmp_path / "c.toml")
    assert result.exit_code == 1
    assert "name a file of subscriptions in the configuration" in result.stderr


def test_a_stream_whose_network_is_not_there_says_so(tmp_path):
    (tmp_path / "q.txt").write_text("a: WHERE topic = 'oil' VIA exchange AT 'acme'\n")
    (tmp_path / "c.toml").write_text("subscriptions = 'q.txt'\n[networks]\nexchange = 'nowhere.graphml'")
    result = tidings("run", tmp_path / "c.toml")
    assert result.exit_code == 1
    assert f"there is no file or folder '{tmp_path / 'nowhere.graphml'}'" in result.stderr
    assert not (tmp_path / "data").exists()


def test_a_folder_gives_each_file_once_and_a_changed_one_again(tmp_path):
    inbox, told = tmp_path / "inbox", []
    inbox.mkdir()
    (inbox / "a.nt").write_text('<http://e/1> <http://e/p> "1" .\n')
    (inbox / "bad.nt").write_text("<http://e/1")
    (inbox / "notes.md").write_text("not an event")
    with EventLog(tmp_path / "log") as log:
        folders = WatchedFolders([inbox], tmp_path / "state", told.append)
        assert [folders.ingest(log), folders.ingest(log)] == [1, 0]
        (inbox / "a.nt").write_text('<http://e/1> <http://e/p> "22" .\n')
        # Another run remembers what the first one read.
        assert WatchedFolders([inbox], tmp_path / "state", told.append).ingest(log) == 1
        assert sum(batch.num_rows for batch in log.read()) == 2
    assert len(told) == 1
    assert told[0].startswith(f"{inbox / 'bad.nt'}: not readable as N-Triples")
