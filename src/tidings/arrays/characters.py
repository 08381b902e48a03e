"""Names for the bytes that compiled loops compare with, and tables of bytes that they look up.

Each name is a plain number, each table an array of 256 truth values. A loop holds both as constants.
"""

from __future__ import annotations

import numpy as np

BACKSPACE, TAB, NEWLINE, FORM_FEED, RETURN, SPACE = b"\b\t\n\f\r "
QUOTE, BACKSLASH = b'"\\'
OPEN_ANGLE, CLOSE_ANGLE, OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE = b"<>[]{}"
DOT, COMMA, COLON, SEMICOLON, QUESTION = b".,:;?"
PLUS, MINUS, SLASH, PERCENT, HASH, AT_SIGN, CARET, UNDERSCORE = b"+-/%#@^_"
DIGIT_0, DIGIT_1, DIGIT_7, DIGIT_9 = b"0179"
CAPITAL_A, CAPITAL_E, CAPITAL_F, CAPITAL_T, CAPITAL_Z = b"AEFTZ"
SMALL_A, SMALL_B, SMALL_E, SMALL_F, SMALL_N, SMALL_R, SMALL_T, SMALL_U = b"abefnrtu"
CASE_BIT = SMALL_A ^ CAPITAL_A  # `letter | CASE_BIT` is the small letter
BEYOND_ASCII = 0x80  # from here on, bytes are parts of longer characters of UTF-8

DIGITS = "0123456789"
SMALL_LETTERS = "abcdefghijklmnopqrstuvwxyz"
LETTERS = SMALL_LETTERS + SMALL_LETTERS.upper()
CONTROLS = bytes(range(SPACE)).decode()


def bytes_of(*texts: str) -> np.ndarray:
    """The table in which the bytes of ASCII texts are marked."""
    among = np.zeros(256, dtype=np.bool_)
    among[list("".join(texts).encode("ascii"))] = True
    return among
