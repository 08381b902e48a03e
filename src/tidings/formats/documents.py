"""Makes documents from outside safe before any parser reads them.

The result is UTF-8, within a size limit, nests no deeper than a parser's stack allows, and, if XML, has no DOCTYPE:
declared entities are short, internal and already replaced, so a parser has nothing to expand or to fetch. Reasons:
pyoxigraph aborts the process on an entity bomb of under 1 KB and on JSON-LD or triple terms nested ten thousand deep,
and needs minutes for XML nested as deep. All other errors of a document are left to its parser.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Callable, Iterator
from itertools import accumulate

from tidings.errors import EventError
from tidings.formats.doctype import MAX_TAGS, Doctype, read_doctype


def _limit() -> int:
    """Larger documents are refused; the environment may set another limit."""
    given = os.environ.get("TIDINGS_MAX_BYTES", str(16 * 1024 * 1024))
    if not given.isdecimal():
        raise EventError(f"TIDINGS_MAX_BYTES is {given!r}; give a number of bytes, such as 16777216")
    return int(given)


MAX_BYTES = _limit()
LIMIT = "the environment variable TIDINGS_MAX_BYTES"
MAX_DEPTH = 256  # libxml2's own limit; people's documents stay far below
MAX_GROWTH, MAX_EXPANSION = (
    32,
    1 << 20,
)  # characters of all entities: so many times the document, and so many more

_BOMS = (  # UTF-32 first: its little-endian mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)
_ZEROS = {  # which of the first four bytes are zero, if the first characters are ASCII
    b"\0\1\1\1": "utf-32-le",
    b"\1\1\1\0": "utf-32-be",
    b"\0\1\0\1": "utf-16-le",
    b"\1\0\1\0": "utf-16-be",
}
_DECLARATION = re.compile(rb"""<\?xml\s[^>]*?\bencoding\s*=\s*["']([^"'>]*)["'][^>]*>""")
_ANY_DECLARATION = re.compile(r"<\?xml\s[^>]*>")
_SPACE = b" \t\r\n"

# Python's codecs also hold compressors, escapes and other things that are no character set.
_CHARSETS = re.compile(
    r"ascii|utf-8|utf-16|utf-32|latin|iso8859|cp\d+$|koi8|gb|big5|shift_jis|euc|iso2022|mac-|tis-620|johab|ptcp"
)
_UNITS = {"utf-16": 2, "utf-32": 4}

# Group 1: an end tag; 2: a comment, CDATA, an instruction or a declaration; 3: a start tag that opens an element.
_TAG = re.compile(r"""<(?:(/)|([!?])|[^<>"']*+(?:(?:"[^"]*"|'[^']*')[^<>"']*+)*+((?<!/)>)?)""")
_ENDS = {"<!--": "-->", "<![C": "]]>"}
_REFERENCE = re.compile(r"&([^\s&;#<>]{1,64});")
_TURTLE_TOKEN = re.compile(
    rb"""[^<>"'\#\\]++|\\.|\#[^\r\n]*+|<<|>>|<[^<>\s]*+>|[<>]"""
    rb'|"""(?:[^"\\]|\\.|"(?!""))*+"""|"(?!"")(?:[^"\\]|\\.)*+"'
    rb"|'''(?:[^'\\]|\\.|'(?!''))*+'''|'(?!'')(?:[^'\\]|\\.)*+'",
    re.DOTALL,
)


def safe_xml(
    data: bytes,
    max_bytes: int = MAX_BYTES,
    charset: str | None = None,
    name_of: Callable[[str], str | None] | None = None,
) -> bytes:
    """An XML document as UTF-8 without a DOCTYPE, its declared entities replaced.

    `charset` is what the transport said; it counts where the document says nothing, or says it wrongly. `name_of`
    gives the text of entities that the document did not declare, such as HTML's.
    """
    data = _sized(data, max_bytes)
    if not data.startswith(b"<") and _marked_encoding(data) is None:
        data = data.lstrip(_SPACE)
    declared = _DECLARATION.match(data)
    if declared is None or declared[1].lower() == b"utf-8":
        if not data.startswith(b"<") or b"\0" in data[:4] or not is_utf8(data):
            data = _xml_in_utf8(data, None, charset)
    else:
        data = _xml_in_utf8(data, declared[1].decode("ascii", "replace"), charset)
    # The cheapest test comes first: this runs before every parse.
    # Some parsers take a doctype in any case.
    if name_of is not None or (b"!" in data and (b"<!D" in data or b"<!d" in data)):
        return _without_doctype(data.decode(), name_of, max_bytes).encode()
    tags = data.count(b"<")
    if tags > MAX_DEPTH and tags - data.count(b"</") > MAX_DEPTH:  # with fewer, nothing can nest deeper
        _check_elements(data.decode())
    return data


