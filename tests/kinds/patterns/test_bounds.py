"""An index with wrong values is refused when it is opened, or it runs: no loop leaves its arrays, none is endless.

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

from tests.kinds.patterns import cases
from tidings import Engine, Event
from tidings.errors import IndexFileError, TidingsError
from tidings.model.terms import ntriples

ROOT = Path(__file__).parents[3]
ROUNDS = 2  # for each array and kind of damage

# Ranks, flags and the subscriptions' own texts: with any values they are an index, of other subscriptions.
FREE = {
    "access_points", "access_range_block", "access_range_high", "access_range_low", "access_used", "atom_hole",
    "class_interval_high", "class_interval_low", "constants_approximation", "constants_instants",
    "constants_mantissa", "every", "text_blob", "text_properties", "valid_until",
}  # fmt: skip
# What Python reads, and only where a later stage decides or an index is taken apart: it may say that it cannot.
READ_LATER = {
    "patterns_way",
    "patterns_owner",
    "residuals_rows",
    "template_blob",
    "constant_blob",
    "row_constants",
    "table_atoms",
    "table_constant_blob",
    "text_blob",
    "text_start",
    "vocabulary_blob",
}

SUBSCRIPTIONS = (
    "WHERE (<urn:tidings:n1>, <urn:tidings:p1>, ?y)",
    "WHERE (?x, <urn:tidings:p1>, ?y) AND (?y, <urn:tidings:p2>, ?z) AND (?a, <urn:tidings:p3>, ?b)",
    "WHERE (?x, <urn:tidings:p1>, ?y) AND ?y BETWEEN 2 AND 4 AND (?x, <urn:tidings:p2>, ?z) AND ?z > 1.5",
    "WHERE (?x, <urn:tidings:p2>, ?y) AND (?y < 123456789012345678901234567890 OR NOT ?y = 3)",
    "WHERE (?x, <urn:tidings:p3>, ?y) AND ?y IN (1, 2, 'red', 'green')",
    "WHERE (?x, <urn:tidings:p0>, ?y) AND ?y >= 'dark' AND ?y CONTAINS 'e'",
    "WHERE (?x, <urn:tidings:p0>, ?y) AND ?y != 'red'@en",
    "WHERE (?x, <urn:tidings:p0>, ?y) AND ?y ISA <urn:tidings:C2> AND ?x ISA >= <urn:tidings:C1>",
    "WHERE (?x, ?p, ?x)",
    "WHERE (?x, <urn:tidings:p1>, ?y) OR (?x, <urn:tidings:p2>, ?y) AND ?y > '2004-01-01'^^xsd:date",
    "WHERE (?x, <urn:tidings:p1>, ?y) AND source = 's'",
)


def engine() -> Engine:
    rng = random.Random(7)
    made = Engine(taxonomy=cases.taxonomy(rng))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, text in enumerate(SUBSCRIPTIONS * 3):
            made.subscribe(f"s{number}", text)
        for number in range(80):
            made.subscribe(f"r{number}", f"WHERE (?x, <urn:tidings:p{number % 4}>, ?y) AND ?y > {number}")
    return made


def events() -> list[Event]:
    rng = random.Random(8)
    objects = [*cases.NODES, *cases.INTEGERS, *cases.TEXTS, *cases.ODD_VALUES]
    choices = (cases.NODES, cases.PROPERTIES, objects)
    lines = [" ".join(ntriples(rng.choice(among)) for among in choices) + " ." for _ in range(100)]
    return [Event.from_rdf("\n".join(lines[i::4]), "nt", source="s", id=str(i)) for i in range(4)]


def damaged(array: np.ndarray, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Another array of the same type and shape."""
    if kind == "all":
        if array.dtype == np.bool_:
            return rng.integers(0, 2, array.shape).astype(np.bool_)
        return np.frombuffer(rng.bytes(array.nbytes), dtype=array.dtype).reshape(array.shape)
    wrong = array.copy()
    at = rng.integers(array.size)
    if kind == "one":
        wrong.flat[at] = np.frombuffer(rng.bytes(array.itemsize), dtype=array.dtype)[0]
    elif kind == "moved":
        wrong.flat[at] = wrong.flat[rng.integers(array.size)]
    else:
        wrong.flat[at : at + 1] = wrong.flat[at] ^ 1 if array.dtype.kind in "biu" else wrong.flat[at] + 1
    return wrong


