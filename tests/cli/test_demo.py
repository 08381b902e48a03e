"""`tidings demo` as a process of its own, with Spark and all, from an empty folder to the page."""

import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tidings.cli.demo import demo_data
from tidings.service.matching import process_session
from tidings.service.settings import Settings
from tidings.service.store.database import open_stores

COMMAND = [sys.executable, "-c", "from tidings.cli import main; main()"]
ENVIRONMENT = {**os.environ, "COLUMNS": "200"}


@pytest.mark.timeout(300)
def test_the_demo_runs_to_its_page_from_any_folder(tmp_path):
    done = subprocess.run(
        [*COMMAND, "demo", "--no-page", "--keep", "kept"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "late goals  ?title Harrow United win the derby" in done.stdout
    assert "refused: the feed: not readable as XML" in done.stdout
    # The question that came while the stream ran is answered by the very next feed, and by none before.
    before, after = done.stdout.split("a subscription is added while the stream runs")
    assert "night trains" not in before
    assert "night trains  ?title Night train operator plans to go public" in after
    counts = {words[0]: words[1] for line in after.splitlines() if len(words := line.split()) > 1}
    assert counts["events"] == f"{140 + demo_data.ADVISORIES:,}"
    assert counts["subscriptions"] == f"{11 + demo_data.OPERATORS:,}"
    page = after.partition("Page")[2]
    assert " notifications\n" in page
    # Nobody serves it any more, and what is kept is the service's own.
    with (tmp_path / "kept" / "LOCK").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        service = int(lock.read())
    assert not process_session.living(service)
    registry, mailbox = open_stores(Settings(tmp_path / "kept"))
    assert mailbox.totals()["events"] == 140 + demo_data.ADVISORIES + 20
    assert registry.counts(None)["active"] == 11 + demo_data.OPERATORS
    registry.close()
    mailbox.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes by /proc")
def test_whatever_the_demo_kills_its_counter_has_no_gap(tmp_path):
    done = subprocess.run(
        [*COMMAND, "demo", "--chaos"], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    killed = re.findall(r"killed (.*?)  +process \d+ .* next notification after [0-9.]+ s", done.stdout)
    assert killed == ["a Python worker", "the JVM", "the driver", "the service"]
    published, received, rest = re.findall(r"published ([0-9,]+), received ([0-9,]+), (.*)", done.stdout)[0]
    assert published == received
    assert rest.strip() == "lost 0, doubled 0"


def test_news_answer_the_questions_of_the_examples(tmp_path):
    """What is published while the page is looked at is something to look at."""
    from tidings.cli.subscriptions import load

    examples = demo_data.folder()
    engine = load(examples / "subscriptions.txt", examples / "taxonomy.ttl", {})
    told = {}
    for event, _ in zip(demo_data.news(), range(100), strict=False):
        for one in engine.publish(event):
            told[one.subscription] = told.get(one.subscription, 0) + 1
    assert told.keys() >= {
        "football",
        "late goals",
        "two wheels",
        "strong quakes",
        "wild weather",
        "urgent patches",
    }
    assert 40 <= sum(told.values()) <= 100
