"""Programs and predicates with wrong values are refused when they are opened, or they run: no loop leaves its arrays.

The damage is done in a process of its own, which a loop out of bounds would end. With NUMBA_BOUNDSCHECK=1 and an
empty NUMBA_CACHE_DIR every access is checked instead of only those that hit a page that is not there.
"""

from __future__ import annotations

import random
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.kinds.operators.cases import Case
from tests.kinds.patterns.test_bounds import damaged
from tidings import Engine, Event
from tidings.errors import IndexFileError
from tidings.kinds.operators.learning import LearningRecorder

ROOT = Path(__file__).parents[3]
ROUNDS = 2  # for each array and kind of damage

# Flags, and moments and counts that are as good as others.
FREE = {
    "binds",
    "plain",
    "moment",
    "wanted",
    "told",
    "held",
    "seconds",
    "calls",
    "failures",
    "events",
    "trials",
}
FREE |= {"operator_seconds", "operator_trials", "hits", "operator_hits"}
# What Python reads when a question is asked or an answer is joined: it may say that it cannot.
READ_LATER = {
    "predicates_blob",
    "predicates_start",
    "evaluations_blob",
    "evaluations_start",
    "operators_blob",
    "operators_start",
    "plain",
    "names_blob",
    "names_start",
    "gate_kind",
    "gate_parent",
    "gate_first",
    "gate_size",
    "leaf_first",
    "leaf_gate",
    "pred_eval",
    "leaf_asked",
    "eval_operator",
    "operators_first",
    "operators_rows",
    "every_event_owner",
    "every_event_way",
    "template_blob",
    "constant_blob",
    "row_template",
    "row_constants",
    "row_first",
}
OF_INDEX = ("operators_first", "operators_rows", "every_event_owner", "every_event_way")


def case() -> Case:
    return Case(random.Random(11), subscriptions=16, events=2, triples=0.3, failing=0.2)


def engine(of: Case) -> Engine:
    made = Engine(operators=of.operators)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.subscribe_many((f"s{i}", text) for i, text in enumerate(of.texts))
    return made


def events(of: Case) -> list[Event]:
    return [of.event(n) for n in range(len(of.attributes))]


def damage_all(folder: Path) -> None:
    """Prints for each array how often its damage was refused, and how often the engine ran."""
    made = case()
    whole = engine(made)
    whole.publish_many(events(made))  # something was learnt
    whole.save(folder)
    paths = sorted((folder / "operators").rglob("*.npy"))
    paths += [folder / "subscriptions" / f"{name}.npy" for name in OF_INDEX]
    for path in paths:
        kept, array = path.read_bytes(), np.load(path)
        rng = np.random.default_rng(list(path.name.encode()))
        outcomes: Counter[str] = Counter()
        for kind in ("all", "one", "moved", "near") if array.size else ():
            for _ in range(ROUNDS):
                wrong = damaged(array, kind, rng)
                same = wrong.tobytes() == array.tobytes()
                np.save(path.with_suffix(".new.npy"), wrong)
                path.with_suffix(".new.npy").replace(path)
                outcomes[f"{kind}:{'same' if same else run(folder, made)}"] += 1
        path.with_suffix(".whole").write_bytes(kept)
        path.with_suffix(".whole").replace(path)
        print(path.stem, *(f"{outcome}={count}" for outcome, count in sorted(outcomes.items())), flush=True)


def run(folder: Path, of: Case) -> str:
    try:
        opened = Engine.load(folder, operators=of.operators)
    except IndexFileError as error:
        assert "build" in str(error)
        return "refused"
    try:
        opened.publish_many(events(of))
        opened.learnt()
        table = opened._checker.table
        table.kept(np.arange(0, len(table), 2))
    except (
        Exception
    ) as error:  # of Python, or ours: a text that is no call, a gate that its condition does not have
        assert str(error) != "index is out of bounds"  # of a loop that is checked
        return type(error).__name__
    return "ran"


@pytest.mark.slow
def test_damage_is_refused_or_harmless(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-X",
        "faulthandler",
        "-m",
        "tests.kinds.operators.test_integrity",
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    reports = {name: outcomes for name, *outcomes in map(str.split, done.stdout.splitlines())}
    assert len(reports) == len(list((tmp_path / "operators").rglob("*.npy"))) + len(OF_INDEX)
    print(done.stdout)
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
        ("gate_first", 0),
        ("gate_parent", 0),  # a root that is under itself
        ("gate_size", 7),  # more children than there are: never decided
        ("leaf_gate", 40),
        ("leaf_asked", -1),
        ("pred_eval", 10_000),
        ("eval_operator", -1),
        ("called", 99),
        ("trials", np.nan),
        ("hits", 1e9),
        ("seconds", -1.0),
        ("moment", 1e9),
        ("predicates_start", 3),
        ("operators_blob", 0xFF),
    ],
)
def test_one_sentence_names_the_array(tmp_path: Path, name: str, value: float) -> None:
    engine(case()).save(tmp_path)
    path = tmp_path / "operators" / f"{name}.npy"
    np.save(path, np.full_like(np.load(path), value))
    with pytest.raises(IndexFileError, match=r"is damaged: \w+\.npy has values that cannot be right"):
        Engine.load(tmp_path)


def test_a_missing_array_is_refused(tmp_path: Path) -> None:
    engine(case()).save(tmp_path)
    (tmp_path / "operators" / "leaf_asked.npy").unlink()
    with pytest.raises(IndexFileError, match="build"):
        Engine.load(tmp_path)


def test_a_new_index_is_whole(tmp_path: Path) -> None:
    made = case()
    whole = engine(made)
    for _ in range(20):
        whole.publish_many(events(made))
    whole.save(tmp_path)
    loaded = Engine.load(tmp_path, operators=made.operators)
    loaded.learn(LearningRecorder.whole(whole._checker.table.predicates))
    loaded.save(tmp_path / "again")
    assert Engine.load(tmp_path / "again").evaluated_events == 2 * whole.evaluated_events


if __name__ == "__main__":
    damage_all(Path(sys.argv[1]))
