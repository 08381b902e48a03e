"""The compiled reader of JSON objects says what `json.loads` and a plain walk say, whatever the bytes are."""

from __future__ import annotations

import json
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.examples import examples
from tests.formats.kernels.strategies import flawed_json, json_objects, json_paths, mutated
from tidings.arrays import folders
from tidings.errors import IndexFileError
from tidings.formats.kernels.json import (
    DICT,
    FALSE,
    LIST,
    NULL,
    NUMBER,
    TEXT,
    TRUE,
    Occurrences,
    PathTable,
    lines,
    occurrences_of,
    read_objects,
    reread,
)
from tidings.formats.kernels.json_paths import MAX_PARTS
from tidings.formats.kernels.json_reader import MAX_DEPTH, read

Answer = list[tuple[str, int, bytes]] | None


class Written(str):
    """A number as it is written."""


def walk(value: Any, path: str | None, in_list: bool = False) -> list[tuple[str, int, bytes]]:
    """The definition: every value of a document with its path, in order."""
    if isinstance(value, list):
        inside = [found for element in value for found in walk(element, path, True)]
        return inside if in_list else [(path or "", LIST, b""), *inside]
    here: tuple[int, bytes]
    if isinstance(value, dict):
        here = DICT, b""
    elif isinstance(value, Written):
        whole = value.lstrip("-").isdigit()
        here = (NUMBER, value.encode()) if whole or abs(float(value)) < float("inf") else (DICT, b"")
    elif isinstance(value, str):
        here = TEXT, value.encode(errors="surrogatepass")
    else:
        here = {None: NULL, True: TRUE, False: FALSE}[value], b""
    found = [] if path is None else [(path, *here)]
    for name, member in value.items() if isinstance(value, dict) else ():
        found += walk(member, name if path is None else f"{path}.{name}")
    return found


def definition(data: bytes, paths: list[str]) -> Answer:
    """What stands at the paths, or None if `data` is no JSON object."""
    if not data.strip(b" \t\r\n"):
        return []
    try:
        document = json.loads(data, parse_float=Written, parse_int=Written, parse_constant=Written)
    except ValueError:
        return None
    if document is None:
        return []
    return [f for f in walk(document, None) if f[0] in paths] if isinstance(document, dict) else None


def spans(documents: list[bytes], gap: bytes = b"") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    sizes = np.array([len(d) for d in documents], dtype=np.int64)
    start = np.cumsum(sizes + len(gap)) - sizes - len(gap)
    return np.frombuffer(gap.join(documents), dtype=np.uint8), start, start + sizes


def answers(found: Occurrences, paths: list[str]) -> list[Answer]:
    out: list[Answer] = []
    for event in range(len(found.first) - 1):
        mine: Answer = []
        for o in range(found.first[event], found.first[event + 1]):
            kind = int(found.kind[o])
            text = found.blob[found.low[o] : found.high[o]].tobytes() if kind in (TEXT, NUMBER) else b""
            mine.append((paths[found.path[o]], kind, text))
        assert event not in found.errors or not mine
        out.append(None if event in found.errors else mine)
    return out


def check(documents: list[bytes], paths: list[str], gap: bytes = b"") -> Occurrences:
    found = read_objects(*spans(documents, gap), PathTable.build(paths))
    assert answers(found, paths) == [definition(data, paths) for data in documents]
    return found


def left_to_python(data: bytes, paths: list[str]) -> bool:
    blob, start, stop = spans([data])
    first, odd = np.zeros(2, dtype=np.int64), np.zeros(1, dtype=np.bool_)
    path, kind = (np.empty(len(data) + 8, dtype=t) for t in (np.int32, np.int8))
    span = np.empty((2, len(data) + 8), dtype=np.int64)
    table = PathTable.build(paths)
    start.flags.writeable = stop.flags.writeable = False
    stack = np.empty((MAX_DEPTH, 4), dtype=np.int64)
    with table.stamps() as stamps:
        assert read(blob, start, stop, 0, table.edges, stamps, stack, first, path, kind, span, odd) == 1
    return bool(odd[0])


@examples(80)
@given(st.lists(json_objects, max_size=4), json_paths)
def test_objects(documents: list[bytes], paths: list[str]) -> None:
    check(documents, paths)


