"""Changes that come again, or late, are known by their sequence."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidings.kinds.joins.changes.sequences import NONE, Sequences


def test_only_what_is_above_the_last_is_admitted() -> None:
    sequences = Sequences()
    assert [sequences.admit("a", n) for n in (3, 3, 2, 4)] == [True, False, False, True]
    assert sequences.admit("b", 1)
    assert sequences.admit("a", NONE)
    assert sequences.admit("a", 4, ties=True)
    assert not sequences.admit("a", 3, ties=True)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.just(NONE) | st.integers(-5, 5), st.booleans())),
    st.dictionaries(st.sampled_from("abc"), st.integers(-5, 5)),
)
def test_all_at_once_is_one_by_one(changes: list[tuple[str, int, bool]], last: dict[str, int]) -> None:
    one_by_one, at_once = Sequences(dict(last)), Sequences(dict(last))
    expected = [one_by_one.admit(*change) for change in changes]
    source = pa.array([change[0] for change in changes], pa.string())
    sequence = np.array([change[1] for change in changes], dtype=np.int64)
    ties = np.array([change[2] for change in changes], dtype=np.bool_)
    assert at_once.admit_all(source, sequence, ties).tolist() == expected
    assert at_once == one_by_one