def safe_text(data: bytes, max_bytes: int = MAX_BYTES, charset: str | None = None) -> bytes:
    """A document of any other syntax (Turtle, N-Triples, JSON, …) as UTF-8 without a byte order mark.

    `charset` is what the transport said; it counts where the first bytes do not give another away.
    """
    data = in_utf8(_sized(data, max_bytes), charset)
    if data.lstrip(_SPACE)[:1] in (b"{", b"["):
        _check_brackets(data)
    if data.count(b"<<") > MAX_DEPTH:
        _check_triple_terms(data)
    return data


def in_utf8(data: bytes, charset: str | None = None) -> bytes:
    """Text of any encoding as UTF-8 without a byte order mark."""
    marked = _marked_encoding(data) or charset
    if marked is not None:
        return _decoded(data, marked).removeprefix("\ufeff").encode()
    if not is_utf8(data):
        _decoded(data, "utf-8")  # says which byte is wrong
    return data


def _sized(data: bytes, max_bytes: int) -> bytes:
    if len(data) > max_bytes:
        # A reader may have stopped behind the limit, so the whole size is not known.
        advice = (
            "send a smaller document" if max_bytes != MAX_BYTES else f"{LIMIT} sets a higher one, in bytes"
        )
        raise EventError(f"the document has more than {max_bytes:,} bytes, which is the limit; {advice}")
    return data


# -- encodings


def is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _marked_encoding(data: bytes) -> str | None:
    """The encoding that the first bytes show: a byte order mark, or the zeros of wide characters."""
    if b"\0" < data[:1] < b"\x80" and b"\0" not in data[:4]:
        return None
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return encoding
    return _ZEROS.get(bytes(byte == 0 for byte in data[:4]))


def _xml_in_utf8(data: bytes, declared: str | None, charset: str | None) -> bytes:
    marked = _marked_encoding(data)
    candidates = [marked] if marked else [name for name in (declared, charset, "utf-8") if name]
    failures = []
    for name in candidates:
        try:
            text = _decoded(data, name)
        except EventError as error:
            failures.append(error)
            continue
        text = text.removeprefix("\ufeff").lstrip()
        declaration = _ANY_DECLARATION.match(text)
        body = text[declaration.end() :] if declaration else text
        return f'<?xml version="1.0" encoding="UTF-8"?>{body}'.encode()
    raise failures[0]


def _decoded(data: bytes, name: str) -> str:
    """`data` as text; `name` is an encoding as documents and servers write it."""
    try:
        codec = codecs.lookup(name.strip())
    except (LookupError, ValueError, UnicodeError):
        raise EventError(f"unknown encoding {name[:40]!r}; use UTF-8") from None
    if not _CHARSETS.match(codec.name):
        raise EventError(f"{name[:40]!r} is not an encoding of text; use UTF-8")
    wide = _UNITS.get(codec.name[:6])
    if wide and b"\0" not in data[: 2 * wide]:
        # A document that could be read up to this name is not in wide characters: programs that build it
        # as a string and save it as UTF-8 write this.
        codec = codecs.lookup("utf-8")
    if codec.name in ("ascii", "iso8859-1", "cp1252"):
        # As browsers do: all three mean Windows-1252, and its five unassigned bytes are control characters.
        return codecs.charmap_decode(data, "strict", _WINDOWS_1252)[0]
    try:
        return codec.decode(data, "strict")[0]
    except UnicodeDecodeError as error:
        raise EventError(
            f"byte {error.object[error.start]:#04x} at offset {error.start} is not {codec.name};"
            " save the document as UTF-8, or declare its encoding"
        ) from None


_WINDOWS_1252 = "".join(
    char if char != "\ufffd" else chr(byte)
    for byte, char in enumerate(bytes(range(256)).decode("cp1252", "replace"))
)


