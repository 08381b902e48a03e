"""Tables of byte spans: what is in them is found, and nothing else."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.arrays.hashing import find_span, hash_span, same_bytes, table_size
from tidings.arrays.vocabulary import Vocabulary, freeze_texts, thaw_texts

_texts = st.lists(st.text(max_size=20), unique=True, max_size=60)


def find(text: str, frozen: dict[str, np.ndarray]) -> int:
    span = np.frombuffer(b"#" + text.encode(), dtype=np.uint8)
    h = np.uint64(hash_span(span, 1, len(span)))
    return int(find_span(h, span, 1, len(span), frozen["blob"], frozen["start"], frozen["slots"]))


@given(_texts, st.lists(st.text(max_size=20)))
def test_spans_are_found_by_their_number(texts: list[str], others: list[str]) -> None:
    frozen = freeze_texts(texts)
    assert [find(text, frozen) for text in texts] == list(range(len(texts)))
    for other in others:
        assert find(other, frozen) == (texts.index(other) if other in texts else -1)
    assert thaw_texts(frozen) == texts


def test_many_spans_of_one_length() -> None:
    texts = [f"http://example.org/{i:06}" for i in range(20_000)]
    frozen = freeze_texts(texts)
    assert [find(text, frozen) for text in texts[::97]] == list(range(0, 20_000, 97))
    assert find("http://example.org/020000", frozen) == -1


def test_tables_are_at_most_half_full() -> None:
    for count in (0, 1, 3, 4, 5, 1000, 1024, 1025):
        size = table_size(count)
        assert size >= 2 * count
        assert size & (size - 1) == 0


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_same_bytes(a: bytes, b: bytes) -> None:
    x, y = (np.frombuffer(b"." + part, dtype=np.uint8) for part in (a, b))
    assert bool(same_bytes(x, 1, len(x), y, 1, len(y))) == (a == b)
    assert bool(same_bytes(x, 1, len(x), x.copy(), 1, len(x)))


@given(_texts)
def test_a_vocabulary_numbers_by_first_appearance(texts: list[str]) -> None:
    vocabulary = Vocabulary(texts + texts)
    assert len(vocabulary) == len(texts)
    assert vocabulary.number_all(texts[::-1]).tolist() == list(range(len(texts)))[::-1]
    assert thaw_texts(vocabulary.freeze()) == texts
