"""How searches lie in arrays: what the compiled loops of word search take.

Words of searches are numbered, those of a text that no search has are UNKNOWN. Each search is filed under words of which a
text that satisfies it must have one; word w has entries[first[w]:first[w + 1]], one after the other:

    search, n, word, …           a search for words alone: these n have to be there too
    search, ~r, at               any other: r is which of the words it is filed under this one is, and `at` its program

    programs[at]                 n, m, the n words that it is filed under, then m instructions of three numbers:
                                 leaf, instruction if it holds, instruction if not: a later one, ACCEPT or REJECT
                                 a leaf is a word that has to be there, or ~p: phrase p has

    phrases[phrase_first[p]]     the offset of its rarest word, then its words
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

UNKNOWN = -1
ACCEPT, REJECT = -1, -2


class SearchArrays(NamedTuple):
    """Searches, and the vocabulary of their words: blob, start and slots as in arrays/vocabulary.py."""

    blob: np.ndarray
    start: np.ndarray
    slots: np.ndarray
    first: np.ndarray
    entries: np.ndarray
    programs: np.ndarray
    phrase_first: np.ndarray
    phrases: np.ndarray


class SearchSpace(NamedTuple):
    """Scratch of the loops. `there` is clean between two texts; `head` means something only for words that are there."""

    there: np.ndarray  # a bit for each word of searches: the text has it
    distinct: np.ndarray  # the words that are there, each once
    head: np.ndarray  # by word, its last place in the text
    before: np.ndarray  # by place, the place before it that has the same word; -1 for none
    word: np.ndarray  # the bytes of a word in small letters
