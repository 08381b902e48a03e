"""Lookups in a real SQLite database: rows, parameters, what is kept and for how long, and failures."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy

from tidings.errors import SubscriptionError, TidingsError
from tidings.kinds.operators.functions.operator import OperatorError
from tidings.kinds.operators.library import lookup
from tidings.language.query import Call, Variable
from tidings.model.event import Event
from tidings.model.terms import Literal


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def url(tmp_path):
    path = f"sqlite:///{tmp_path / 'shop.db'}"
    with sqlalchemy.create_engine(path).begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE customer (id INTEGER, tier TEXT, credit REAL)"))
        connection.execute(sqlalchemy.text("CREATE TABLE stock (sku TEXT, shop TEXT, pieces INTEGER)"))
    change(path, "INSERT INTO customer VALUES (1, 'gold', 99.5), (2, 'new', NULL), (3, NULL, 1)")
    change(path, "INSERT INTO stock VALUES ('a', 'north', 5), ('a', 'south', 0), ('b', 'north', 7)")
    return path


def change(url, sql):
    with sqlalchemy.create_engine(url).begin() as connection:
        connection.execute(sqlalchemy.text(sql))


def tier(url, **options):
    sql = "SELECT tier FROM customer WHERE id = :customer"
    return lookup.operator(
        "tier", url, sql, attributes={"customer": "order.customer"}, outs=["tier"], **options
    )


def ordered(customer):
    return Event(attributes={"order": {"customer": customer}})


def test_one_out_is_a_value_a_row(url):
    assert tier(url).signature == "tier(tier: Out)"
    assert tier(url)(ordered(1)) == ["gold"]
    assert tier(url)(ordered(9)) == []
    assert tier(url)(ordered(3)) == []  # NULL binds nothing
    assert tier(url)(Event(attributes={"order": {}})) == []
    assert tier(url)(ordered([1, 2, 9])) == ["gold", "new"]


def test_several_outs_and_inputs(url):
    stock = lookup.operator(
        "stock",
        url,
        "SELECT shop, pieces FROM stock WHERE sku = :sku AND pieces >= :least ORDER BY shop",
        inputs=["sku", "least"],
        outs=["shop", "pieces"],
    )
    assert stock.signature == "stock(sku, least, shop: Out, pieces: Out)"
    assert stock(Event(), "a", 0) == [("north", 5), ("south", 0)]
    assert stock(Event(), "a", 1) == [("north", 5)]
    stock.check(Call("stock", (Literal("a"), Literal("1"), Variable("shop"), Variable("pieces"))))
    with pytest.raises(SubscriptionError, match="stock has 4 arguments, not 1"):
        stock.check(Call("stock", (Literal("a"),)))


def test_without_outs_it_is_true_or_false(url):
    known = lookup.operator("known", url, "select 1 from customer where id = :id", attributes={"id": "id_no"})
    assert known(Event(attributes={"id_no": 1})) is True
    assert known(Event(attributes={"id_no": 9})) is False
    assert known(Event()) is False


def test_the_envelope_is_part_of_the_event(url):
    change(url, "INSERT INTO stock VALUES ('x', 'http://shop.example/feed', 1)")
    pieces = lookup.operator(
        "pieces",
        url,
        "SELECT pieces FROM stock WHERE shop = :shop",
        attributes={"shop": "source"},
        outs=["n"],
    )
    assert pieces(Event(source="http://shop.example/feed")) == [1]


def test_answers_are_kept_for_a_while(url):
    clock = Clock()
    ask = tier(url, clock=clock, keep_seconds=60)
    assert ask(ordered(1)) == ["gold"]
    change(url, "UPDATE customer SET tier = 'silver' WHERE id = 1")
    clock.now += 59
    assert ask(ordered(1)) == ["gold"]
    clock.now += 1
    assert ask(ordered(1)) == ["silver"]


def test_no_rows_is_an_answer_too(url):
    clock = Clock()
    ask = tier(url, clock=clock)
    assert ask(ordered(9)) == []
    change(url, "INSERT INTO customer VALUES (9, 'new', 0)")
    assert ask(ordered(9)) == []
    clock.now += 60
    assert ask(ordered(9)) == ["new"]


def test_the_latest_answers_are_kept(url):
    ask = tier(url, keep_answers=2)
    for customer in (1, 2, 1, 9):  # 2 is the one not asked for the longest
        ask(ordered(customer))
    assert len(ask.function.answers) == 2
    change(url, "UPDATE customer SET tier = 'other'")
    assert ask(ordered(1)) == ["gold"]
    assert ask(ordered(2)) == ["other"]


def test_equal_values_of_other_types_are_other_questions(url):
    same = lookup.operator("same", url, "SELECT typeof(:x)", inputs=["x"], outs=["type"])
    assert [same(Event(), x) for x in (1, 1.0, "1")] == [["integer"], ["real"], ["text"]]


def test_failures_are_told_and_not_kept(url):
    ask = lookup.operator("ask", url, "SELECT n FROM later", outs=["n"])
    with pytest.raises(TidingsError, match="the database did not answer: no such table: later"):
        ask(Event())
    change(url, "CREATE TABLE later AS SELECT 5 AS n")
    assert ask(Event()) == [5]


def test_a_database_that_is_gone(tmp_path):
    with pytest.raises(TidingsError, match="the database did not answer: unable to open database file"):
        tier(f"sqlite:///{tmp_path}/no/such.db")(ordered(1))
    with pytest.raises(TidingsError, match="give a URL of SQLAlchemy"):
        tier("shop.db")(ordered(1))
    with pytest.raises(TidingsError, match="give a URL of SQLAlchemy"):
        tier("nosuch://host/db")(ordered(1))


@pytest.mark.parametrize(
    ("sql", "options", "told"),
    [
        ("DELETE FROM customer", {}, "a lookup is a SELECT"),
        ("", {}, "a lookup is a SELECT"),
        ("SELECT :x", {}, "the SELECT has :x; name it in inputs="),
        ("SELECT 1", {"inputs": ["x"]}, "the SELECT has no :x"),
        ("SELECT 1", {"attributes": {"y": "z"}}, "the SELECT has no :y"),
        ("SELECT :x", {"inputs": ["x"], "attributes": {"x": "z"}}, ":x is in inputs= and in attributes="),
    ],
)
def test_what_is_no_lookup_is_refused(url, sql, options, told):
    with pytest.raises(OperatorError, match=told):
        lookup.operator("ask", url, sql, **options)


def test_columns_are_counted(url):
    ask = lookup.operator("ask", url, "SELECT 1, 2", outs=["n"])
    with pytest.raises(TidingsError, match="the SELECT has 2 columns, and the outs are n"):
        ask(Event())


def test_an_object_is_no_value(url):
    with pytest.raises(TidingsError, match="the value for :customer is an object"):
        tier(url)(ordered({"id": 1}))


def test_an_engine_serves_many_threads(url):
    engine = sqlalchemy.create_engine(url)
    ask = tier(engine, keep_answers=1)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, [ordered(1 + number % 3) for number in range(300)]))
    assert found == [[["gold"], ["new"], []][number % 3] for number in range(300)]


def test_operators_go_to_other_processes_with_a_url(url):
    assert pickle.loads(pickle.dumps(tier(url)))(ordered(1)) == ["gold"]
    with pytest.raises(OperatorError, match="give the database's URL"):
        pickle.dumps(tier(sqlalchemy.create_engine(url)))