@examples(120)
@given(
    st.lists(st.one_of(mutated(json_objects), flawed_json), max_size=4),
    json_paths,
    st.sampled_from([b"", b"\n"]),
)
@example([b'{"a":"', b'"}'], ["a"], b"")
@example([b'{"a', b'":1}'], ["a"], b"")
@example([b'{"a":1', b"}"], ["a"], b"")
@example([b'{"a":tru', b"e}"], ["a"], b"")
@example([b'{"a":"\\', b'""}'], ["a"], b"")
@example([b'{"a":"\\u12}', b'34"}'], ["a"], b"")
@example([b'{"a":"\xc3}', b'\xa9"}'], ["a"], b"")
@example([b'{"a":[{}', b"]}"], ["a"], b"")
def test_what_is_no_object_is_never_read_as_one(documents: list[bytes], paths: list[str], gap: bytes) -> None:
    found = check(documents, paths, gap)
    assert all(m.startswith("the event's attributes are ") for m in found.errors.values())
    assert all(m.endswith("; give a JSON object") for m in found.errors.values())


@pytest.mark.parametrize(
    ("data", "left"),
    [
        (b'{"a":1}', False),
        (b'{"a":"x\\n"}', False),
        (b'{"a":"\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80"}', False),
        (b'{"z":1,"z":2}', False),
        (b'{"z":{"\\u0061":1}}', False),
        (b'{"a":' + b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1) + b"}", False),
        (b'{"a":' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}", True),
        (b'{"a":1,"a":2}', True),
        (b'{"b":{"c":1,"c":2}}', True),
        (b'{"b.c":1,"b":{"c":1},"b.c":2}', True),
        (b'{"b.c":1,"b":{"c":1}}', False),
        (b'{"b":[{"c":1},{"c":2}]}', False),
        (b'{"\\u0061":1}', True),
        (b'{"a":NaN}', True),
        (b'{"a":-Infinity}', True),
        (b'{"a":1e100}', True),
        (b'{"a":1e99}', False),
        (b'{"a":' + b"1" * 201 + b"}", True),
        (b'{"a":"\xed\xa0\x80"}', True),
        (b'\xef\xbb\xbf{"a":1}', True),
        (b"null", False),
        (b"", False),
        (b"[]", True),
    ],
)
def test_what_is_left_to_python(data: bytes, left: bool) -> None:
    paths = ["a", "b.c"]
    assert left_to_python(data, paths) == left
    check([data], paths)


@pytest.mark.parametrize(
    "flaw",
    [b"\xff", b"\x80", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80",
     b"\xc3", b"\xe4\xb8", b"\xf0\x9f\x98", b"\x1f", b"\x00", b"\\", b"\\x", b"\\u", b"\\u123", b"\\u12g4", b"\\U0001f600"],
)  # fmt: skip
@pytest.mark.parametrize(
    "frame", [b'{"a":"%b"}', b'{"z":"1234567%bxyz4567"}', b'{"%b":1}', b'{"z":{"x%b":1}}']
)
def test_flawed_texts(flaw: bytes, frame: bytes) -> None:
    found = check([frame % flaw], ["a"])
    assert 0 in found.errors


def test_every_character_above_ascii_is_checked_at_its_edges() -> None:
    edges = [
        0x80,
        0x7FF,
        0x800,
        0xCFFF,
        0xD000,
        0xD7FF,
        0xE000,
        0xFFFF,
        0x10000,
        0x3FFFF,
        0x40000,
        0xFFFFF,
        0x10FFFF,
    ]
    for code in edges:
        data = b'{"a":"%b"}' % chr(code).encode()
        assert not left_to_python(data, ["a"])
        check([data, b'{"a":"\\ud83d%b\\ude00"}' % chr(code).encode()], ["a"])


@pytest.mark.parametrize(
    "text", ["0", "-0", "10", "-1.5", "0.0", "1e5", "1E-5", "1.5e+05", "123456789012345678901234567890"]
)
def test_numbers_are_taken_as_written(text: str) -> None:
    found = check([f'{{"a":{text}}}'.encode(), f'{{"a":[{text} ,{text}]}}'.encode()], ["a"])
    assert not found.errors


@pytest.mark.parametrize("text", ["1e400", "-1e400", "NaN", "Infinity", "-Infinity"])
def test_a_number_beyond_all_measure_is_there_but_is_none(text: str) -> None:
    assert answers(check([f'{{"a":{text}}}'.encode()], ["a"]), ["a"]) == [[("a", DICT, b"")]]


def test_long_whole_numbers_are_exact_up_to_what_python_reads() -> None:
    check([b'{"a":%b}' % (b"7" * 4000)], ["a"])
    assert 0 in read_objects(*spans([b'{"a":%b}' % (b"7" * 5000)]), PathTable.build(["a"])).errors