def arrays_of(folder: Path) -> list[Path]:
    """The files of patterns, residuals and subscriptions; those of filters and operators have tests of their own."""
    parts = ("patterns", "residuals", "subscriptions")
    files = [path for part in parts for path in (folder / part).glob("*.npy")]
    others = ("filters_", "every_event_", "networks_", "operators_")
    return sorted(path for path in files if not path.stem.startswith(others))


def damage_all(folder: Path) -> None:
    """Prints for each array how often its damage was refused, and how often the index ran."""
    engine().save(folder)
    published = events()
    for path in arrays_of(folder):
        whole, array = path.read_bytes(), np.load(path)
        rng = np.random.default_rng(list(path.name.encode()))
        outcomes: Counter[str] = Counter()
        for kind in ("all", "one", "moved", "near") if array.size else ():
            for round_ in range(ROUNDS):
                wrong = damaged(array, kind, rng)
                same = wrong.tobytes() == array.tobytes()
                np.save(path.with_suffix(".new.npy"), wrong)
                path.with_suffix(".new.npy").replace(path)
                outcomes[f"{kind}:{'same' if same else run(folder, published, round_ == 0)}"] += 1
        path.with_suffix(".whole").write_bytes(whole)
        path.with_suffix(".whole").replace(path)
        print(path.stem, *(f"{outcome}={count}" for outcome, count in sorted(outcomes.items())), flush=True)


def run(folder: Path, published: list[Event], fold: bool) -> str:
    try:
        opened = Engine.load(folder)
    except IndexFileError as error:
        assert "build" in str(error)
        return "refused"
    try:
        opened.publish_many(published)
        opened.publish_many(published, all_bindings=True)
        if fold:  # takes the index apart and builds another
            opened.unsubscribe("s0")
            opened._index.fold()
            opened.publish_many(published)
    except (TidingsError, ValueError, LookupError, AttributeError) as error:  # of Python: a text that is none
        assert str(error) != "index is out of bounds"  # of a loop that is checked
        return type(error).__name__
    return "ran"


@pytest.mark.slow
def test_damage_is_refused_or_harmless(tmp_path: Path) -> None:
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.kinds.patterns.test_bounds", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    reports = {name: outcomes for name, *outcomes in map(str.split, done.stdout.splitlines())}
    assert len(reports) == len(arrays_of(tmp_path))
    for name, outcomes in reports.items():
        assert outcomes, name  # an empty array tests nothing
        if name not in FREE:
            assert f"all:refused={ROUNDS}" in outcomes, name
        if name not in READ_LATER:
            assert {outcome.partition(":")[2].partition("=")[0] for outcome in outcomes} <= {
                "refused",
                "ran",
                "same",
            }, name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vocabulary_slots", 0),  # without a free place a lookup would never end
        ("constants_text_slots", 0),
        ("access_table", 1),
        ("program_code", 0),  # an instruction that jumps to itself
        ("access_postings", 3),
        ("../subscriptions/patterns_owner", -1),
        ("class_parents", 1_000),
    ],
)
def test_one_sentence_names_the_array(tmp_path: Path, name: str, value: int) -> None:
    engine().save(tmp_path)
    path = tmp_path / "patterns" / f"{name}.npy"
    np.save(path, np.full_like(np.load(path), value))
    with pytest.raises(IndexFileError, match=r"is damaged: \w+\.npy has values that cannot be right"):
        Engine.load(tmp_path)


def test_an_index_of_nothing_is_no_damage(tmp_path: Path) -> None:
    Engine().save(tmp_path)
    assert len(Engine.load(tmp_path)) == 0


def test_equal_values_of_an_in_file_a_row_once(tmp_path: Path) -> None:
    edges = " AND ".join(f"(?x, <urn:tidings:p>, ?y{i})" for i in range(12))
    made = Engine()
    for number in range(200):
        made.subscribe(str(number), f"WHERE {edges} AND ?y0 IN (1, 1.0, 1.00)")
    event = Event.from_rdf("<urn:tidings:a> <urn:tidings:p> 1 .", "turtle")
    assert len(made.publish(event)) == 200
    made.save(tmp_path)
    assert len(Engine.load(tmp_path).publish(event)) == 200
    assert len(np.load(tmp_path / "patterns/access_postings.npy")) == 200


if __name__ == "__main__":
    damage_all(Path(sys.argv[1]))
