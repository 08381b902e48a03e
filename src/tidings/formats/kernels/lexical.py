"""Numbers and instants read from bytes, exactly, without a Python object.

A number is mantissa * 10**exponent with at most 18 digits and no trailing zeros, which makes equal numbers
equal pairs; whatever does not fit is left to `tidings.model.values`, which means the same and takes any length.
"""

from __future__ import annotations

import numpy as np

from tidings.arrays.characters import (
    CAPITAL_E,
    CAPITAL_T,
    CAPITAL_Z,
    COLON,
    DIGIT_0,
    DIGIT_9,
    DOT,
    MINUS,
    PLUS,
    SMALL_E,
)
from tidings.arrays.compiled import compiled

NO, YES, LONG = 0, 1, 2
_DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], dtype=np.int64)
_POWERS = np.array([10.0**i for i in range(23)])


@compiled
def read_number(blob, low, high):  # type: ignore[no-untyped-def]
    """(NO | YES | LONG, mantissa, exponent, approximation) of blob[low:high]; the grammar is `values.number`'s."""
    i = low
    negative = False
    if i < high and (blob[i] == PLUS or blob[i] == MINUS):
        negative = blob[i] == MINUS
        i += 1
    mantissa, digits, seen, exponent, point = 0, 0, 0, 0, False
    while i < high:
        c = blob[i]
        if DIGIT_0 <= c <= DIGIT_9:
            seen += 1
            if digits > 0 or c != DIGIT_0:
                digits += 1
            if digits <= 18:
                mantissa = mantissa * 10 + (c - DIGIT_0)
            if point:
                exponent -= 1
        elif c == DOT and not point:
            point = True
        else:
            break
        i += 1
    if seen == 0:
        return NO, 0, 0, 0.0
    if i < high:
        if blob[i] != SMALL_E and blob[i] != CAPITAL_E:
            return NO, 0, 0, 0.0
        i += 1
        down = False
        if i < high and (blob[i] == PLUS or blob[i] == MINUS):
            down = blob[i] == MINUS
            i += 1
        if i == high or high - i > 3:
            return NO, 0, 0, 0.0
        power = 0
        while i < high:
            c = blob[i]
            if c < DIGIT_0 or c > DIGIT_9:
                return NO, 0, 0, 0.0
            power = power * 10 + (c - DIGIT_0)
            i += 1
        exponent += -power if down else power
    if seen > 400:
        return LONG, 0, 0, 0.0
    if digits > 18:
        return LONG, 0, 0, 0.0
    if mantissa == 0:
        return YES, 0, 0, 0.0
    while mantissa % 10 == 0:
        mantissa //= 10
        exponent += 1
    if exponent > 250 or exponent < -250:
        return LONG, 0, 0, 0.0
    if negative:
        mantissa = -mantissa
    approximation = float(mantissa)
    rest = exponent
    while rest > 0:
        step = min(rest, 22)
        approximation *= _POWERS[step]
        rest -= step
    while rest < 0:
        step = min(-rest, 22)
        approximation /= _POWERS[step]
        rest += step
    return YES, mantissa, exponent, approximation


@compiled
def _digits(blob, low, count):  # type: ignore[no-untyped-def]
    value = 0
    for i in range(low, low + count):
        c = blob[i]
        if c < DIGIT_0 or c > DIGIT_9:
            return -1
        value = value * 10 + (c - DIGIT_0)
    return value


@compiled
def read_instant(blob, low, high):  # type: ignore[no-untyped-def]
    """(is one, microseconds since 1970) of blob[low:high]; the grammar is `values.instant`'s."""
    if high - low < 10 or blob[low + 4] != MINUS or blob[low + 7] != MINUS:
        return False, 0
    year, month, day = _digits(blob, low, 4), _digits(blob, low + 5, 2), _digits(blob, low + 8, 2)
    if year < 1 or month < 1 or month > 12 or day < 1:
        return False, 0
    leap = (year % 4 == 0 and year % 100 != 0) or year % 400 == 0
    if day > _DAYS[month] + (1 if leap and month == 2 else 0):
        return False, 0
    # Days since 1970 of a civil date, counting years from March so that the leap day comes last.
    y = year - (1 if month <= 2 else 0)
    era = y // 400
    of_era = y - era * 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    days = era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468
    hour, minute, second, micros = 0, 0, 0, 0
    i = low + 10
    if i < high and blob[i] == CAPITAL_T:
        if high - i < 6 or blob[i + 3] != COLON:
            return False, 0
        hour, minute = _digits(blob, i + 1, 2), _digits(blob, i + 4, 2)
        if hour < 0 or hour > 23 or minute < 0 or minute > 59:
            return False, 0
        i += 6
        if i < high and blob[i] == COLON:
            if high - i < 3:
                return False, 0
            second = _digits(blob, i + 1, 2)
            if second < 0 or second > 59:
                return False, 0
            i += 3
            if i < high and blob[i] == DOT:
                i += 1
                count = 0
                while i < high and DIGIT_0 <= blob[i] <= DIGIT_9:
                    if count < 6:
                        micros = micros * 10 + (blob[i] - DIGIT_0)
                    count += 1
                    i += 1
                if count == 0 or count > 12:
                    return False, 0
                while count < 6:
                    micros *= 10
                    count += 1
    offset = 0
    if i < high:
        if blob[i] == CAPITAL_Z:
            i += 1
        elif (blob[i] == PLUS or blob[i] == MINUS) and high - i >= 6 and blob[i + 3] == COLON:
            hours, minutes = _digits(blob, i + 1, 2), _digits(blob, i + 4, 2)
            if hours < 0 or minutes < 0:
                return False, 0
            offset = (hours * 60 + minutes) * (-1 if blob[i] == MINUS else 1)
            i += 6
        else:
            return False, 0
    if i != high:
        return False, 0
    return True, (((days * 24 + hour) * 60 + minute - offset) * 60 + second) * 1_000_000 + micros
