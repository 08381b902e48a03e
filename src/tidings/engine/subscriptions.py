"""The subscriptions of an index by number, one numbering over base and tail: ids, texts, whether they are live, and
until when they are valid.

What comes from a folder is mapped and stays as it is; what is added since is behind it. Removing marks a subscription
dead; its rows stay until base and tail are folded into one.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from tidings.arrays.bounds import are_texts, ascends, refuse_unless, slots_fit
from tidings.arrays.hashing import find_span, hash_span, make_span_table, table_size
from tidings.arrays.vocabulary import StoredTexts, join_texts
from tidings.engine.templates import Template

ALWAYS = float("inf")


class Subscriptions:
    """Number i is a subscription for good: the next one gets the next number."""

    def __init__(self) -> None:
        self._stored_ids: Sequence[str] = ()
        self._stored_texts: Sequence[str] = ()
        self._stored_until = np.zeros(0)
        self._ids: list[str] = []
        self._texts: list[str | None] = []  # None: a row of a template
        self._until = array("d")
        self._templates: list[Template] = []
        self._id_slots: np.ndarray | None = None  # a table of the stored ids
        self._numbers: dict[str, int] | None = {}  # of those that are not in that table
        self._id_columns: list[pa.Array | None] = [None, None]
        self.live = bytearray()
        self.all_live = True
        self.some_end = False
        """Whether any has an end of its validity."""

    def __len__(self) -> int:
        return len(self.live)

    @property
    def stored(self) -> int:
        """How many come from a folder."""
        return len(self._stored_ids)

    def find(self, id: str) -> int:
        """The number of the live subscription with this id, or -1."""
        if self._numbers is None:
            # One that is live comes behind those with its id that are not.
            stored = self._stored_ids if self._id_slots is None else ()
            first = self.stored - len(stored)
            self._numbers = {id: number for number, id in enumerate((*stored, *self._ids), first)}
        number = self._numbers.get(id, -1)
        if number < 0 and self._id_slots is not None:
            number = self._find_stored(id, self._id_slots)
        return number if number >= 0 and self.live[number] else -1

    def _find_stored(self, id: str, slots: np.ndarray) -> int:
        assert isinstance(self._stored_ids, StoredTexts)
        if not id:
            return -1
        text, ids = np.frombuffer(id.encode(errors="surrogatepass"), dtype=np.uint8), self._stored_ids
        hash = np.uint64(hash_span(text, 0, len(text)))
        return int(find_span(hash, text, 0, len(text), ids.blob, ids.start, slots))

    def id_list(self, numbers: Sequence[int]) -> list[str]:
        """The ids of a few."""
        stored, recent = self._stored_ids, self._ids
        first = len(stored)
        return [stored[n] if n < first else recent[n - first] for n in numbers]

    def text(self, number: int) -> str:
        """The text, written out if it is a row of a template."""
        stored = self.stored
        if number < stored:
            return self._stored_texts[number]
        text = self._texts[number - stored]
        if text is not None:
            return text
        template = self._templates[bisect_right(self._templates, number, key=lambda t: t.first) - 1]
        return template.text(number - template.first)

    def add(self, id: str, text: str, until: float) -> None:
        if self._numbers is not None:
            self._numbers[id] = len(self)
        self._ids.append(id)
        self._texts.append(text)
        self._until.append(until)
        self.live.append(1)
        self._id_columns[1] = None
        self.some_end = self.some_end or until < ALWAYS

    def add_template(self, template: Template) -> None:
        """A subscription for each row."""
        template.first = len(self)
        if self._numbers is not None:
            self._numbers.update(zip(template.ids, range(len(self), len(self) + len(template)), strict=True))
        self._note(template.ids, [None] * len(template), ALWAYS)
        self._templates.append(template)

    def _note(self, ids: list[str], texts: Sequence[str | None], until: float) -> None:
        self._ids += ids
        self._texts += texts
        self._until.extend([until] * len(ids))
        self.live += b"\x01" * len(ids)
        self._id_columns[1] = None
        self.some_end = self.some_end or until < ALWAYS

    def extend(self, other: Subscriptions, numbers: np.ndarray) -> None:
        """Adds some subscriptions of another."""
        until = other.valid_until(numbers)
        self._ids += other.id_list(numbers.tolist())
        self._texts += [other.text(number) for number in numbers.tolist()]
        self._until.frombytes(until.tobytes())
        self.live += b"\x01" * len(numbers)
        self._numbers, self._id_columns[1] = None, None
        self.some_end = self.some_end or bool(np.min(until, initial=ALWAYS) < ALWAYS)

    def skip(self, count: int) -> None:
        """Gives numbers to nobody: their rows were added in part, and must not become another's."""
        first = len(self)
        self._note([""] * count, [""] * count, ALWAYS)
        for number in range(first, first + count):
            self.end(number)

    def end(self, number: int) -> None:
        self.live[number] = 0
        self.all_live = False

    def is_live(self, numbers: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.frombuffer(self.live, dtype=np.bool_)[numbers]
        return found

    def valid_until(self, numbers: np.ndarray) -> np.ndarray:
        """The ends of validity, in seconds since 1970."""
        recent = np.frombuffer(self._until, dtype=np.float64)
        return take_split(numbers, self._stored_until, recent)

    def ids(self, numbers: np.ndarray) -> pa.Array:
        """The ids, as notifications have them."""
        stored, recent = self._id_column(0), self._id_column(1)
        in_stored = numbers < len(stored)
        if in_stored.all():
            found = stored.take(pa.array(numbers))
        elif not in_stored.any():
            found = recent.take(pa.array(numbers - len(stored)))
        else:
            first, second = np.flatnonzero(in_stored), np.flatnonzero(~in_stored)
            taken = [
                stored.take(pa.array(numbers[first])),
                recent.take(pa.array(numbers[second] - len(stored))),
            ]
            order = np.argsort(np.concatenate([first, second]))
            found = pa.concat_arrays([part.cast(pa.string()) for part in taken]).take(pa.array(order))
        return found if found.type == pa.string() else found.cast(pa.string())

    def _id_column(self, which: int) -> pa.Array:
        column = self._id_columns[which]
        if column is None:
            ids = self._ids if which else self._stored_ids
            if isinstance(ids, StoredTexts):
                buffers = [None, pa.py_buffer(ids.start), pa.py_buffer(ids.blob)]
                column = pa.Array.from_buffers(pa.large_string(), len(ids), buffers)
            else:
                column = pa.array(ids, pa.large_string())
            # Small ones as notifications have them, once and for all.
            column = column.cast(pa.string()) if column.nbytes < 1 << 31 else column
            self._id_columns[which] = column
        return column

    def kept(self) -> Subscriptions:
        """The live ones, numbered anew."""
        made, live = Subscriptions(), np.flatnonzero(np.frombuffer(self.live, dtype=np.bool_))
        numbers = live.tolist()
        made._stored_ids, made._stored_texts = self.id_list(numbers), [self.text(i) for i in numbers]
        made._stored_until = self.valid_until(live)
        made.live = bytearray(b"\x01" * len(numbers))
        made._numbers, made.some_end = None, self.some_end
        return made

    def freeze(self) -> dict[str, np.ndarray]:
        """As arrays, for `thaw`; all must be live."""
        everyone = np.arange(len(self))
        ids, texts = (
            join_texts(self.id_list(everyone.tolist())),
            join_texts(map(self.text, everyone.tolist())),
        )
        return {
            "id_blob": ids[0],
            "id_start": ids[1],
            "id_slots": make_span_table(*ids),
            "text_blob": texts[0],
            "text_start": texts[1],
            "valid_until": self.valid_until(everyone),
        }

    @classmethod
    def thaw(cls, folder: Path, arrays: Mapping[str, np.ndarray], count: int) -> Subscriptions:
        """What `freeze` gave; its arrays stay mapped. Refuses those that cannot be right."""
        refuse_unless(folder, _checks(arrays, count))
        made = cls()
        made._stored_ids = StoredTexts(arrays["id_blob"], arrays["id_start"])
        made._stored_texts = StoredTexts(arrays["text_blob"], arrays["text_start"])
        made._stored_until, made._numbers = arrays["valid_until"], None
        made._id_slots = arrays.get("id_slots")  # not of an index of version 0.1
        made.some_end = bool(np.min(made._stored_until, initial=ALWAYS) < ALWAYS)
        made.live = bytearray(b"\x01" * count)
        return made


def _checks(arrays: Mapping[str, np.ndarray], count: int) -> Iterator[tuple[str, bool]]:
    """Names of arrays from a folder, and whether their values can be right."""
    for name in ("id", "text"):
        start = arrays[f"{name}_start"]
        yield f"{name}_start", len(start) - 1 == count and ascends(start, len(arrays[f"{name}_blob"]))
    # Texts are many and long; one that cannot be read is an error when it is requested.
    yield "id_blob", are_texts(arrays["id_blob"], arrays["id_start"])
    yield "valid_until", len(arrays["valid_until"]) == count
    if "id_slots" in arrays:
        slots = arrays["id_slots"]
        yield "id_slots", len(slots) == table_size(count) and slots_fit(slots, count)


def take_split(numbers: np.ndarray, stored: np.ndarray, recent: np.ndarray) -> np.ndarray:
    """The values of numbers in two arrays, one behind the other."""
    if not len(recent):
        return stored[numbers]
    if not len(stored):
        return recent[numbers]
    here = numbers < len(stored)
    found = np.empty(len(numbers), dtype=stored.dtype)
    found[here], found[~here] = stored[numbers[here]], recent[numbers[~here] - len(stored)]
    return found
