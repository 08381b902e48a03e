"""Several hosts, each a network namespace of its own that sees neither the driver's folder nor the index: the answers of one process,
also when a host dies in the middle of either stage."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from .cluster import HUB, why_no_hosts
from .conftest import rows
from .hosts_trial import Job, Trial, play
from .hosts_workload import EVENTS, engine

HOSTS, PARTS = 4, 8
JOBS = (
    Job("split", "split"),
    Job("contain", "contain"),
    Job("frame"),
    Job("killed in the front", "contain", kill=1),
    Job("killed in a part", "split", kill=2),
)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_hosts_answer_as_one_process(tmp_path: Path) -> None:
    if reason := why_no_hosts():
        pytest.skip(reason)
    trial = play(tmp_path, HOSTS, PARTS, JOBS, pause=1.5)
    answered = rows(engine().publish_many(EVENTS))
    assert [job.name for job in JOBS if trial.answers[job.name] != answered] == []
    assert trial.killed == 2
    check_fetched(trial)
    left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    assert not any(host.name in left for host in trial.hosts)


def check_fetched(trial: Trial) -> None:
    """Each host has fetched what it has used once, and no host all parts of an index that is split."""
    for host in trial.hosts:
        files = trial.fetched_by(host)
        assert any("/front/" in path for path in files), host
        assert set(files.values()) == {1}, host
        assert len(list((host.folder / "cache" / "tidings" / "indexes").iterdir())) == 2  # one for each index
    split = {(client, path.split("/")[3]) for client, path in trial.fetched if "/split/v1/part-" in path}
    parts = Counter(client for client, _ in split if client != HUB)
    assert sum(parts.values()) == PARTS  # each part on one host
    assert all(count < PARTS for count in parts.values())
