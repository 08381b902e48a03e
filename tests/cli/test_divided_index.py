"""`tidings index build --parts`: an index in parts is used like any other."""

from contextlib import ExitStack

import pytest

from tidings.cli.run import _Run
from tidings.cli.stream_config import StreamConfig
from tidings.storage import version_opening, versions
from tidings.storage.part_visits import PartVisits

from .conftest import tidings

TEXTS = "".join(f"over {price}: WHERE topic = 'oil' AND price > {price}\n" for price in range(10))


@pytest.fixture
def root(tmp_path):
    subscriptions = tmp_path / "subscriptions.txt"
    subscriptions.write_text(TEXTS)
    root = tmp_path / "index"
    built = tidings("index", "build", root, "-s", subscriptions, "--parts", "3", "--place", "split")
    assert built.stdout.splitlines() == [
        f"{root} is now v1+0: 10 subscriptions",
        "0 in the front and 10 in 3 parts, place split",
    ]
    return root


def test_show_draws_the_parts(root):
    tidings("index", "add", root, "more", "WHERE topic = 'gas'")
    tidings("index", "remove", root, "over 3")
    shown = tidings("index", "show", root).stdout
    assert "subscriptions 10 of these in the base 10 changes in the tail 2" in " ".join(shown.split())
    assert "divided 0 in the front and 10 in 3 parts, place split" in " ".join(shown.split())
    bars = [line.split() for line in shown.splitlines()[-4:]]
    assert [line[:3] for line in bars] == [
        ["front", "0", "subscriptions"],
        ["part", "0", "4"],
        ["part", "1", "3"],
        ["part", "2", "3"],
    ]
    assert all(set(line[-1]) == {"█"} for line in bars)
    assert tidings("index", "compact", root).stdout == f"{root} is now v2+0: 10 subscriptions\n"
    assert "10 in 3 parts" in tidings("index", "show", root).stdout


def test_match_and_explain_take_it(root, tmp_path):
    events = tmp_path / "events.ndjson"
    events.write_text('{"id": "a", "topic": "oil", "price": 4}\n{"id": "b", "topic": "gas", "price": 4}\n')
    found = tidings("match", "-s", root, events, "-f", "ndjson")
    assert [f'"over {price}"' in found.stdout for price in range(10)] == [True] * 4 + [False] * 6
    assert "2 events against 10 subscriptions: 4 notifications" in found.stderr
    index = versions.open(root, versions.current(root))
    explained = tidings("explain", "-s", root, "-i", "over 2", "--event", "a", events)
    assert f"over 2: match, in part {index.part_with('over 2')}" in explained.stdout


def test_an_index_becomes_whole_again(root, tmp_path):
    rebuilt = tidings("index", "build", root, "-s", tmp_path / "subscriptions.txt")
    assert "10 in 3 parts, place split\n" in rebuilt.stdout
    whole = tidings("index", "build", root, "-s", tmp_path / "subscriptions.txt", "--parts", "1")
    assert whole.stdout == f"{root} is now v3+0: 10 subscriptions\n"
    assert "divided no" in " ".join(tidings("index", "show", root).stdout.split())


def test_what_cannot_be_is_a_sentence(root, tmp_path):
    refused = tidings("index", "build", root, "-s", tmp_path / "subscriptions.txt", "--parts", "0")
    assert (refused.exit_code, "0 is not in the range" in refused.stderr) == (2, True)
    (root / "v1" / "division.json").write_text("[")
    for command in (("index", "show", root), ("match", "-s", root, tmp_path / "subscriptions.txt")):
        version_opening._opened.clear()  # as in a process of its own
        failed = tidings(*command)
        assert (failed.exit_code, "build the index anew" in failed.stderr) == (1, True), failed.output


def test_containment_is_found_drawn_and_explained(root, tmp_path):
    subscriptions = tmp_path / "subscriptions.txt"
    subscriptions.write_text(TEXTS + "gas: WHERE topic = 'gas'\n")
    built = tidings("index", "build", root, "-s", subscriptions, "--parts", "3", "--place", "contain")
    assert "2 in the front and 9 in 3 parts, place contain\n" in built.stdout
    shown = " ".join(tidings("index", "show", root).stdout.split())
    assert shown.endswith("roots that contain others 1 containers above the lowest 1 largest trees over 0: 9")
    events = tmp_path / "events.ndjson"
    events.write_text('{"id": "a", "topic": "oil", "price": 4}\n{"id": "b", "topic": "gas", "price": 4}\n')
    found = tidings("match", "-s", root, events, "-f", "ndjson")
    assert "2 events against 11 subscriptions: 5 notifications" in found.stderr
    explained = tidings("explain", "-s", root, "-i", "over 2", "--event", "a", events)
    assert ", below over 0\n" in explained.stdout
    tidings("index", "compact", root)
    assert "largest trees" in tidings("index", "show", root).stdout


def test_the_place_is_chosen_and_the_reason_said(root, tmp_path):
    built = tidings("index", "build", root, "-s", tmp_path / "subscriptions.txt", "--parts", "3")
    (reason,) = [line for line in built.stdout.splitlines() if "was chosen: the whole index has" in line]
    assert reason in tidings("index", "show", root).stdout.replace("\n", " ").replace("  ", " ")
    refused = tidings("index", "build", root, "-s", tmp_path / "subscriptions.txt", "--merge", "90")
    assert (refused.exit_code, "give --parts too" in refused.stderr) == (2, True)
    for place in ("split", "auto"):
        for command in (("index", "build", root, "-s", tmp_path / "subscriptions.txt"), ("serve",)):
            refused = tidings(*command, "--place", place)
            assert refused.exit_code == 2
            assert f"--place {place} says how an index is divided; give --parts too" in refused.stderr


def test_patterns_are_merged_by_a_sample(root, tmp_path):
    subscriptions, events, more = tmp_path / "patterns.txt", tmp_path / "events.nt", tmp_path / "more.nt"
    subscriptions.write_text(
        "".join(f"s{n}: WHERE (?i, <urn:topic>, <urn:oil>), (?i, <urn:in>, <urn:{n}>)\n" for n in range(8))
    )
    events.write_text("<urn:1> <urn:topic> <urn:oil> .\n<urn:1> <urn:in> <urn:3> .\n")
    more.write_text(events.read_text().replace("urn:1", "urn:2"))
    options = ("--parts", "2", "--place", "contain", "--merge", "80", "--sample", events, "--sample", more)
    built = tidings("index", "build", root, "-s", subscriptions, *options)
    assert "0 in the front with 1 merger and 8 in 2 parts, place contain\n" in built.stdout
    assert "100% of matches" in tidings("index", "show", root).stdout
    assert "1 event against 8 subscriptions: 1 notification" in tidings("match", "-s", root, events).stderr
    explained = tidings("explain", "-s", root, "-i", "s3", events)
    assert ", below merger 0\n" in explained.stdout


def test_run_counts_the_visits_of_parts(tmp_path):
    from tidings.spark.output import Batch

    (tmp_path / "stream.toml").write_text("")
    run = _Run(StreamConfig.read(tmp_path / "stream.toml"), None, ExitStack(), None)
    run._take(Batch("q", 0, "v1+0", 20, 3, 0, tmp_path))
    assert run._counts() == ["1 micro-batch", "20 events", "3 notifications"]
    for number in (1, 2):
        visits = PartVisits.from_lists([[700, 800], [2, 3], [9, 9], [1, 1]])
        run._take(Batch("q", number, "v2+0", 1_000, 5, 0, tmp_path, visits=visits))
    assert run._counts()[-1] == "3,000 visits of parts, 10 without a match"
