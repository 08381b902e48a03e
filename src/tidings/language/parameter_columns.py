"""A table's columns as the constants of a template: every distinct value is read once, rows keep its code.

Where a `$parameter` stands in a triple, or after ISA, its column is read like a term written there: `ex:Sport`,
`<http://…>`, `'quoted'`. Elsewhere a text is a text. Numbers, truth values, dates and times are themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.types as types

from tidings.errors import SubscriptionError, check_columns
from tidings.formats.namespaces import XSD
from tidings.language.faults import Misread
from tidings.language.parameters import check_constant, parameters, substitute
from tidings.language.parser import parse
from tidings.language.printer import to_text
from tidings.language.query import (
    AnyElement,
    Condition,
    IsA,
    Parameter,
    Query,
    TextTest,
    TriplePattern,
    Variable,
    leaves,
)
from tidings.language.syntax.lexicon import Lexicon
from tidings.model.terms import Literal, escape, from_ntriples, ntriples
from tidings.model.text_tests import is_search

_SCHEMES = {"http", "https", "urn"}
_LIMITED = {
    "double": "[0-9]",
    "date": "^[0-9]{4}-",
    "dateTime": "^[0-9]{4}-",
}  # no NaN, no infinity, no year 10000
_ADDRESS = "^(?:https?://|urn:)[!#$&-;=?-Z_a-z~]+$"


@dataclass(frozen=True, slots=True)
class Column:
    """The value of row i is texts[codes[i]], in N-Triples form; `literal` when they are literals."""

    codes: np.ndarray
    texts: list[str]
    literal: bool


def fill_template(template: str, row: pa.Table, prefixes: Mapping[str, str]) -> str:
    """The text of one row of a template."""
    query = parse(template, prefixes)
    _, columns = parameter_columns(row, query, prefixes)
    values = {p.name: from_ntriples(column.texts[0]) for p, column in columns.items()}
    return to_text(substitute(query, values))  # type: ignore[arg-type]  # no table has blank nodes


def parameter_columns(
    table: pa.Table, query: Query, prefixes: Mapping[str, str]
) -> tuple[list[str], dict[Parameter, Column]]:
    """The ids and the columns of a template's table; a `SubscriptionError` says what does not fit."""
    ids, names = table_ids(table, query), parameters(query)
    terms = {
        part.name
        for leaf in leaves(query.where)
        for part in _term_places(leaf)
        if isinstance(part, Parameter)
    }
    lexicon = Lexicon(prefixes)
    columns = {Parameter(name): _column(name, table[name], name in terms, lexicon) for name in names}
    _check_places(query, columns)
    return ids, columns


def table_ids(table: pa.Table, query: Query) -> list[str]:
    """The ids in a template's table, which has a column for each parameter."""
    if not isinstance(table, pa.Table):
        raise SubscriptionError(
            f"the rows of a template are a {type(table).__name__}; give a pyarrow.Table, as of pa.Table.from_pylist"
        )
    check_columns(table.column_names, "the table has", SubscriptionError)
    names = parameters(query)
    missing = [name for name in ("id", *names) if name not in table.column_names]
    if missing:
        raise SubscriptionError(
            f"the table has no column {missing[0]!r}; it needs 'id' and one column for each $parameter: "
            f"{', '.join(names) or 'none'}"
        )
    try:
        column = table["id"].cast(pa.string())
    except pa.ArrowException:
        raise SubscriptionError(f"column 'id' is of type {table['id'].type}; ids are texts") from None
    ids = column.to_pylist()
    if len(set(ids)) < len(ids) or column.null_count:
        twice = (
            next(id for id, count in Counter(ids).most_common(1) if count > 1) if None not in ids else None
        )
        raise SubscriptionError(
            f"the id {twice!r} stands twice in the table, or is missing; every row needs its own"
        )
    return ids


def _check_places(query: Query, columns: Mapping[Parameter, Column]) -> None:
    """Refuses values where the language would not have let them be written."""
    samples = {p.name: from_ntriples(column.texts[0]) for p, column in columns.items() if column.texts}
    substitute(query, samples)  # type: ignore[arg-type]  # no table has blank nodes
    for leaf in _inner_leaves(query.where):
        if isinstance(leaf, TextTest) and _is_checked(leaf.op) and isinstance(leaf.pattern, Parameter):
            for text in columns[leaf.pattern].texts:
                substitute(Query(leaf), {leaf.pattern.name: from_ntriples(text)})  # type: ignore[dict-item]


