"""Makes one conditional GET, bounded in size and time; follows redirects, and returns errors as an `FeedResponse`.

Compressed bodies are decompressed here in chunks, because a kilobyte can expand to a megabyte: the limit counts the
decompressed bytes.
"""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from urllib.parse import urljoin, urlsplit

import httpx

from tidings.feeds.addresses import DEADLINE, AddressRefused

MAX_SECONDS = 120.0  # for one document, however slowly it trickles
MAX_REDIRECTS = 5
_ERRNO = re.compile(r"\[Errno -?\d+\] ")  # a number that says nothing to people
LONGEST_WAIT = 24 * 60 * 60.0

_HEADERS = {
    "User-Agent": "tidings/0.1 (feed reader)",
    "Accept": "application/atom+xml, application/rss+xml, application/rdf+xml, application/feed+json,"
    " application/xml;q=0.9, application/json;q=0.9, */*;q=0.5",
    "Accept-Encoding": "gzip, deflate",
}


@dataclass(frozen=True, slots=True)
class FeedResponse:
    """`status` is "ok", "unchanged", "gone" or "error"; `address` is the one to fetch next time."""

    status: str
    address: str
    body: bytes = b""
    content_type: str | None = None
    etag: str | None = None
    modified: str | None = None
    error: str | None = None
    retry_after: float | None = None  # seconds, if the server said so
    links: tuple[str, ...] = ()  # the Link headers
    base: str = ""  # where the document was, after all redirects


class _Refused(Exception):
    """The document is not wanted; the text says why."""


def get(
    client: httpx.Client, address: str, etag: str | None, modified: str | None, max_bytes: int
) -> FeedResponse:
    """Gets the document at `address`, unless it still has this ETag or Last-Modified."""
    headers = dict(_HEADERS)
    if etag:
        headers["If-None-Match"] = etag
    if modified:
        headers["If-Modified-Since"] = modified
    here = lasting = address
    permanent = True
    deadline = time.monotonic() + MAX_SECONDS
    before = DEADLINE.set(deadline)
    try:
        for _ in range(MAX_REDIRECTS + 1):
            with client.stream("GET", here, headers=headers, follow_redirects=False) as response:
                target = response.headers.get("Location")
                if response.status_code not in (301, 302, 303, 307, 308) or not target:
                    answer = _answer(response, lasting, max_bytes, deadline)
                    return replace(answer, links=tuple(response.headers.get_list("Link")), base=here)
                permanent = permanent and response.status_code in (301, 308)
                here = urljoin(here, target)
                if urlsplit(here).scheme not in ("http", "https"):
                    raise _Refused(f"redirected to {here[:200]!r}, which is not an address on the web")
                lasting = here if permanent else lasting
        raise _Refused(f"more than {MAX_REDIRECTS} redirects")
    except (httpx.HTTPError, httpx.InvalidURL, AddressRefused, _Refused, ValueError) as error:
        what = _ERRNO.sub("", str(error)) or type(error).__name__
        if isinstance(error, httpx.ConnectError):
            what = f"the server cannot be reached: {what}"
        return FeedResponse("error", address, error=f"{address}: {what}")
    finally:
        DEADLINE.reset(before)


def _answer(response: httpx.Response, address: str, max_bytes: int, deadline: float) -> FeedResponse:
    code = response.status_code
    if code == 304:
        return FeedResponse("unchanged", address)
    if code == 410:
        return FeedResponse("gone", address, error=f"{address}: the feed is gone for good (410)")
    if code != 200:
        error = f"{address}: the server answered {code} {response.reason_phrase}".rstrip()
        return FeedResponse("error", address, error=error, retry_after=_retry_after(response))
    body = bytearray()
    for piece in _unpacked(response, max_bytes, deadline):
        body += piece
        if len(body) > max_bytes:
            raise _Refused(f"the document has more than {max_bytes:,} bytes")
    headers = response.headers
    answer = FeedResponse("ok", address, bytes(body), headers.get("Content-Type"))
    return replace(answer, etag=headers.get("ETag"), modified=headers.get("Last-Modified"))


def _unpacked(response: httpx.Response, max_bytes: int, deadline: float) -> Iterator[bytes]:
    coding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if coding not in ("identity", "", "gzip", "x-gzip", "deflate"):
        raise _Refused(f"the document is packed as {coding[:40]!r}, which was not asked for")
    unpacker = None if coding in ("identity", "") else _unpacker(coding)
    for (
        piece
    ) in response.iter_raw():  # as they come: pieces of a size would be waited for, however slowly they fill
        if time.monotonic() > deadline:
            raise _Refused(f"the document took longer than {MAX_SECONDS:.0f} seconds")
        if unpacker is None:
            yield piece
            continue
        try:
            yield unpacker.decompress(piece, max_bytes + 1)
        except zlib.error as error:
            raise _Refused(f"the document is not proper {coding}: {error}") from None
    if unpacker is not None and not unpacker.eof:
        raise _Refused("the document was cut off")


def _unpacker(coding: str) -> zlib._Decompress:
    return zlib.decompressobj(zlib.MAX_WBITS if coding == "deflate" else zlib.MAX_WBITS | 16)


def _retry_after(response: httpx.Response) -> float | None:
    header = response.headers.get("Retry-After", "").strip()
    if header.isdecimal():
        seconds = float(header[:9])
    else:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time.time()
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    return min(max(seconds, 1.0), LONGEST_WAIT)
