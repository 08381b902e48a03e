"""Numbers texts: those that subscriptions compare with, and those of rows in columns that are compared or joined.

A text keeps its number. The compiled loops read its bytes and its order key: its first eight bytes as an integer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from tidings.arrays.growing import Growing
from tidings.kinds.joins.schema.order_keys import NULL, keys_of


class Texts:
    """Grows by `number`; `key`, `first` and `bytes` are columns for the loops."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._numbers: dict[str, int] = {}
        self.key, self.first, self.bytes = Growing(np.int64), Growing(np.int64, [0]), Growing(np.uint8)
        self.number(list(texts))

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    @classmethod
    def thaw(cls, arrays: Mapping[str, np.ndarray]) -> Texts:
        offsets = arrays["text_first"]
        blob = arrays["text_bytes"].tobytes()
        return cls(
            blob[a:b].decode() for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        )

    def freeze(self) -> dict[str, np.ndarray]:
        return {"text_first": self.first.all, "text_bytes": self.bytes.all}

    def number(self, texts: list[str]) -> list[int]:
        """The numbers of texts; a new text gets the next number."""
        numbers, before = self._numbers, len(self._numbers)
        found = [numbers.setdefault(text, len(numbers)) for text in texts]
        if len(numbers) > before:
            new = (
                list(numbers)[before:] if before * 4 < len(numbers) else _last(numbers, len(numbers) - before)
            )
            encoded = pa.array(new, pa.string())
            self.key.extend(keys_of("text", encoded))
            lengths = np.fromiter((len(text.encode()) for text in new), np.int64, len(new))
            self.first.extend(self.first.all[-1] + np.cumsum(lengths))
            self.bytes.extend(np.frombuffer("".join(new).encode(), dtype=np.uint8))
        return found

    def forget_from(self, count: int) -> None:
        """Drops all but the first `count` texts: those of rows that are gone."""
        for _ in range(len(self._numbers) - count):
            self._numbers.popitem()
        self.bytes.shorten(int(self.first.all[count]))
        self.first.shorten(count + 1)
        self.key.shorten(count)

    def number_column(self, column: pa.Array) -> np.ndarray:
        """The numbers of a column's texts, NULL where it is null."""
        encoded = column.dictionary_encode()
        numbers = np.array([*self.number(encoded.dictionary.to_pylist()), NULL], dtype=np.int64)
        return numbers[encoded.indices.fill_null(len(numbers) - 1).to_numpy(zero_copy_only=False)]


def _last(numbers: dict[str, int], count: int) -> list[str]:
    """The last keys of a dict, in order, without walking over the others."""
    backwards = reversed(numbers)
    return [next(backwards) for _ in range(count)][::-1]
