"""Reads events from files, folders and standard input: feeds, RDF in any syntax, NDJSON of CloudEvents or of any
objects.

The name of a file gives its format, or its content where the name does not (.xml, .json). In a folder, files with
other names are skipped. A file that cannot be read is reported in one sentence, and the others are read.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tidings.cli import terminal
from tidings.cli.notification_output import Key, key_of
from tidings.errors import EventError, TidingsError
from tidings.formats.documents import MAX_BYTES
from tidings.formats.strict_json import StrictJson
from tidings.model.event import Event

RDF_SUFFIXES = frozenset({".nt", ".ttl", ".turtle", ".nq", ".trig", ".n3", ".jsonld", ".owl"})
OPEN_SUFFIXES = frozenset({".xml", ".rdf", ".rss", ".atom", ".json"})
LINES_SUFFIXES = frozenset({".ndjson", ".jsonl"})
KNOWN_SUFFIXES = RDF_SUFFIXES | OPEN_SUFFIXES | LINES_SUFFIXES
STDIN = "-"
PORTION = 1000
_ROOT = re.compile(rb"<([A-Za-z_][\w.-]*:)?([A-Za-z_][\w.-]*)[\s>/]")
_RSS1 = b"http://purl.org/rss/1.0/"
_CHANNEL = re.compile(rb"<(?:[\w.-]+:)?channel[\s>]")

Report = Callable[[str], None]


class Portion(list[Event]):
    """A list of events; `places` has FILE:LINE for those that are lines of a file, by their sources and ids."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        super().__init__(events)
        self.places: dict[Key, str] = {}

    def extend(self, more: Iterable[Event]) -> None:
        super().extend(more)
        if isinstance(more, Portion):
            self.places.update(more.places)


def files(places: Iterable[str]) -> list[str]:
    """The files to read: those named, and those of folders whose names say that they hold events."""
    found: list[str] = []
    for path_given in places:
        path = Path(path_given)
        if path_given == STDIN or path.is_file():
            found.append(path_given)
        elif path.is_dir():
            inside = [
                p for p in sorted(path.rglob("*")) if p.suffix.lower() in KNOWN_SUFFIXES and p.is_file()
            ]
            found += [
                str(p) for p in inside if not any(part.startswith(".") for part in p.relative_to(path).parts)
            ]
        else:
            raise TidingsError(
                f"there is no file or folder {path_given!r}; give feeds, RDF, NDJSON, a folder, or - for stdin"
            )
    return found


def read(path: str, report: Report = terminal.warn) -> Iterator[Portion]:
    """The events of one file, in portions. Errors are reported, not raised."""
    try:
        if path == STDIN:
            yield from _stdin(report)
        elif Path(path).suffix.lower() in LINES_SUFFIXES:
            with Path(path).open("rb") as lines:
                yield from _cloudevents(lines, path, report)
        else:
            with Path(path).open("rb") as file:
                # One byte more than is allowed is enough to be refused.
                yield document(file.read(MAX_BYTES + 1), path, report)
    except OSError as error:
        report(f"{path}: {error.strerror}")
    except EventError as error:
        # A feed's error begins with its source, which is the path here.
        report(f"{path}: {str(error).removeprefix(f'{path}: ')}")


def document(data: bytes, path: str, report: Report) -> Portion:
    """The events of one document: a feed's items, or one graph, or CloudEvents."""
    from tidings.feeds.read import read_feed

    syntax = _syntax(data, Path(path).suffix.lower())
    if syntax == "feed":
        return Portion(read_feed(data, path))
    if syntax != "cloudevents":
        return Portion([_graph(data, path, syntax)])
    return _objects(data, path, report)


def _add(portion: Portion, strict: StrictJson, value: Any, place: str, report: Report) -> None:
    """The event that a JSON value is. What the service refuses is refused here too."""
    try:
        if (fault := strict.fault(value)) is not None:
            raise EventError(fault)
        event = Event.from_object(value)
        portion.append(event)
        portion.places[key_of(event)] = place
    except EventError as error:
        report(f"{place}: {error}")


def _graph(data: bytes, path: str, syntax: str) -> Event:
    base = "urn:tidings:stdin" if path == STDIN else Path(path).absolute().as_uri()
    return Event.from_rdf(data, syntax, source=path, base=base)


def _syntax(data: bytes, suffix: str) -> str:
    """ "feed", "cloudevents", or the name of an RDF syntax."""
    if suffix in RDF_SUFFIXES:
        return suffix.lstrip(".")
    start = data[:4096].lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n")
    if start[:1] in (b"{", b"["):
        return _json_syntax(data)
    if start[:1] == b"<" and not re.match(rb"<[^<>\s]+>\s", start):  # else it may be N-Triples
        # Characters of two or four bytes: the names looked for are ASCII.
        thin = data[:65536].replace(b"\0", b"")
        root = _ROOT.search(thin)
        is_rdf = root is not None and root[2] == b"RDF"
        return "rdfxml" if is_rdf and not (_RSS1 in thin and _CHANNEL.search(thin)) else "feed"
    if suffix in OPEN_SUFFIXES:
        return "feed"
    return "turtle"  # N-Triples are Turtle too


def _json_syntax(data: bytes) -> str:
    parsed = _parsed(data)
    if isinstance(parsed, list):
        parsed = parsed[0] if parsed else None
    if not isinstance(parsed, dict):
        return "cloudevents"  # more than one object, or none that can be read: reported line by line
    if isinstance(parsed.get("items"), list) and "specversion" not in parsed:
        return "feed"
    return "jsonld" if any(key.startswith("@") for key in parsed) else "cloudevents"


def _parsed(data: bytes) -> Any:
    """The JSON value in `data`; None if there is none, or if it nests too deep."""
    try:
        return StrictJson().read(data)
    except EventError:
        return None


def _objects(data: bytes, path: str, report: Report) -> Portion:
    """The events of a document: a single object or array over several lines, or lines of NDJSON."""
    strict, found = StrictJson(), Portion()
    try:
        parsed = strict.read(data)
    except EventError:
        if _parsed(data.strip().partition(b"\n")[0]) is None:
            raise  # one document over several lines, not lines of which each is one
        for portion in _cloudevents(data.splitlines(), path, report):
            found.extend(portion)
        return found
    for number, item in enumerate(parsed if isinstance(parsed, list) else [parsed], 1):
        _add(found, strict, item, f"{path}:{number}", report)
    return found


def _cloudevents(lines: Iterable[bytes], path: str, report: Report, first: int = 1) -> Iterator[Portion]:
    strict, portion = StrictJson(), Portion()
    for number, line in enumerate(lines, first):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        try:
            _add(portion, strict, strict.read(line), place, report)
        except EventError as error:
            report(f"{place}: {error}")
        if len(portion) >= PORTION:
            yield portion
            portion = Portion()
    if portion:
        yield portion


def _stdin(report: Report) -> Iterator[Portion]:
    """NDJSON is read line by line, so that `tail -f` can be matched; any other document is read to its end."""
    stream = sys.stdin.buffer
    start = stream.readline()
    if not isinstance(_parsed(start), dict) or _json_syntax(start) != "cloudevents":
        yield document(start + stream.read(), STDIN, report)
        return
    number, rest = 1, start
    while True:
        *lines, rest = rest.split(b"\n")
        yield from _cloudevents(lines, STDIN, report, number)
        number += len(lines)
        more = stream.read1()  # type: ignore[union-attr]
        if not more:
            yield from _cloudevents([rest], STDIN, report, number)
            return
        rest += more
