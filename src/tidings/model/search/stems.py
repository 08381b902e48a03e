"""Stems of words by the Snowball algorithms, which the extra `stemming` installs."""

from __future__ import annotations

from functools import cache
from typing import Any

from tidings.errors import TidingsError, did_you_mean

# The order is that of the numbers in saved indexes: a new language is added at the end.
LANGUAGES = tuple(
    (
        "arabic armenian basque catalan danish dutch english finnish french german greek hindi hungarian indonesian irish "
        "italian lithuanian nepali norwegian porter portuguese romanian russian serbian spanish swedish tamil turkish yiddish"
    ).split()
)


def language_fault(language: str) -> tuple[str, str] | None:
    """Why words cannot be stemmed in a language, and what to do about it; None if they can."""
    try:
        _stemmer(language)
    except TidingsError as error:
        what, _, advice = str(error).partition("; ")
        return what, advice if language in LANGUAGES else did_you_mean(language, LANGUAGES, advice)
    return None


def stem(word: str, language: str) -> str:
    """The stem of a word in small letters."""
    found: str = _stemmer(language).stemWord(word)
    return found


@cache
def _stemmer(language: str) -> Any:
    if language not in LANGUAGES:
        raise TidingsError(f"no stemmer is known for {language[:40]!r}; known are {', '.join(LANGUAGES)}")
    try:
        import snowballstemmer
    except ImportError:
        raise TidingsError(
            "STEMMED needs the package snowballstemmer, which is not installed; install tidings[stemming]"
        ) from None
    return snowballstemmer.stemmer(language)