# -- XML


def _without_doctype(text: str, name_of: Callable[[str], str | None] | None, max_bytes: int) -> str:
    """The document with its DOCTYPE taken out and its entities put in."""
    start = _end_of_prolog(text)
    if text[start : start + 9].upper() == "<!DOCTYPE":
        doctype, end = read_doctype(text, start)
    else:
        doctype, end = Doctype(), start
    # A namespace's name is ten times as long as its entity; what grows far more is meant to.
    most = min(max_bytes, MAX_GROWTH * len(text) + MAX_EXPANSION)
    parts, room, tags = [text[:start]], most, MAX_TAGS

    def replaced(found: re.Match[str]) -> str:
        nonlocal room, tags
        value = doctype.replacement(found[1])
        if value is None and name_of is not None:
            value = name_of(found[1])
        if value is None:
            return found[0]
        room -= len(value)
        tags -= value.count("<")
        if room < 0 or tags < 0:
            bound = f"{most:,} characters" if room < 0 else f"{MAX_TAGS:,} tags"
            raise EventError(f"the document's entities expand to more than {bound}; write less with them")
        return value

    position = end
    for first, last in _outside_markup(text, end):
        parts += text[position:first], _REFERENCE.sub(replaced, text[first:last])
        position = last
    safe = "".join([*parts, text[position:]])
    if room < most:  # entities may have brought markup with them, or completed some
        _check_elements(safe)
    return safe


def _end_of_prolog(text: str) -> int:
    """The offset at which the DOCTYPE or the root element starts."""
    position = 0
    while (start := text.find("<", position)) >= 0:
        if text.startswith("<?", start):
            end = text.find("?>", start)
        elif text.startswith("<!--", start):
            end = text.find("-->", start + 4)
        else:
            return start
        if end < 0:
            break
        position = end
    return len(text)


def _check_elements(text: str) -> None:
    for _ in _outside_markup(text, _end_of_prolog(text)):
        pass


def _outside_markup(text: str, position: int) -> Iterator[tuple[int, int]]:
    """The stretches where an entity reference counts: text and tags, not comments, CDATA or instructions.

    Also checks that elements do not nest too deep and that there is no declaration among them.
    """
    depth = 0
    tags = _TAG.finditer(text, position)
    while (tag := next(tags, None)) is not None:
        if tag.lastindex == 3:
            depth += 1
            if depth > MAX_DEPTH:
                raise EventError(f"the document's elements nest deeper than {MAX_DEPTH} levels; flatten them")
        elif tag.lastindex == 1:
            depth -= 1
        elif tag.lastindex == 2:
            start = tag.start()
            yield position, start
            closing = "?>" if tag[2] == "?" else _ENDS.get(text[start : start + 4])
            if closing is None:
                raise EventError(
                    f"a declaration inside the document: {text[start : start + 20]!r}; take it out"
                )
            position = text.find(closing, start + 4 if tag[2] == "!" else start + 2)
            if position < 0:
                return  # no parser gets further
            tags = _TAG.finditer(text, position)
    yield position, len(text)


# -- other syntaxes


def _check_brackets(data: bytes) -> None:
    """That JSON nests within bounds. Turtle may start like JSON; it would be misread only for the better."""
    if data.count(b"{") + data.count(b"[") <= MAX_DEPTH:
        return
    outside_strings = b"".join(data.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    brackets = outside_strings.translate(_BRACKETS, _NOT_BRACKETS)
    if max(accumulate(2 * byte - 1 for byte in brackets), default=0) > MAX_DEPTH:
        raise EventError(
            f"the document's objects and lists nest deeper than {MAX_DEPTH} levels; flatten them"
        )


_BRACKETS = bytes.maketrans(b"{[}]", b"\1\1\0\0")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"{[}]"))


def _check_triple_terms(data: bytes) -> None:
    depth = position = 0
    while (token := _TURTLE_TOKEN.match(data, position)) is not None:
        position = token.end()
        if token[0] == b"<<":
            depth += 1
            if depth > MAX_DEPTH:
                raise EventError(
                    f"the document's triple terms nest deeper than {MAX_DEPTH} levels; flatten them"
                )
        elif token[0] == b">>":
            depth -= 1
