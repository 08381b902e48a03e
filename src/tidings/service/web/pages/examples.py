"""Makes example subscriptions from recent events, tables, networks and operators; fixed ones while there are none.

Attributes that hardly two events share, such as identifiers and times, are left out, and numbers are rounded. What is
made from events matches one of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice, pairwise, zip_longest
from typing import Any

from tidings.engine.engine import Engine
from tidings.errors import TidingsError
from tidings.feeds.facts import DC, RSS
from tidings.formats.namespaces import RDF
from tidings.formats.rdf import is_rdf
from tidings.kinds.joins.schema.table import Table
from tidings.language.property_names import local_name, written_iri
from tidings.language.syntax.prefixes import WELL_KNOWN
from tidings.model.event import Event
from tidings.model.terms import Iri, Literal, Triple, read_graph
from tidings.model.values import number
from tidings.service.subscriptions.preview import Preview

MOST = 5
_LOOKED_AT = 50
_SHORT = 40
# Attributes by which one event is told from the others.
_OF_ONE = re.compile(
    r"(?:^|[._-])(?:title|name|headline|summary|description|text|message|url|link|uri|href|image|id|uuid|guid|key|hash|seq|sequence"
    r"|number|no|nr|offset|version|time|timestamp|ts|date|year|created|updated|published|modified|expires|lat|lon|latitude"
    r"|longitude)s?$",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"[a-z](?:Id|Key|Time|At|Date|Url)$")
_NO_WORD = re.compile(r"\d{4}-\d\d-\d\d.*|[\d.:,+-]+|https?:.*|[0-9a-f-]{16,}", re.IGNORECASE)
_EPOCHS = ((1e9, 4e9), (1e12, 4e12))  # times in seconds and in milliseconds

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
    changes: list[Event] = []
    for event in events:  # some of each, whichever there are more of
        is_change = event.type.startswith("tidings.")
        kind = changes if is_change else graphs if is_rdf(event.datacontenttype) else plain
        if len(kind) < _LOOKED_AT:
            kind.append(event)
    made = zip_longest(_of_attributes(plain), _of_feeds(graphs))
    turns = dict.fromkeys(example for pair in made for example in pair if example is not None)
    looked = [*graphs, *plain]
    good = list(islice((example for example in turns if _matches_one(example[1], looked, preview)), MOST))
    chosen = good or list(USUAL)
    for offered in _of_definitions(preview.engine, plain, changes, chosen[0][1]):
        valid = next((example for example in offered if preview.check(example[1]).ok), None)
        chosen += [valid] if valid is not None else []
    return [{"words": words, "text": text} for words, text in chosen], bool(good)


def like_this(event: Event, preview: Preview) -> str | None:
    """A text that matches an event and others like it; None if nothing in it is likely to come again."""
    text = _of_graph(event, preview) or _of_words(event)
    return text if text and _matches_one(text, [event], preview) else None


def _matches_one(text: str, events: Iterable[Event], preview: Preview) -> bool:
    return preview.check(text).ok and any(preview.explain(text, event).verdict == "match" for event in events)


def _of_words(event: Event) -> str | None:
    words = [f"{_name(name)} = '{value}'" for name, value in _seen([event])[0]]
    return "WHERE " + "\n  AND ".join(words[:2]) if words else None


def _of_graph(event: Event, preview: Preview) -> str | None:
    """A pattern with what the first node of a graph shares with others; its title and its numbers are selected."""
    triples = _triples(event)
    prefixes = {**WELL_KNOWN, **preview.engine.prefixes}
    constants: dict[str, str] = {}
    variables: dict[str, str] = {}
    for subject, predicate, value in triples:
        if subject != triples[0][0] or not isinstance(predicate, Iri) or not isinstance(value, Literal):
            continue
        name, written, text = local_name(predicate.value), written_iri(predicate.value, prefixes), value.text
        if name.isidentifier() and (predicate.value == RSS + "title" or number(text) is not None):
            variables.setdefault(name, written)
        elif not _OF_ONE.search(name) and _is_word(text):
            constants.setdefault(written, text)
    if not variables and not constants:
        return None
    selected = list(variables.items())[:3]
    clauses = [f"(?item, {written}, ?{name})" for name, written in selected]
    clauses += [f"(?item, {written}, '{text}')" for written, text in list(constants.items())[:2]]
    select = ", ".join(f"?{name}" for name, _ in selected) or "*"
    return f"SELECT {select}\nWHERE {', '.join(clauses)}"


def _triples(event: Event) -> list[Triple]:
    try:
        return read_graph(event.graph())[:200]
    except TidingsError:
        return []


def _is_word(text: str) -> bool:
    return 0 < len(text) <= _SHORT and not ({"'", "\n", "\\"} & set(text) or _NO_WORD.fullmatch(text))


def _of_attributes(events: list[Event]) -> Iterator[tuple[str, str]]:
    words, numbers = _seen(events)
    distinct = Counter(name for name, _ in words)
    frequent = [pair for pair, _ in words.most_common()]
    common = ([pair for pair in frequent if distinct[pair[0]] > 1] or frequent)[
        :2
    ]  # what all share selects nothing
    for name, value in common:
        yield f"Everything with the {name} {value}", f"WHERE {_name(name)} = '{value}'"
    for name, values in list(numbers.items())[:2]:
        high = _readable(values)
        yield f"{name} above {high:,}", f"WHERE {_name(name)} > {high}"
        if common and common[0][0] != name:
            first, value = common[0]
            yield (
                f"Both together, for {value}",
                f"WHERE {_name(first)} = '{value}'\n  AND {_name(name)} <= {high}",
            )


def _seen(events: list[Event]) -> tuple[Counter[tuple[str, str]], dict[str, list[float]]]:
    """Texts that several events share, and the numbers of each attribute that tells something, oldest first."""
    texts: dict[str, Counter[str]] = {}
    numbers: dict[str, list[float]] = {}
    for event in reversed(events):
        for name, value in _flat(event.attributes):
            if _OF_ONE.search(name) or _CAMEL.search(name):
                continue
            if isinstance(value, str):
                if _is_word(value):
                    texts.setdefault(name, Counter())[value] += 1
            elif isinstance(value, int | float) and not isinstance(value, bool):
                numbers.setdefault(name, []).append(value)
    words: Counter[tuple[str, str]] = Counter()
    for name, counts in texts.items():
        if counts.total() < 5 or len(counts) < 0.8 * counts.total():
            words.update({(name, value): count for value, count in counts.items()})
    return words, {name: values for name, values in numbers.items() if _tells(values)}


def _tells(values: Sequence[float]) -> bool:
    """Whether numbers are neither counted up nor times, and differ."""
    low, high = min(values), max(values)
    counted = len(values) > 3 and all(a < b for a, b in pairwise(values))
    return low < high < 1e15 and not counted and not any(a <= low and high <= b for a, b in _EPOCHS)


def _readable(values: Sequence[float]) -> float | int:
    """A number that about a quarter of the values are above, in two digits."""
    quarter = float(f"{sorted(values)[3 * (len(values) - 1) // 4]:.2g}")
    return int(quarter) if quarter == int(quarter) else quarter


def _of_definitions(
    engine: Engine, events: list[Event], changes: list[Event], first: str
) -> Iterator[Iterator[tuple[str, str]]]:
    """For each kind that the service has declarations for, examples of which the first valid one is shown."""
    yield _of_tables(list(engine.joins.tables.values())[:20], changes)
    yield _of_networks(
        engine, first if first.startswith("WHERE ") and "?" not in first else "WHERE EXISTS source"
    )
    yield _of_operators(engine, _seen(events)[0])


def _of_tables(tables: list[Table], changes: list[Event]) -> Iterator[tuple[str, str]]:
    for one, other in combinations(tables, 2):
        shared = [
            name for name in one.names if name in other.names and name not in (*one.payload, *other.payload)
        ]
        if shared:
            text = f"SELECT * FROM {one.name} JOIN {other.name} USING ({shared[0]})"
            yield (
                f"Rows of {one.name} and {other.name} with the same {shared[0]}",
                text + (_condition(one, changes) or _condition(other, changes)),
            )
    for table in tables:
        yield f"Rows of {table.name}", f"SELECT * FROM {table.name}{_condition(table, changes)}"


def _condition(table: Table, changes: list[Event]) -> str:
    """A condition on a number of a table, by rows that came lately."""
    rows = [event.attributes.get("row") for event in changes if event.attributes.get("table") == table.name]
    for name, kind in table.columns.items():
        values = [
            row[name] for row in rows if isinstance(row, Mapping) and isinstance(row.get(name), int | float)
        ]
        if kind == "number" and name not in table.payload and values and _tells(values):
            return f"\nWHERE {table.name}.{name} > {_readable(values)}"
    return ""


def _of_networks(engine: Engine, condition: str) -> Iterator[tuple[str, str]]:
    for name, network in engine.networks.items():
        edges = list(islice(network.edges(), 1_000))
        ends = {target for _, target, _ in edges} - {source for source, _, _ in edges}
        for node in sorted(ends)[:1] or [node for node, _ in islice(network.nodes(), 1)]:
            yield f"What the network {name} lets through to {node}", f"{condition}\nVIA {name} AT '{node}'"


def _of_operators(engine: Engine, words: Counter[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    common: dict[str, str] = {}
    for (name, value), _ in words.most_common():
        common.setdefault(name, value)
    for operator in engine.operators:
        given = []
        for parameter in operator.parameters:
            text = f"'{common.get(parameter.name, 'text')}'"
            is_text = not parameter.types or str in parameter.types
            given.append(f"?{parameter.name}" if parameter.is_out else text if is_text else "10")
        yield f"Calls the operator {operator.name}", f"WHERE {operator.name}({', '.join(given)})"


def _of_feeds(events: list[Event]) -> Iterator[tuple[str, str]]:
    subjects: Counter[str] = Counter()
    titles: Counter[str] = Counter()
    titled = items = 0
    for event in events:
        for _, predicate, object_ in _triples(event):
            text = object_.text if isinstance(object_, Literal) else ""
            said = predicate.value if isinstance(predicate, Iri) else ""
            if said == DC + "subject" and 0 < len(text) <= _SHORT and "'" not in text:
                subjects[text] += 1
            elif said == RDF + "type" and object_ == Iri(RSS + "item"):
                items += 1
            elif said == RSS + "title":
                titled += 1
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
    if items:
        yield (
            "Every item of every feed",
            "SELECT ?title WHERE (?item, rdf:type, rss:item), (?item, rss:title, ?title)",
        )
    elif titled:
        yield "Everything with a title", "SELECT ?title WHERE (?item, rss:title, ?title)"


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in list(values.items())[:50]:
        if isinstance(value, Mapping) and not before:
            yield from _flat(value, f"{name}.")
        else:
            yield f"{before}{name}", value


def _name(path: str) -> str:
    return path if path.replace("_", "").replace(".", "").isalnum() and not path[0].isdigit() else f"`{path}`"