def test_deep_objects() -> None:
    inside = b"[" * 200 + b"1" + b"]" * 200
    check([b'{"a":%b}' % inside, b'{"z":%b}' % (b'{"a":' * 300 + b"1" + b"}" * 300)], ["a"])
    too_deep = b'{"a":%b}' % (b"[" * 200_000)
    assert 0 in read_objects(*spans([too_deep]), PathTable.build(["a"])).errors


def test_one_table_for_several_threads() -> None:
    documents = spans([b'{"a":{"b":%d},"a.b":%d}' % (k, k) for k in range(2000)], b"\n")
    table = pickle.loads(pickle.dumps(PathTable.build(["a.b"])))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: read_objects(*documents, table), range(16)))
    assert all(f.first[-1] == 4000 and np.shares_memory(f.blob, documents[0]) for f in found)


def test_room_grows_and_goes_on_where_it_was() -> None:
    rng = random.Random(5)
    documents = []
    for _ in range(300):
        many = rng.choice([0, 1, 2, 900])
        documents.append(json.dumps({"a": list(range(many)), "b": "x\n" * (many % 7)}).encode())
    documents.insert(150, b'{"a":1,"a":2}')
    check(documents, ["a", "b"], b"\n")


def test_texts_that_needed_work_are_appended_to_the_blob() -> None:
    plain = spans([b'{"a":"x"}'])
    table = PathTable.build(["a"])
    assert np.shares_memory(read_objects(*plain, table).blob, plain[0])
    found = read_objects(*spans([b'{"a":"\\t1"}', b'{"a":"x","a":"y"}', b'{"a":"\\u00e9"}', b"{}"]), table)
    assert found.blob.tobytes().endswith(b"{}\t1\xc3\xa9y")


def test_paths_may_be_joined_anywhere() -> None:
    paths = ["a.b.c", "a", "a.", ".", "", "a..c"]
    documents = [{"a": {"b": {"c": 1}}}, {"a.b": {"c": 1}}, {"a": {"b.c": 1}}, {"a.b.c": 1}, {"a": {"": {"c": 1}}},
                 {"": {"": 2}}, {"": 1}, {"a.": {"c": 3}}, {"a.": 1}, {"a": {"": 1}}, {".": 1}, {"abc": 1}]  # fmt: skip
    found = check([json.dumps(d).encode() for d in documents], paths)
    assert [len(a or ()) for a in answers(found, paths)] == [2, 1, 2, 1, 3, 2, 1, 2, 1, 2, 1, 0]


def test_a_path_of_many_parts_is_found_nested_and_flat() -> None:
    parts = [f"p{k}" for k in range(MAX_PARTS + 4)]
    path = ".".join(parts)
    nested: Any = 1
    for part in reversed(parts):
        nested = {part: nested}
    documents = [nested, {path: 1}]
    table = PathTable.build([path, "p0.p1"])
    found = read_objects(*spans([json.dumps(d).encode() for d in documents]), table)
    assert found.path.tolist() == [1, 0, 0]
    assert answers(occurrences_of(documents, table), [path, "p0.p1"]) == answers(found, [path, "p0.p1"])


def test_a_table_of_many_paths() -> None:
    rng = random.Random(3)
    paths = sorted({"".join(rng.choices("abcd.é", k=rng.randint(0, 20))) for _ in range(3000)})
    documents = [
        json.dumps({p: k for k, p in enumerate(rng.sample(paths, 20))}, ensure_ascii=False) for _ in range(50)
    ]
    check([d.encode() for d in documents], paths)


def test_tables_are_kept_in_a_folder(tmp_path: Path) -> None:
    paths = ["a", "b.c"]
    table = PathTable.build(paths)
    folders.save(tmp_path, table.arrays(), {})
    arrays, _ = folders.load(tmp_path)
    before = len(read.signatures)  # type: ignore[attr-defined]
    documents = spans([b'{"b":{"c":true}}'])
    again = PathTable(arrays)
    assert len(again) == len(table) == 2
    assert answers(read_objects(*documents, again), paths) == answers(read_objects(*documents, table), paths)
    assert len(read.signatures) == max(before, 1)  # type: ignore[attr-defined]


@pytest.mark.parametrize("damage", ["name", "path", "full", "size", "columns", "texts"])
def test_damaged_tables_are_refused(damage: str) -> None:
    arrays = {name: array.copy() for name, array in PathTable.build(["a", "b.c"]).arrays().items()}
    used = arrays["edges"][:, 1] != np.uint64(2**64 - 1)
    if damage == "name":
        arrays["edges"][used, 2] = 1000
    elif damage == "path":
        arrays["edges"][used, 3] = 77
    elif damage == "full":
        arrays["edges"][:] = arrays["edges"][used][0]
    elif damage == "size":
        arrays["edges"] = arrays["edges"][:-1]
    elif damage == "columns":
        arrays["edges"] = arrays["edges"][:, :2]
    else:
        arrays["texts"] = arrays["texts"][:3]
    with pytest.raises(IndexFileError):
        PathTable(arrays)


