"""Documents as paths and values."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tidings.model.attributes import flatten, has_path, values_at, with_element

DOCUMENTS = st.dictionaries(
    st.sampled_from(["a", "b", "a.b", "b.a", ""]),
    st.recursive(
        st.none() | st.integers(0, 5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["a", "b", "a.b", ""]), inner, max_size=3)
        ),
    ),
    max_size=4,
)


def test_a_dict_contributes_its_keys_and_a_list_its_elements() -> None:
    document = {"user": {"age": 5, "tags": ["x", ["y", None]]}, "user.age": 6, "empty": [], "nothing": {}}
    assert list(flatten(document)) == [
        ("user", document["user"]),
        ("user.age", 5),
        ("user.tags", "x"),
        ("user.tags", "y"),
        ("user.tags", None),
        ("user.age", 6),
        ("empty", None),
        ("nothing", {}),
    ]
    assert values_at(document, "user.age") == [5, 6]
    assert values_at(document, "user.tags") == ["x", "y"]
    assert has_path(document, "empty")
    assert not values_at(document, "empty")
    assert not has_path(document, "user.a")


@given(DOCUMENTS)
def test_a_path_finds_what_flattening_shows(document: dict[str, Any]) -> None:
    shown = list(flatten(document))
    for path in ["", "a", "b", "a.b", "a.a", "b.a.b", "a.", ".a", "a.b.a.b"]:
        assert has_path(document, path) == (path in [found for found, _ in shown])
        assert values_at(document, path) == [v for found, v in shown if found == path and v is not None]


def test_an_element_hides_all_that_had_its_name() -> None:
    document = {"item": 1, "item.price": 2, "items": [{"price": 3}], "itemised": 4}
    assert with_element(document, "item", {"colour": "red"}) == {
        "items": [{"price": 3}],
        "itemised": 4,
        "item": {"colour": "red"},
    }
    assert document["item"] == 1


def test_no_depth_is_too_deep() -> None:
    document: dict[str, Any] = {"a": 5}
    for _ in range(5_000):
        document = {"a": [document]}
    assert values_at(document, ".".join("a" * 5_001)) == [5]
    lists: Any = 5
    for _ in range(100_000):
        lists = [lists]
    assert values_at({"a": lists}, "a") == [5]
