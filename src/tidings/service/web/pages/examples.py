"""Makes example subscriptions from recent events; fixed ones while there are none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Any

from tidings.errors import TidingsError
from tidings.feeds.facts import DC, RSS
from tidings.formats.rdf import is_rdf
from tidings.model.event import Event
from tidings.model.terms import Iri, Literal, read_graph
from tidings.service.subscriptions.preview import Preview

MOST = 5
_LOOKED_AT = 50
_SHORT = 40
_OF_ONE = frozenset(
    {"title", "name", "headline", "summary", "description", "text", "message", "id", "url", "link", "time"}
)

USUAL = (
    ("A filter on attributes", "WHERE topic = 'finance' AND price > 100"),
    ("One of several values", "WHERE geo IN ('CA', 'NY') AND NOT age < 18"),
    (
        "Titles of feeds with a word",
        "SELECT ?title\nWHERE (?item, rss:title, ?title)\n  AND ?title CONTAINS 'storm'",
    ),
    (
        "Feeds by their category",
        "SELECT ?title\nWHERE (?item, rss:title, ?title), (?item, dc:subject, 'Science')",
    ),
)


def examples(events: Iterable[Event], preview: Preview) -> tuple[list[dict[str, str]], bool]:
    """Example texts with descriptions, and whether they are made from these events. Each of them is valid."""
    plain: list[Event] = []
    graphs: list[Event] = []
    for event in events:  # some of each, whichever there are more of
        kind = graphs if is_rdf(event.datacontenttype) else plain
        if len(kind) < _LOOKED_AT:
            kind.append(event)
    made = zip_longest(_of_attributes(plain), _of_feeds(graphs))
    turns = dict.fromkeys(example for pair in made for example in pair if example is not None)
    good = [example for example in turns if preview.check(example[1]).ok][:MOST]
    chosen = good or list(USUAL)
    return [{"words": words, "text": text} for words, text in chosen], bool(good)


def _of_attributes(events: list[Event]) -> Iterator[tuple[str, str]]:
    words: Counter[tuple[str, str]] = Counter()
    numbers: dict[str, list[float]] = {}
    for event in events:
        for name, value in _flat(event.attributes):
            if name.lower() in _OF_ONE:
                continue  # which hardly two events share
            if isinstance(value, str) and 0 < len(value) <= _SHORT and "'" not in value and "\n" not in value:
                words[name, value] += 1
            elif isinstance(value, int | float) and not isinstance(value, bool):
                numbers.setdefault(name, []).append(value)
    common = [pair for pair, _ in words.most_common(2)]
    for name, value in common:
        yield f"Whatever has the {name} {value}", f"WHERE {_name(name)} = '{value}'"
    for name, values in list(numbers.items())[:2]:
        middle = sorted(values)[len(values) // 2]
        shown = f"{middle:.15g}"
        if "e" in shown:
            continue
        yield f"Where the {name} is high", f"WHERE {_name(name)} > {shown}"
        if common and common[0][0] != name:
            first, value = common[0]
            yield (
                f"Both together, for {value}",
                f"WHERE {_name(first)} = '{value}'\n  AND {_name(name)} <= {shown}",
            )


def _of_feeds(events: list[Event]) -> Iterator[tuple[str, str]]:
    subjects: Counter[str] = Counter()
    titles: Counter[str] = Counter()
    feeds = 0
    for event in events:
        try:
            triples = read_graph(event.graph())
        except TidingsError:
            continue
        for _, predicate, object_ in triples[:200]:
            text = object_.text if isinstance(object_, Literal) else ""
            said = predicate.value if isinstance(predicate, Iri) else ""
            if said == DC + "subject" and 0 < len(text) <= _SHORT and "'" not in text:
                subjects[text] += 1
            elif said == RSS + "title":
                feeds += 1
                titles.update({word for word in text.split() if len(word) > 5 and word.isalpha()})
    for subject, _ in subjects.most_common(2):
        yield (
            f"Titles about {subject}",
            f"SELECT ?title\nWHERE (?item, rss:title, ?title), (?item, dc:subject, '{subject}')",
        )
    for word, _ in titles.most_common(1):
        yield (
            f"Titles with “{word}”",
            f"SELECT ?title\nWHERE (?item, rss:title, ?title)\n  AND ?title CONTAINS '{word}' IGNORE CASE",
        )
    if feeds:
        yield (
            "Every item of every feed",
            "SELECT ?title WHERE (?item, rdf:type, rss:item), (?item, rss:title, ?title)",
        )


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in list(values.items())[:50]:
        if isinstance(value, Mapping) and not before:
            yield from _flat(value, f"{name}.")
        else:
            yield f"{before}{name}", value


def _name(path: str) -> str:
    return path if path.replace("_", "").replace(".", "").isalnum() and not path[0].isdigit() else f"`{path}`"