def test_no_paths_and_no_events() -> None:
    check([b'{"a":1}', b"{", b""], [])
    check([], ["a"])


def test_spans_of_any_order_and_type() -> None:
    blob = np.frombuffer(b'..{"a":1} {"a":2}{"a":3}', dtype=np.uint8).copy()
    start, stop = np.array([17, 2, 2, 9], dtype=np.int32), np.array([24, 9, 9, 17], dtype=np.int32)
    found = read_objects(blob, start, stop, PathTable.build(["a"]))
    assert [blob[k] - 48 for k in found.low] == [3, 1, 1, 2]


@given(
    st.lists(st.sampled_from([b"{}", b' {"a":1}', b"", b"  ", b"\r", b"x" * 40, b"\t"])),
    st.sampled_from([b"\n", b"\r\n"]),
)
def test_lines(parts: list[bytes], end: bytes) -> None:
    expected = [part.strip() for part in parts if part.strip()]
    for data in (end.join(parts), end.join([*parts, b""])):
        start, stop = lines(data)
        assert [data[a:b] for a, b in zip(start, stop, strict=True)] == expected
        assert all(map(np.array_equal, lines(np.frombuffer(data, dtype=np.uint8)), (start, stop)))


def test_many_short_lines() -> None:
    start, stop = lines(b"1\n" * 100_000)
    assert len(start) == 100_000
    assert (stop - start == 1).all()
    assert (start == 2 * np.arange(100_000)).all()


@examples(50)
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["a", "b", "a.b", "é"]),
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
                lambda v: (
                    st.lists(v, max_size=3) | st.dictionaries(st.sampled_from(["a", "b"]), v, max_size=3)
                ),
            ),
        ),
        max_size=3,
    )
)
def test_python_documents_mean_what_their_json_means(documents: list[dict[str, Any]]) -> None:
    paths = ["a", "a.b", "b.a", "é"]
    table = PathTable.build(paths)
    written = [json.dumps(d).encode() for d in documents]
    assert answers(occurrences_of(documents, table), paths) == answers(
        read_objects(*spans(written), table), paths
    )


def test_values_that_json_has_no_form_for() -> None:
    itself: list[Any] = []
    itself.append(itself)
    values = [
        Decimal("1.50"),
        Decimal("NaN"),
        Decimal("1E+3"),
        date(2026, 1, 2),
        datetime(2026, 1, 2, 3, tzinfo=UTC),
    ]
    values += [
        (1, (2,)),
        b"x",
        {1},
        MappingProxyType({"b": 1}),
        np.float64(0.5),
        float("nan"),
        "\ud800",
        10**5000,
    ]
    paths = ["a", "a.b"]
    table = PathTable.build(paths)
    found = occurrences_of([{"a": v} for v in values], table)
    assert answers(found, paths) == answers(
        occurrences_of([{"a": v, "z": Decimal(1)} for v in values], table), paths
    )
    assert [[(k, t) for _, k, t in answer or ()] for answer in answers(found, paths)] == [
        [(NUMBER, b"1.50")],
        [(DICT, b"")],
        [(NUMBER, b"1E+3")],
        [(TEXT, b"2026-01-02")],
        [(TEXT, b"2026-01-02T03:00:00+00:00")],
        [(LIST, b""), (NUMBER, b"1"), (NUMBER, b"2")],
        [(DICT, b"")],
        [(DICT, b"")],
        [(DICT, b""), (NUMBER, b"1")],
        [(NUMBER, b"0.5")],
        [(DICT, b"")],
        [(TEXT, b"\xed\xa0\x80")],
        [(DICT, b"")],
    ]
    strange: Any = [None, {}, [1], "x", {"a": itself}, {1}, date(2026, 1, 2)]
    found = occurrences_of(strange, PathTable.build(["a"]))
    assert sorted(found.errors) == [2, 3, 4, 5, 6]
    assert found.errors[2] == "the event's attributes are '[1]'; give a JSON object"


def test_rereading_says_what_is_wrong() -> None:
    table = PathTable.build(["a"])
    assert reread(b' {"a": "x"} ', table) == [(0, TEXT, b"x")]
    assert reread(b"{'a': 1}", table) == "the event's attributes are \"{'a': 1}\"; give a JSON object"
    assert "give a JSON object" in reread(b"\xff" * 100, table)
    assert len(str(reread(b"[" * 10_000, table))) < 100
