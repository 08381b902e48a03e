"""Converts the taxonomy to arrays by the term numbers of an index: the classes that each term is, has or labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tidings.kinds.patterns.kernels.layout import starts
from tidings.kinds.patterns.table import PatternTable
from tidings.model.taxonomy import Taxonomy, local_name
from tidings.model.terms import escape


def class_labels(taxonomy: Taxonomy, class_of: Mapping[str, int]) -> dict[str, list[int]]:
    labels: dict[str, list[int]] = {}
    for iri, number in class_of.items():
        for label in taxonomy.labels(iri) or (local_name(iri),):
            labels.setdefault(label, []).append(number)
    return labels


def class_arrays(
    table: PatternTable,
    taxonomy: Taxonomy,
    classes: Any,
    labels: Mapping[str, list[int]],
    text_place: Mapping[str, int],
    asked: bool,
) -> dict[str, np.ndarray]:
    """The taxonomy by number of term; empty when no subscription tests a class."""
    typed: dict[int, list[int]] = {}
    own: dict[int, int] = {}
    if asked:
        for iri, number in classes.class_of.items():
            own[table.terms.number(f"<{iri}>")] = number
        for iri, types in taxonomy.instances().items():
            typed[table.terms.number(f"<{iri}>")] = [classes.class_of[cls] for cls in types]
    terms = len(table.terms) if asked else 0
    number_array = np.full(terms, -1, dtype=np.int32)
    for term, number in own.items():
        number_array[term] = number
    by_text: dict[int, list[int]] = {text_place[escape(label)]: numbers for label, numbers in labels.items()}
    return {
        "class_number": number_array,
        **_lists("class_typed", typed, terms),
        **_lists("class_label", by_text, len(text_place)),
        "class_interval_first": classes.interval_start if asked else np.zeros(1, dtype=np.int64),
        "class_interval_low": classes.interval_low if asked else np.zeros(0, dtype=np.int64),
        "class_interval_high": classes.interval_high if asked else np.zeros(0, dtype=np.int64),
        "class_parent_first": classes.parent_start if asked else np.zeros(1, dtype=np.int64),
        "class_parents": classes.parent if asked else np.zeros(0, dtype=np.int64),
    }


def _lists(name: str, lists: Mapping[int, list[int]], count: int) -> dict[str, np.ndarray]:
    sizes = np.zeros(count, dtype=np.int64)
    for i, items in lists.items():
        sizes[i] = len(items)
    flat = [item for i in sorted(lists) for item in lists[i]]
    return {f"{name}_first": starts(sizes), name: np.array(flat, dtype=np.int32)}