def _is_checked(op: str) -> bool:
    """Whether each value has to be one of its kind: an expression, a network, a search."""
    return op in ("MATCHES", "CIDR") or is_search(op)


def _inner_leaves(condition: Condition) -> Iterator[Condition]:
    """All leaves, those of conditions on elements too."""
    for leaf in leaves(condition):
        yield leaf
        if isinstance(leaf, AnyElement):
            yield from _inner_leaves(leaf.condition)


def _term_places(leaf: object) -> tuple[object, ...]:
    if isinstance(leaf, TriplePattern):
        return (leaf.subject, leaf.property, leaf.object)
    return (leaf.cls,) if isinstance(leaf, IsA) else ()


def _column(name: str, column: pa.ChunkedArray, is_term: bool, lexicon: Lexicon) -> Column:
    if column.null_count:
        row = column.to_pylist().index(None)
        raise SubscriptionError(f"column {name!r} has no value in row {row}; every subscription needs one")
    encoded_already = types.is_dictionary(column.type)
    kind = column.type.value_type if encoded_already else column.type
    if not _is_text(kind) and _datatype(kind) is None:
        raise SubscriptionError(
            f"column {name!r} is of type {kind}; use texts, numbers, truth values or dates"
        )
    if not encoded_already:
        column = column.dictionary_encode()
    encoded = column.combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = (
            encoded.chunk(0)
            if encoded.num_chunks
            else pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), [])
        )
    values, codes = encoded.dictionary, encoded.indices.to_numpy(zero_copy_only=False)
    texts = _texts(name, values, is_term, lexicon)
    kinds = {text[0] for text in texts}
    if len(kinds) > 1:
        raise SubscriptionError(f"column {name!r} mixes IRIs and literals; give each kind its own table")
    return Column(codes, texts, kinds == {'"'})


def _texts(name: str, values: pa.Array, is_term: bool, lexicon: Lexicon) -> list[str]:
    kind = values.type
    if _is_text(kind):
        if is_term and not _SCHEMES & lexicon.prefixes.keys() and _all_addresses(values):
            return [f"<{text}>" for text in values.to_pylist()]
        read: Callable[[str], str] = (lambda text: _term(name, text, lexicon)) if is_term else _quoted
        return [read(text) for text in values.to_pylist()]
    datatype = _datatype(kind)
    if types.is_timestamp(kind):
        in_utc = values.cast(pa.timestamp("us", tz="UTC"), safe=False)
        written = compute.replace_substring(in_utc.cast(pa.string()), " ", "T")
    else:
        written = values.cast(pa.string())
    if datatype in _LIMITED:
        fits = compute.match_substring_regex(written, _LIMITED[datatype])
        if not compute.all(fits).as_py():
            raise SubscriptionError(
                f"column {name!r} has {written.filter(compute.invert(fits))[0]}, which is no {datatype} to compare with"
            )
    return [f'"{text}"^^<{XSD}{datatype}>' for text in written.to_pylist()]


def _all_addresses(values: pa.Array) -> bool:
    """Whether all values are plain absolute IRIs, which need not be read one by one."""
    return bool(compute.all(compute.match_substring_regex(values, _ADDRESS)).as_py())


def _is_text(kind: pa.DataType) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _datatype(kind: pa.DataType) -> str | None:
    for test, datatype in (
        (types.is_integer, "integer"),
        (types.is_floating, "double"),
        (types.is_decimal, "decimal"),
        (types.is_boolean, "boolean"),
        (types.is_date, "date"),
        (types.is_timestamp, "dateTime"),
    ):
        if test(kind):
            return datatype
    return None


def _quoted(text: str) -> str:
    return f'"{escape(text)}"'


def _term(name: str, text: str, lexicon: Lexicon) -> str:
    try:
        term = lexicon.term(text) if text.strip() else None
    except Misread as error:
        raise SubscriptionError(f"column {name!r} has {text!r}: {error}") from None
    if term is None or isinstance(term, Variable | Parameter):
        raise SubscriptionError(f"column {name!r} has {text!r}, which is no IRI or literal")
    written = ntriples(term)
    if isinstance(term, Literal) and term.datatype:
        check_constant(written)
    return written
