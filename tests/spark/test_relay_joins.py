"""Joins at a relay below a service with Spark: subscribers have each change once, however often the relay is killed, and
after the service has lost its checkpoint."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.service.relay.test_joins import TABLES, TEXTS, changes_for, expected, line
from tests.spark.crowd import until
from tests.spark.killing import Serving
from tidings import Client, Replica
from tidings.client import ServiceError
from tidings.kinds.joins.naive import Naive
from tidings.kinds.joins.schema.declarations import read_tables
from tidings.language.parser import parse

KILLS = 3


class Follower:
    """A subscriber at the relay: a replica, and the numbers of what it was told."""

    def __init__(self, client: Client, text: str, naive: Naive) -> None:
        self.client, self.naive, self.text = client, naive, text
        self.subscription = client.subscribe(text, valid_for="never")
        self.id = self.subscription.id
        self.copy, self.cursor = Replica(text, client.tables()), 0
        self.sequences: dict[str, list[int]] = {}
        naive.subscribe(self.id, parse(text))
        self.asked = float("-inf")

    def is_right(self) -> bool:
        try:
            page = self.client.notifications(self.subscription, after=self.cursor)
            for one in page:
                self.cursor = one.number
                self.copy.apply(one)
                if one.verdict == "match" and one.part and one.sequence:
                    self.sequences.setdefault(one.part, []).append(one.sequence)
            if self.copy.missing and time.monotonic() - self.asked > 3:
                self.asked = time.monotonic()
                self.client.snapshot(self.subscription)
        except ServiceError:  # it is being killed
            return False
        if self.copy.missing:
            return False
        names = [table for table in ("stocks", "reviews") if table in self.text]
        found = Counter((name, json.dumps(row)) for name in names for row in self.copy.rows(name))
        return found == expected(self.naive, self.id)


def ready(client: Client) -> bool:
    try:
        return client.status().ready
    except ServiceError:
        return False


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_joins_at_a_relay_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "tables.toml").write_text(TABLES)
    tables, rng = read_tables(tmp_path / "tables.toml"), random.Random(5)
    centre = Serving(tmp_path, "--tables", "tables.toml")
    relay = Serving(tmp_path, "--upstream", centre.address, command="relay", data="relay")
    naive, up, down = Naive(tables), Client(centre.address), Client(relay.address)
    count = 0

    def publish(seed: int, changes: int) -> None:
        nonlocal count
        for change in changes_for(naive, tables, seed, changes):
            naive.apply(*change)
            count += 1
            up.publish(line(change, str(count)))

    try:
        centre.start()
        until(lambda: ready(up), "the centre is ready", 200)
        relay.start()
        until(lambda: ready(down), "the relay is ready", 120)
        publish(1, 10)
        people = [Follower(down, text, naive) for text in TEXTS]
        for person in people:
            until(person.is_right, f"rows of {person.text}", 240)
        for kill in range(KILLS):
            publish(10 + kill, 6)
            if rng.random() < 0.6:
                until(people[0].is_right, "some are told", 120)
            relay.end()
            publish(20 + kill, 4)
            relay.start()
            publish(30 + kill, 4)
            for person in people:
                until(person.is_right, f"{person.text} after a kill", 200)
        for person in people:
            for part, sequences in person.sequences.items():
                assert sequences == list(range(1, len(sequences) + 1)), part
        centre.end()
        shutil.rmtree(tmp_path / "data" / "checkpoint")
        centre.start()
        until(lambda: ready(up), "the centre is ready again", 200)
        publish(99, 12)
        for person in people:
            until(person.is_right, f"{person.text} after the checkpoint was lost", 120)
    finally:
        up.close()
        down.close()
        relay.end()
        centre.end()
