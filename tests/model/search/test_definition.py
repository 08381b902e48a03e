"""Searches against a definition written from LANGUAGE.md alone, and against SQLite's FTS5 where both mean the same.

FTS5 is given its own syntax (`a NOT b` for `a -b`). It differs, so that the words here are such as both fold alike: it does not fold by
compatibility (`²`, `ﬁ`), leaves `ß` as it is, and takes a run of Han or Kana for one word.
"""

from __future__ import annotations

import random
import re
import sqlite3
import unicodedata
from collections.abc import Iterator

import pytest

from tests.examples import is_thorough, seeds
from tidings.model.search.expression import search_fault, search_holds
from tidings.model.search.index import SearchIndex
from tidings.model.search.words import words

CASES = 250  # of each seed
UNSPACED = "[\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001aff0-\U0001b16f\U00020000-\U0003ffff]"
WORDS = "sun Sun SUN rain wind it's e-mail café CAFÉ cafe\u0301 Straße strasse x2 x² 94 東京 京 タワー no_way हिन्दी й и".split()
FILLING = [" ", "  ", "\n", ", ", "! ", " — ", "/", "…", "\u0301", "😀", "\ud800", "<b>", "_"]


def words_by_the_text(text: str) -> list[str]:
    """Decompose, leave out what combines, fold case; letters, numbers and marks are words, Han and Kana one by one."""
    decomposed = unicodedata.normalize("NFKD", text)
    folded = "".join(c for c in decomposed if unicodedata.combining(c) == 0).casefold()
    marked = "".join(c if unicodedata.category(c)[0] in "LNM" else " " for c in folded)
    return re.sub(f"({UNSPACED})", r" \1 ", marked).split()


def holds(text: str, search: str) -> bool:
    """Whether words, phrases, OR, exclusions and parentheses of a search hold for a text, by rewriting it as an expression of
    Python."""
    found = words_by_the_text(text)

    def has(phrase: str) -> bool:
        wanted = words_by_the_text(phrase)
        return any(found[i : i + len(wanted)] == wanted for i in range(len(found)))

    written: list[str] = []
    for minus, part in re.findall(r'(-?)("[^"]*"|\(|(?:[^\s()"-][^\s()"]*)|\))', search):
        if part == "OR":
            written.append("or")
            continue
        if part != ")" and written and written[-1] not in ("or", "("):
            written.append("and")
        written += ["not"] * bool(minus)
        written.append(part if part in "()" else f"has({part.strip(chr(34))!r})")
    return bool(eval(" ".join(written), {"has": has}))


def texts(rng: random.Random) -> str:
    count = rng.choice([0, 1, 3, 8, 20])
    return "".join(
        rng.choice(WORDS) + rng.choice(FILLING if rng.random() < 0.5 else [" "]) for _ in range(count)
    )


def searches(rng: random.Random, names: list[str] = WORDS, depth: int = 2) -> str:
    def item(depth: int) -> str:
        kind = rng.random()
        if kind < 0.2 and depth:
            return f"({branches(depth - 1)})"
        return (
            f'"{" ".join(rng.choices(names, k=rng.choice([1, 2, 2, 3])))}"'
            if kind < 0.4
            else rng.choice(names)
        )

    def branches(depth: int) -> str:
        return " OR ".join(
            " ".join(rng.choice(["", "", "", "-"]) + item(depth) for _ in range(rng.choice([1, 2, 2, 3])))
            for _ in range(rng.choice([1, 1, 1, 2, 3]))
        )

    while search_fault(found := branches(depth)) is not None:
        pass
    return found


@pytest.mark.parametrize("seed", seeds(1, 20))
def test_searches_hold_as_the_language_says(seed: int) -> None:
    rng = random.Random(seed)
    cases = [(texts(rng), searches(rng)) for _ in range(CASES)]
    index = SearchIndex.build([search for _, search in cases])
    found = index.satisfied_by([text for text, _ in cases])
    expected = [holds(text, search) for text, search in cases]
    assert [search_holds(text, search) for text, search in cases] == expected
    assert [i in satisfied for i, satisfied in enumerate(found)] == expected
    assert 0.1 < sum(expected) / CASES < 0.9
    for (text, _), satisfied in zip(cases[:40], found, strict=False):  # each text with all searches
        assert satisfied == [i for i, (_, search) in enumerate(cases) if search_holds(text, search)]


