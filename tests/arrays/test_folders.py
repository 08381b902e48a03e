"""Folders of arrays: what was saved comes back; anything else is refused with a sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidings.arrays import folders
from tidings.errors import IndexFileError

ARRAYS = {
    "numbers": np.arange(1000, dtype=np.int32),
    "table": np.arange(12, dtype=np.float64).reshape(3, 4),
    "empty": np.zeros((0, 4), dtype=np.int16),
    "truth": np.array([True, False]),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folders.save(tmp_path / "index", ARRAYS, {"count": 3, "names": ["é", None]})
    return tmp_path / "index"


def test_round_trip(folder: Path) -> None:
    arrays, facts = folders.load(folder)
    assert facts == {"count": 3, "names": ["é", None]}
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)
    assert not arrays["numbers"].flags.writeable  # mapped read-only
    assert type(arrays["numbers"]) is np.ndarray
    assert folders.size(arrays) == sum(a.nbytes for a in ARRAYS.values())


@pytest.mark.parametrize("name", ["numbers", "table", "empty"])
@pytest.mark.parametrize("lost", [1, 60, None])
def test_truncated_files(folder: Path, name: str, lost: int | None) -> None:
    path = folder / f"{name}.npy"
    path.write_bytes(path.read_bytes()[: -lost if lost else 0])
    with pytest.raises(IndexFileError, match="build the index anew"):
        folders.load(folder)


def test_missing_foreign_and_swapped_files(folder: Path) -> None:
    original = (folder / "numbers.npy").read_bytes()
    for content in (b"", b"not an array", np.zeros(3).tobytes(), (folder / "table.npy").read_bytes()):
        (folder / "numbers.npy").write_bytes(content)
        with pytest.raises(IndexFileError, match="numbers.npy"):
            folders.load(folder)
    (folder / "numbers.npy").unlink()
    with pytest.raises(IndexFileError, match="numbers.npy"):
        folders.load(folder)
    (folder / "numbers.npy").write_bytes(original)
    folders.load(folder)


def test_objects_are_never_unpickled(folder: Path) -> None:
    np.save(folder / "numbers.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(IndexFileError):
        folders.load(folder)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "5", "{}", '{"format": 1}', '{"format": 1, "arrays": [], "facts": {}}']
)
def test_a_folder_without_a_manifest_is_no_index(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_text(text)
    with pytest.raises(IndexFileError, match="holds no index"):
        folders.load(folder)


def _edited(folder: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    edit(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_another_format_is_named(folder: Path) -> None:
    _edited(folder, lambda manifest: manifest.update(format=99))
    with pytest.raises(IndexFileError, match="format 99"):
        folders.load(folder)


@pytest.mark.parametrize("told", [["int64", [1000]], ["int32", [999]], ["int32", [10, 100]]])
def test_a_manifest_that_tells_another_array(folder: Path, told: list[Any]) -> None:
    _edited(folder, lambda manifest: manifest["arrays"].update(numbers=told))
    with pytest.raises(IndexFileError, match="not the array its manifest tells"):
        folders.load(folder)


def test_no_folder_at_all(tmp_path: Path) -> None:
    with pytest.raises(IndexFileError, match="holds no index"):
        folders.load(tmp_path / "nowhere")
