"""Writes a message as a mail (RFC 5322 and MIME): plain text and HTML, with the headers that lists have.

Only headers of `_headers` exist. Texts from outside are encoded words (RFC 2047) or quoted-printable, so that they cannot
begin a line. The Message-ID follows from the id of the message: a repetition is recognised by it. The standard library's writer makes
the same in ten times the time; its parser reads these mails in the tests.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import format_datetime
from hashlib import blake2b

from tidings.service.delivery.channels.message import Message, MessageKind
from tidings.service.delivery.channels.transports import message_words as words
from tidings.service.delivery.channels.transports.mail_html import as_html
from tidings.service.mail_addresses import Sender

_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_PLAIN_TEXT = re.compile(
    r"[!-<>-~][ -<>-~]{0,64}[!-<>-~]|[!-<>-~]"
)  # nothing that looks like an encoded word
_LONGEST = 900  # characters of an address in a header, whose lines have at most 998 bytes
_ENCODED = 45  # bytes of text in an encoded word, which may have 75 characters


def mail(message: Message, sender: Sender, now: float) -> bytes:
    """The bytes of the mail, with CRLF at the end of each line, of which none has more than 998 bytes."""
    boundary = f"=_tidings_{_short_hash(message.id)}"  # quoted-printable never has "=_"
    parts = [f"{name}: {value}\r\n" for name, value in _headers(message, sender, now)]
    parts.append(f'Content-Type: multipart/alternative; boundary="{boundary}"\r\n\r\n')
    for kind, text in (("plain", words.as_text(message)), ("html", as_html(message))):
        parts.append(
            f'--{boundary}\r\nContent-Type: text/{kind}; charset="utf-8"\r\n'
            f"Content-Transfer-Encoding: quoted-printable\r\n\r\n{_quoted(text)}\r\n"
        )
    parts.append(f"--{boundary}--\r\n")
    return "".join(parts).encode()


def _headers(message: Message, sender: Sender, now: float) -> Iterator[tuple[str, str]]:
    yield "From", f"{encoded(sender.name, 'From')} <{sender.address}>" if sender.name else sender.address
    yield "To", message.address
    yield "Subject", encoded(words.subject(message), "Subject")
    yield "Date", format_datetime(datetime.fromtimestamp(now // 1, UTC))
    yield "Message-ID", f"<{_plain_id(message.id)}@{sender.domain}>"
    yield "Auto-Submitted", "auto-generated"
    if message.kind is not MessageKind.CONFIRMATION:
        yield "List-ID", f"<{_plain_id(message.channel)}.channels.{sender.domain}>"
        address = words.link(message.unsubscribe)
        if address and len(address) <= _LONGEST:
            yield "List-Unsubscribe", f"<{address}>"
            yield "List-Unsubscribe-Post", "List-Unsubscribe=One-Click"
    yield "MIME-Version", "1.0"


def encoded(text: str, name: str) -> str:
    """`text` for the header `name`: as it is, or as encoded words, each on a line."""
    if _PLAIN_TEXT.fullmatch(text) and (name != "From" or re.fullmatch(r"[A-Za-z0-9 -]+", text)):
        return text
    pieces, piece = [], b""
    for letter in text:
        more = letter.encode()
        if len(piece) + len(more) > _ENCODED:
            pieces.append(piece)
            piece = b""
        piece += more
    pieces.append(piece)
    return "\r\n ".join(
        f"=?utf-8?b?{binascii.b2a_base64(piece, newline=False).decode('ascii')}?=" for piece in pieces
    )


def _quoted(text: str) -> str:
    return binascii.b2a_qp(text.encode(), istext=True).decode("ascii").replace("\n", "\r\n")


def _plain_id(id: str) -> str:
    return id if _PLAIN_ID.fullmatch(id) else _short_hash(id)


def _short_hash(id: str) -> str:
    return blake2b(id.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
