"""What the demo runs on: the sample feeds and subscriptions, and a crowd of generated ones beside them.

The crowd is 100,000 operators who each watch one software product for advisories above a score of their own:
one text with two parameters, and a table.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tidings.errors import TidingsError

if TYPE_CHECKING:
    import pyarrow as pa

OPERATORS = 100_000
PRODUCTS = 5_000
ADVISORIES = 20_000
CROWD = "operator "
TEMPLATE = (
    "SELECT ?title, ?score WHERE (?item, rss:title, ?title), (?item, adv:product, $product), (?item, adv:score, ?score)"
    " AND ?score >= $least"
)
_ADVISORY = "http://example.org/advisory#"
# In the sample feed.
_REAL = ("libparchment", "lantern", "quillmq", "harbor", "otterssl", "fernhill", "nimbus")


def folder() -> Path:
    """The examples: inside an installed package, or beside `src` in a checkout."""
    here = Path(__file__).resolve()
    for place in (here.parents[1] / "examples", here.parents[3] / "examples"):
        if (place / "subscriptions.txt").exists():
            return place
    raise TidingsError("the examples are not installed; run the demo from a checkout: make demo")


def operators() -> pa.Table:
    """A row for each operator: id, the product as a term of the language, the least score."""
    import numpy as np
    import pyarrow as pa

    random = np.random.default_rng(7)
    products = np.array([f"'{name}'" for name in _products()])
    return pa.table(
        {
            "id": [f"{CROWD}{number}" for number in range(1, OPERATORS + 1)],
            "product": products[random.integers(0, len(products), OPERATORS)],
            "least": random.integers(40, 100, OPERATORS) / 10,
        }
    )


def advisories() -> pa.Table:
    """Generated events, each a small graph like those of the sample feed."""
    import numpy as np

    from tidings.event import Event, to_table
    from tidings.rdf import NTRIPLES

    random = np.random.default_rng(8)
    products = _products()
    chosen = random.integers(0, len(products), ADVISORIES)
    scores = random.integers(10, 100, ADVISORIES) / 10
    events = []
    for number, (product, score) in enumerate(zip(chosen, scores, strict=True), 1):
        item = f"<http://example.org/advisories/{number}>"
        graph = (
            f'{item} <http://purl.org/rss/1.0/title> "Advisory {number} for {products[product]}" .\n'
            f'{item} <{_ADVISORY}product> "{products[product]}" .\n'
            f'{item} <{_ADVISORY}score> "{score}" .\n'
        )
        events.append(
            Event(id=f"advisory-{number}", source="generated", datacontenttype=NTRIPLES, data=graph.encode())
        )
    return to_table(events)


def _products() -> list[str]:
    return [*_REAL, *(f"product-{number}" for number in range(PRODUCTS - len(_REAL)))]
