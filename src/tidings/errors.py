"""What can go wrong with what a user gave us, each with its place and a next step.

Every error a user can cause is a `TidingsError` whose text is one readable sentence; the command line
prints it, the engine reports it per subscription or per event, and nothing else is lost.
"""

import difflib
import heapq
from collections.abc import Iterable, Sequence

_LONGEST = 100  # letters of a word that is compared
_COMPARED = 500  # options that are compared with a word letter by letter, and fewer with a long word
_COMPARED_LETTERS = 100_000  # of the word, with each letter of the options


class TidingsError(Exception):
    """Something the user can mend; `str(error)` says what was given, what is needed, what to try."""


class SubscriptionError(TidingsError):
    """A subscription's text cannot be accepted. `line` and `column` count from 1, where known."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        place = f" at {line}:{column}" if line is not None else ""
        super().__init__(f"{message}{place}")
        self.line = line
        self.column = column


class EventError(TidingsError):
    """An event's content cannot be read: malformed RDF, a refused document, a wrong encoding."""

    def __init__(self, message: str) -> None:
        # Parsers repeat what they could not read, which may be all of a document.
        super().__init__(message if len(message) <= 500 else f"{message[:300]} … {message[-150:]}")


class TaxonomyError(TidingsError):
    """A taxonomy cannot be used, such as one with a cycle; the text carries the path."""


class IndexFileError(TidingsError):
    """A folder does not hold a readable index: missing, of another format, or damaged."""


def check_columns(names: Sequence[str], what: str, error: type[TidingsError] = TidingsError) -> None:
    """Refuses two columns of one name, which nobody can tell apart. `what` has them: "the events have"."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise error(f"{what} two columns {twice!r}; rename one of them, or leave it out")


def nearest(word: str, options: Iterable[str], likeness: float = 0.6) -> str | None:
    """The option that is spelled most like `word`; None if none is at least `likeness` (0 to 1) similar. Of many options
    only those with the most similar letters are compared; a very long word is like none."""
    length, letters = len(word), set(word)
    if length > _LONGEST:
        return None
    most = min(_COMPARED, _COMPARED_LETTERS // max(1, length * length))
    shortest, longest = length * likeness / (2 - likeness), length * (2 - likeness) / likeness
    similar = [one for one in options if shortest <= len(one) <= longest]
    if len(similar) > most:
        similar = heapq.nsmallest(
            most, similar, key=lambda one: len(letters ^ set(one)) + abs(length - len(one))
        )
    found = difflib.get_close_matches(word, similar, n=1, cutoff=likeness)
    return found[0] if found else None


def did_you_mean(word: str, options: Iterable[str], otherwise: str, likeness: float = 0.6) -> str:
    """`did you mean 'x'?` for the nearest option, or the other advice if none is near."""
    near = nearest(word, options, likeness)
    return otherwise if near is None else f"did you mean '{near}'?"
