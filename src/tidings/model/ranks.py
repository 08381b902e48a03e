"""Ranks constants in exact order, so that a comparison with any of them is one of small integers.

The i-th distinct number has the odd rank 2 i + 1; a value between two has the even rank between theirs. Floats sort
the numbers first; exact arithmetic decides between numbers whose floats are too close.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from fractions import Fraction
from typing import Any

import numpy as np

from tidings.formats.kernels.literals import LONG_EXPONENT
from tidings.model import values
from tidings.model.terms import Literal, from_ntriples


def rank_of(ordered: Any, key: Any) -> int:
    """The rank of `key` among sorted constants, whatever sequence they are in."""
    at = bisect_left(ordered, key)
    return 2 * at + (1 if at < len(ordered) and ordered[at] == key else 0)


def sort_numbers(
    texts: list[str],
    constants: np.ndarray,
    mantissa: np.ndarray,
    exponent: np.ndarray,
    approximation: np.ndarray,
    rank: np.ndarray,
) -> tuple[np.ndarray, dict[str, str]]:
    """Sorts distinct numbers exactly, given and returned as positions of constants, and writes `rank`. Long numbers are
    marked by an exponent that no other number has."""
    for i in constants[exponent[constants] == LONG_EXPONENT]:
        mantissa[i] = i
        approximation[i] = _nearest(_fraction(texts[i]))
    order = constants[np.lexsort((mantissa[constants], exponent[constants], approximation[constants]))]
    near = np.zeros(len(order), dtype=np.bool_)
    if len(order) > 1:
        a, b = approximation[order[:-1]], approximation[order[1:]]
        other = (mantissa[order[1:]] != mantissa[order[:-1]]) | (exponent[order[1:]] != exponent[order[:-1]])
        # Between the least and the greatest there is more than a float holds.
        with np.errstate(over="ignore"):
            near[1:] = (b - a <= np.abs(b) * 4e-14) & other
    exact: dict[int, Fraction] = {}
    at = 0
    for start in np.flatnonzero(near):  # runs that only exact arithmetic can order
        if start < at:
            continue
        low, at = int(start) - 1, int(start) + 1
        while at < len(order) and (near[at] or _same(order[at], order[at - 1], mantissa, exponent)):
            at += 1
        while low > 0 and _same(order[low], order[low - 1], mantissa, exponent):
            low -= 1
        run = order[low:at].tolist()
        exact.update((i, _fraction(texts[i])) for i in run)
        order[low:at] = sorted(run, key=exact.__getitem__)
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (mantissa[order[1:]] != mantissa[order[:-1]]) | (exponent[order[1:]] != exponent[order[:-1]])
    if exact:
        for at in np.flatnonzero(np.isin(order, list(exact)))[1:]:
            new[at] = exact[order[at]] != exact.get(order[at - 1])
    rank[order] = 2 * np.cumsum(new) - 1
    distinct = order[new]
    long = {
        str(at): str(_fraction(texts[distinct[at]]))
        for at in np.flatnonzero(exponent[distinct] == LONG_EXPONENT)
    }
    return distinct, long


def _nearest(number: Fraction) -> float:
    """The nearest finite float; exact arithmetic distinguishes the numbers beyond the largest one."""
    try:
        return float(number)
    except OverflowError:
        return sys.float_info.max if number > 0 else -sys.float_info.max


def _same(i: int, j: int, mantissa: np.ndarray, exponent: np.ndarray) -> bool:
    return bool(mantissa[i] == mantissa[j] and exponent[i] == exponent[j])


def _fraction(text: str) -> Fraction:
    literal = from_ntriples(text)
    assert isinstance(literal, Literal)
    number = values.number(literal.text)
    assert number is not None
    return number
