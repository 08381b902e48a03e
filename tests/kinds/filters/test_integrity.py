"""Filters with wrong values are refused when they are opened, or they run: no loop leaves its arrays, none is endless.

The damage is done in a process of its own, which a loop out of bounds would end. With NUMBA_BOUNDSCHECK=1 and an
empty NUMBA_CACHE_DIR every access is checked instead of only those that hit a page that is not there.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.kinds.filters import cases
from tests.kinds.filters.test_index import index_of, pairs_of, table_of
from tests.kinds.patterns.test_bounds import damaged
from tidings.arrays import folders
from tidings.errors import IndexFileError, TidingsError
from tidings.kinds.filters.index import FilterIndex
from tidings.kinds.filters.integrity import refuse_damaged_table
from tidings.kinds.filters.table import FilterTable
from tidings.language.query import And, Attribute, Comparison, Condition, Exists, OneOf, Or

ROOT = Path(__file__).parents[3]
ROUNDS = 1  # for each array and kind of damage

# Ranks, checks and flags: with any values they are an index, of other filters.
FREE = {"scale_approximation", "scale_instants", "scale_mantissa", "scale_ordered", "row_owner", "row_way"}
FREE |= {"path_start", "path_texts"}
# What Python reads when it tells patterns and conditions: it may say that it cannot.
READ_LATER = {"scale_blob", "scale_texts", "scale_start", "constant_blob", "row_shape", "slots", "trees"}


def conditions() -> list[Condition]:
    rng = random.Random(5)
    made = [cases.condition(rng, rng.choice([0, 0, 1, 2, 3])) for _ in range(120)]
    made.append(Comparison(Attribute("big"), "<", cases.constant(10**30)))
    long = Or(tuple(Comparison(Attribute("i"), "=", cases.constant(i)) for i in range(600)))
    made += [
        And((long, Exists(Attribute("j")))),
        OneOf(Attribute("x"), tuple(map(cases.constant, range(300)))),
    ]
    return made


def events() -> list[dict[str, Any]]:
    rng = random.Random(6)
    return [cases.attributes(rng) for _ in range(10)]


def damage_all(folder: Path) -> None:
    """Prints for each array how often its damage was refused, and how often the index ran."""
    table = table_of(conditions())
    FilterIndex.build(table).save(folder / "index")
    folders.save(folder / "table", table.freeze(), {"keys": [list(key) for key in table.keys]})
    published = events()
    for path in sorted(folder.rglob("*.npy")):
        whole, array = path.read_bytes(), np.load(path)
        rng = np.random.default_rng(list(path.name.encode()))
        outcomes: Counter[str] = Counter()
        for kind in ("all", "one", "moved", "near") if array.size else ():
            for _ in range(ROUNDS):
                wrong = damaged(array, kind, rng)
                same = wrong.tobytes() == array.tobytes()
                np.save(path.with_suffix(".new.npy"), wrong)
                path.with_suffix(".new.npy").replace(path)
                run = run_index if path.parent.name == "index" else run_table
                outcomes[f"{kind}:{'same' if same else run(path.parent, published)}"] += 1
        path.with_suffix(".whole").write_bytes(whole)
        path.with_suffix(".whole").replace(path)
        print(path.stem, *(f"{outcome}={count}" for outcome, count in sorted(outcomes.items())), flush=True)


def run_index(folder: Path, published: list[dict[str, Any]]) -> str:
    try:
        opened = FilterIndex.load(folder)
    except IndexFileError as error:
        assert "build" in str(error)
        return "refused"
    try:
        match(opened, published)
    except (
        TidingsError,
        ValueError,
        LookupError,
    ) as error:  # of Python: a text that is no pattern or condition
        assert str(error) != "index is out of bounds"  # of a loop that is checked
        return type(error).__name__
    return "ran"


def run_table(folder: Path, published: list[dict[str, Any]]) -> str:
    arrays, facts = folders.load(folder)
    try:
        refuse_damaged_table(folder, arrays, facts["keys"])
    except IndexFileError:
        return "refused"
    try:
        match(FilterIndex.build(FilterTable.thaw(arrays, facts["keys"])), published)
    except (TidingsError, ValueError, LookupError) as error:
        assert str(error) != "index is out of bounds"
        return type(error).__name__
    return "ran"


def match(index: FilterIndex, published: list[dict[str, Any]]) -> None:
    pairs = pairs_of(index, published)
    index.match(pairs)
    for event in range(0, len(published), 7):
        cursor, n = index.cursor(pairs, event), 0
        for _ in range(2 * len(index) + 10):
            if (n := cursor.seek(n) + 1) == 0:
                break
        cursor.holds(len(index) - 1)


def test_damage_is_refused_or_harmless(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-X",
        "faulthandler",
        "-m",
        "tests.kinds.filters.test_integrity",
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    reports = {name: outcomes for name, *outcomes in map(str.split, done.stdout.splitlines())}
    assert len(reports) == len(list(tmp_path.rglob("*.npy")))
    for name, outcomes in reports.items():
        assert outcomes, name  # an empty array tests nothing
        if name not in FREE:
            assert f"all:refused={ROUNDS}" in outcomes, name
        if name not in READ_LATER:
            kinds = {outcome.partition(":")[2].partition("=")[0] for outcome in outcomes}
            assert kinds <= {"refused", "ran", "same"}, (name, outcomes)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scale_slots", 0),  # without a free place a lookup would never end
        ("scale_text_first", 3),
        ("code_narrow", 0),  # no leaf is the last
        ("code_at", 2),
        ("access_base", -1),
        ("access_height", 40),
        ("access_levels", -1),
        ("access_shift", -1),
        ("access_entries", 3),
    ],
)
def test_one_sentence_names_the_array(tmp_path: Path, name: str, value: int) -> None:
    index_of(conditions()).save(tmp_path)
    path = tmp_path / f"{name}.npy"
    np.save(path, np.full_like(np.load(path), value))
    with pytest.raises(IndexFileError, match=r"is damaged: \w+\.npy has values that cannot be right"):
        FilterIndex.load(tmp_path)


def test_a_jump_lands_on_a_leaf(tmp_path: Path) -> None:
    """Each word of code set to each of some values: refused, or all jumps still end."""
    a, b = Attribute("a"), Attribute("b")
    made = Or(
        (And((Exists(a), Exists(b))), Comparison(a, "=", cases.constant(5)), OneOf(b, (cases.constant(1),)))
    )
    index_of([made]).save(tmp_path)
    path = tmp_path / "code_narrow.npy"
    code = np.load(path)
    for at in range(2, len(code)):
        for value in (0, 1, 2, 3, 4, 5, 32, 64, 65, 64 * 3, 64 * 4, 65535):
            wrong = code.copy()
            wrong[at] = value
            np.save(tmp_path / "new.npy", wrong)
            (tmp_path / "new.npy").replace(path)
            assert run_index(tmp_path, [{"a": 5}, {"a": [5, 6], "b": [1, 2]}, {}]) in ("ran", "refused")


if __name__ == "__main__":
    damage_all(Path(sys.argv[1]))
