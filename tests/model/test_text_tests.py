"""Tests of texts: the same answer by the direct way and by the expression that an index looks for."""

from __future__ import annotations

import ipaddress

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.text_tests import network, regular_expression, text_holds

TEXTS = st.text(alphabet="aBß%_\\\n.", max_size=8)


@given(TEXTS, TEXTS)
def test_each_test_has_an_expression(text: str, pattern: str) -> None:
    for op in ("LIKE", "CONTAINS", "STARTS", "ENDS"):
        found = re2.search(regular_expression(op, pattern), text) is not None
        assert text_holds(text, op, pattern) == found, op


@given(TEXTS, TEXTS)
def test_folding_disregards_case(text: str, pattern: str) -> None:
    for op in ("LIKE", "CONTAINS", "STARTS", "ENDS"):
        folded = text_holds(text, op, pattern, fold=True)
        assert folded == text_holds(text.swapcase(), op, pattern, fold=True)
        assert folded == text_holds(text.casefold(), op, pattern.casefold())
        assert folded or not text_holds(text, op, pattern)


@given(st.ip_addresses(v=4), st.ip_addresses(v=4), st.integers(0, 32))
def test_networks_compare_the_first_bits(
    address: ipaddress.IPv4Address, other: ipaddress.IPv4Address, bits: int
) -> None:
    same = int(address) >> (32 - bits) == int(other) >> (32 - bits)
    assert text_holds(str(address), "CIDR", f"{other}/{bits}") == same
    assert text_holds(f"::ffff:{address}", "CIDR", f"{other}/{bits}") == same


@pytest.mark.parametrize(
    "text", ["", "10", "10.0.0", "10.0.0.256", "010.0.0.1", " 10.0.0.1", "10.0.0.1/8", "x"]
)
def test_what_is_no_address_is_in_no_network(text: str) -> None:
    assert not text_holds(text, "CIDR", "0.0.0.0/0")
    assert not text_holds(text, "CIDR", "::/0")


def test_what_is_no_network() -> None:
    for pattern in ("", "10.0.0.0/33", "x/8", "10.0.0/8"):
        with pytest.raises(ValueError):
            network(pattern)
