"""Mail addresses: those that messages go to, and that of the sender.

An address is one mailbox and nothing else: no name beside it, no list, no quotes, no address of a machine in brackets.
A domain is kept in ASCII (IDNA); what stands before the @ is kept as it was written, because only its server knows what it means.
"""

from __future__ import annotations

import re
import unicodedata
from email.utils import getaddresses
from typing import NamedTuple

from tidings.errors import TidingsError

MAX_ADDRESS, MAX_LOCAL = 254, 64  # bytes, of RFC 5321
_LOCAL = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u0080-\U0010ffff-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u0080-\U0010ffff-]+)*"
)
_DOMAIN = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]")


class AddressError(TidingsError):
    """A mail address that cannot be used."""

    status = 422


class Sender(NamedTuple):
    """Whom mails are from."""

    name: str
    address: str

    @property
    def domain(self) -> str:
        return self.address.rpartition("@")[2]


def mail_address(given: str) -> str:
    """The address in its normal form; AddressError says what is wrong with it."""
    text = given.strip(" ")
    shown = repr(text[:100])
    local, at, domain = text.rpartition("@")
    if not at or not local or not domain or len(text) > 4 * MAX_ADDRESS:
        raise AddressError(f"{shown} is no mail address; give one like ann@example.org")
    if local.startswith('"') or domain.startswith("["):
        raise AddressError(
            f"{shown} has quotes or brackets, which are not accepted; give one like ann@example.org"
        )
    local = unicodedata.normalize("NFC", local)
    if not _LOCAL.fullmatch(local) or not all(map(_is_visible, local)):
        raise AddressError(
            f"{shown} is not one mail address alone; give one like ann@example.org, without a name, a blank or a comma"
        )
    domain = _domain(domain, shown)
    address = f"{local}@{domain}"
    if len(local.encode()) > MAX_LOCAL or len(address.encode()) > MAX_ADDRESS:
        raise AddressError(
            f"{shown} is too long for a mail address; at most {MAX_LOCAL} bytes are accepted before the @,"
            f" and {MAX_ADDRESS} in all"
        )
    return address


def sender(given: str) -> Sender:
    """The sender of mails from "Tidings <alerts@example.org>" or an address alone."""
    found = getaddresses([given])
    if len(found) != 1 or any(unicodedata.category(letter)[0] == "C" for letter in given):
        raise AddressError(f"{given[:100]!r} names no sender; give one like 'Tidings <alerts@example.org>'")
    name, address = found[0][0], mail_address(found[0][1])
    if not address.isascii():
        raise AddressError(
            f"the sender {address!r} needs letters of ASCII before the @, because servers refuse others"
        )
    return Sender(name.strip(), address)


def _domain(domain: str, shown: str) -> str:
    ascii_form = domain.lower() if domain.isascii() else _idna(domain)
    if len(ascii_form) > 253 or not _DOMAIN.fullmatch(ascii_form):
        raise AddressError(f"{shown} has no full domain after the @; give one like ann@example.org")
    return ascii_form


def _idna(domain: str) -> str:
    import idna  # and its large tables, which few addresses need

    try:
        return idna.encode(domain, uts46=True).decode("ascii").lower()
    except (idna.IDNAError, UnicodeError):
        return ""


def _is_visible(letter: str) -> bool:
    return unicodedata.category(letter)[0] not in "CZ"
