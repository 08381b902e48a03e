"""An index of a table of subscriptions: what cannot be used is named, and what is too large is divided."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tidings import Event, SubscriptionError
from tidings.storage import versions
from tidings.storage.division import Division
from tidings.storage.subscription_table import publish_table


def test_what_cannot_be_used_is_named_and_the_rest_used(tmp_path: Path) -> None:
    rows = {
        "id": [1, 2, 3, 3, None, 4, 4, 5],
        "text": [
            "WHERE n = 1",
            "WHERE n >",
            "WHERE n = 1",
            "WHERE n = 2",
            "WHERE n = 1",
            *["WHERE n < 5"] * 2,
            None,
        ],
    }
    refused = dict(publish_table(tmp_path, pa.table(rows)))
    assert refused.keys() == {"2", "3", None, "5"}
    assert "different texts under this id" in refused["3"]
    assert "has no id" in refused[None]
    index = versions.open(tmp_path, versions.current(tmp_path))
    assert {found.subscription for found in index.publish(Event("test", {"n": 1}))} == {"1", "4"}


def test_it_is_divided_if_it_needs_more_memory_than_there_is(tmp_path: Path) -> None:
    table = pa.table({"id": range(2_000), "text": [f"WHERE n = {number}" for number in range(2_000)]})
    memory = 200_000
    assert publish_table(tmp_path, table, memory=memory) == []
    version = versions.current(tmp_path)
    division = Division.read(tmp_path / f"v{version.base}")
    assert division is not None
    assert len(division.parts) > 2
    index = versions.open(tmp_path, version, memory=memory)
    assert [found.subscription for found in index.publish(Event("test", {"n": 77}))] == ["77"]
    publish_table(tmp_path / "small", table.slice(0, 10), memory=memory)
    assert Division.read(tmp_path / "small" / "v1") is None


def test_other_tables_are_refused(tmp_path: Path) -> None:
    for columns, sentence in (
        (["id", "query"], "no column 'text'; give the columns id and text, of which there are id, query"),
        (["id", "id", "text"], "two columns 'id'"),
    ):
        with pytest.raises(SubscriptionError, match=sentence):
            publish_table(tmp_path, pa.Table.from_arrays([pa.array(["a"])] * len(columns), columns))