def test_every_character_is_folded_as_in_a_whole_text() -> None:
    for code in range(0, 0x110000, 1 if is_thorough() else 11):
        character = chr(code)
        assert words(character) == words_by_the_text(character), hex(code)
    rng = random.Random(5)
    for _ in range(300):
        text = "".join(chr(rng.choice([rng.randrange(0x110000), rng.randrange(0x500)])) for _ in range(30))
        assert words(text) == words_by_the_text(text)


# Words that FTS5 folds as we do: letters with accents that a canonical decomposition takes off, digits, case.
SHARED = "sun Sun SUN rain wind storm café CAFÉ Zürich zurich 94 94th naïve Ñandú o'clock e-mail".split()


def _fts5(texts: list[str]) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE VIRTUAL TABLE t USING fts5(body, tokenize="unicode61 remove_diacritics 2")')
    connection.executemany("INSERT INTO t(rowid, body) VALUES (?, ?)", enumerate(texts))
    return connection


def _fts5_query(rng: random.Random) -> tuple[str, str]:
    """A search of ours and the same in FTS5's syntax: alternatives of words, phrases and exclusions."""

    def terms(count: int) -> list[str]:
        return [" ".join(rng.choices(SHARED, k=rng.choice([1, 1, 2]))) for _ in range(count)]

    ours, theirs = [], []
    for _ in range(rng.choice([1, 1, 2, 3])):
        wanted, excluded = terms(rng.choice([1, 2, 3])), terms(rng.choice([0, 0, 1, 2]))
        written = [f'"{term}"' if " " in term else term for term in wanted]
        ours.append(" ".join(written + [f'-"{term}"' for term in excluded]))
        needed = " AND ".join(f'"{term}"' for term in wanted)
        theirs.append(
            "".join(f"({needed})" if not i else f' NOT "{term}"' for i, term in enumerate(["", *excluded]))
        )
    return " OR ".join(ours), " OR ".join(f"({each})" for each in theirs)


@pytest.mark.parametrize("seed", seeds(1, 20))
def test_searches_find_what_sqlite_finds(seed: int) -> None:
    rng = random.Random(seed)
    stored = [
        " ".join(rng.choices([*SHARED, "other,", "words."], k=rng.choice([1, 4, 9, 25]))) for _ in range(120)
    ]
    connection = _fts5(stored)
    pairs = [_fts5_query(rng) for _ in range(CASES)]
    index = SearchIndex.build([ours for ours, _ in pairs])
    found = index.satisfied_by(stored)
    matched = 0
    for number, (ours, theirs) in enumerate(pairs):
        rows = {row for (row,) in connection.execute("SELECT rowid FROM t WHERE t MATCH ?", (theirs,))}
        assert {i for i, satisfied in enumerate(found) if number in satisfied} == rows, (ours, theirs)
        matched += len(rows)
    assert 0.05 < matched / (len(stored) * CASES) < 0.9
    connection.close()


def _differences() -> Iterator[tuple[str, str, str, bool, bool]]:
    """A text, our search, FTS5's query, whether ours holds, whether FTS5's does."""
    yield "東京タワー", "東京", '"東京"', True, False
    yield "straße", "strasse", '"strasse"', True, False
    yield "x²", "x2", '"x2"', True, False
    yield "the ﬁne print", "fine", '"fine"', True, False


@pytest.mark.parametrize(("text", "ours", "theirs", "we", "they"), list(_differences()))
def test_where_sqlite_means_something_else(text: str, ours: str, theirs: str, we: bool, they: bool) -> None:
    connection = _fts5([text])
    assert search_holds(text, ours) is we
    assert bool(connection.execute("SELECT 1 FROM t WHERE t MATCH ?", (theirs,)).fetchall()) is they
    connection.close()
