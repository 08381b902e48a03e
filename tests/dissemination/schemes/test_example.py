"""Example 1 of Select-joins: a new quote of GOOG, and what each scheme makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from tidings.dissemination.schemes import DEFAULT, SCHEMES, Change, Message, Server, accepts
from tidings.dissemination.schemes.attributes import relax
from tidings.kinds.joins.schema.shape import read
from tidings.kinds.joins.schema.table import Row, Table
from tidings.language.parser import parse

STOCKS = Table("stocks", {"symbol": "text", "per": "number"})
REVIEWS = Table("reviews", {"symbol": "text", "rating": "number"})
TABLES = {"stocks": STOCKS, "reviews": REVIEWS}
RATINGS = [5.5, 6.0, *np.round(np.linspace(7.1, 9.5, 18), 2).tolist()]
ROWS: dict[str, list[Row]] = {
    "stocks": [("GOOG", 51.7), ("YHOO", 51.2), ("AMZN", 92.8)],
    "reviews": [*(("GOOG", rating) for rating in RATINGS), ("YHOO", 7.5), ("AMZN", 7.2), ("AMZN", 7.8)],
}
X1 = "stocks.per BETWEEN 45 AND 70 AND reviews.rating BETWEEN 6 AND 10"
X2 = "stocks.per BETWEEN 50 AND 80 AND reviews.rating BETWEEN 7 AND 10"
X3 = "stocks.per BETWEEN 80 AND 100 AND reviews.rating BETWEEN 6 AND 10"


@pytest.fixture
def server() -> Server:
    texts = [f"SELECT * FROM stocks JOIN reviews USING (symbol) WHERE {one}" for one in (X1, X2, X3)]
    shape = read(parse(texts[0]), TABLES)[0]
    ranges = [read(parse(text), TABLES)[1] for text in texts]
    relaxed = relax(shape, ranges, TABLES, ROWS, np.random.default_rng(0))
    found = Server(TABLES.values())
    found.subscribe(relaxed.signature, relaxed.ranges)
    for table, rows in ROWS.items():
        found.load(table, rows)
    return found


def told(server: Server, messages: list[Message], number: int) -> list[tuple[str, list[Row]]]:
    person = server.subscription(number)
    return [
        (message.sign, [image.row for image in message.rows])
        for message in messages
        if accepts(message, person)
    ]


S4 = ("GOOG", 52.1)


def test_joined_rows_repeat_the_new_one(server: Server) -> None:
    messages = SCHEMES["Enum-J"](server).messages(Change("stocks", new=S4))
    assert told(server, messages, 0) == [("+", [S4, ("GOOG", rating)]) for rating in RATINGS if rating >= 6]
    assert len(told(server, messages, 1)) == 18
    assert told(server, messages, 2) == []


@pytest.mark.parametrize("name", ["Enum-SJ", "Ref-SJ-Sub", "Ref-SJ-Tup", "Ref-SJ-Clu", "Ref-SJ-Clu+"])
def test_semijoins_send_the_new_row_alone(server: Server, name: str) -> None:
    """The reviews are there already, because of the quote before."""
    messages = SCHEMES[name](server).messages(Change("stocks", new=S4))
    assert [told(server, messages, number) for number in range(3)] == [[("+", [S4])], [("+", [S4])], []]
    assert len(messages) == 1


def test_reviews_leave_and_come_back(server: Server) -> None:
    """AMZN's quote moves from X3 to X1 and X2: its two reviews go with it."""
    scheme = DEFAULT(server)
    messages = scheme.messages(Change("stocks", new=("AMZN", 55.0), old=("AMZN", 92.8)))
    reviews = [[("AMZN", 7.2)], [("AMZN", 7.8)]]
    gained = [("+", [("AMZN", 55.0)]), *(("+", rows) for rows in reviews)]
    lost = [("-", [("AMZN", 92.8)]), *(("-", rows) for rows in reviews)]
    assert [sorted(told(server, messages, number)) for number in range(3)] == [
        sorted(gained),
        sorted(gained),
        sorted(lost),
    ]
    # Nearer together, nothing but the quote itself moves.
    messages = scheme.messages(Change("stocks", new=("AMZN", 56.0), old=("AMZN", 55.0)))
    assert told(server, messages, 0) == [("+", [("AMZN", 56.0)]), ("-", [("AMZN", 55.0)])]


def test_a_stock_without_reviews_is_sent_to_nobody(server: Server) -> None:
    assert DEFAULT(server).messages(Change("stocks", new=("NEWS", 60.0))) == []
    (relaxed,) = SCHEMES["Rel-Sel"](server).messages(Change("stocks", new=("NEWS", 60.0)))
    assert [bool(told(server, [relaxed], number)) for number in range(3)] == [True, True, False]
