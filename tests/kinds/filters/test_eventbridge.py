"""EventBridge's patterns mean what EventBridge says, and what it would refuse is refused with its place."""

import json
import warnings
from decimal import Decimal
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tidings.engine.engine import Engine
from tidings.errors import SubscriptionError
from tidings.kinds.filters.eventbridge import read_pattern, read_rules
from tidings.kinds.filters.naive import matches
from tidings.language.printer import to_text
from tidings.language.query import Query
from tidings.model.event import Event

EVENT = {
    "version": "0",
    "id": "6a7e8feb",
    "detail-type": "Instance State-change Notification",
    "source": "shop.compute",
    "account": "111122223333",
    "time": "2017-10-02T18:43:48Z",
    "resources": ["arn:one", "arn:two"],
    "detail": {
        "state": "terminated",
        "c-count": 5,
        "x-limit": 301.8,
        "source-ip": "10.0.0.33",
        "eventVersion": "",
        "responseElements": None,
        "path": "dir/lib/100%_sure\\file*.PNG",
        "zip": "8004",
        "sizes": [3, 8],
        "open": False,
        "items": [{"sku": "a", "price": 9}, {"sku": "b", "price": 20, "gift": True}],
        "owner": {"name": {"first": "Ada"}, "age": 36},
    },
}

HOLD = [
    {"source": ["shop.compute"]},
    {"source": ["nothing", "shop.compute"], "detail": {"state": ["running", "terminated"]}},
    {"resources": ["arn:two", "arn:nine"]},
    {"account": ["111122223333"]},
    {"detail": {"c-count": [5]}},
    {"detail": {"c-count": [5.0]}},
    {"detail": {"c-count": [{"numeric": [">", 0, "<=", 5]}], "x-limit": [{"numeric": ["=", 3.018e2]}]}},
    {"detail": {"c-count": [{"numeric": [">=", 5, "<", 6]}]}},
    {"detail": {"c-count": [{"numeric": ["<", 10]}]}},
    {"detail": {"sizes": [{"numeric": [">", 7]}]}},
    {"detail": {"open": [False]}},
    {"detail": {"eventVersion": [""]}},
    {"detail": {"responseElements": [None]}},
    {"detail": {"responseElements": [{"exists": True}]}},
    {"detail": {"responseElements": [{"anything-but": "x"}]}},
    {"detail": {"responseElements": [{"anything-but": {"prefix": "x"}}]}},
    {"time": [{"prefix": "2017-10-02"}]},
    {"source": [{"prefix": {"equals-ignore-case": "SHOP."}}]},
    {"source": [{"prefix": ""}]},
    {"detail": {"path": [{"suffix": {"equals-ignore-case": ".png"}}]}},
    {"detail": {"path": [{"suffix": ".PNG"}]}},
    {"detail": {"path": [{"wildcard": "dir/*/100%_*"}]}},
    {"detail": {"path": [{"wildcard": r"*\\file\*.PNG"}]}},
    {"detail": {"state": [{"equals-ignore-case": "TERMINATED"}]}},
    {"detail": {"state": [{"anything-but": "initializing"}]}},
    {"detail": {"state": [{"anything-but": ["stopped", "overloaded"]}]}},
    {"detail": {"state": [{"anything-but": 5}]}},
    {"detail": {"c-count": [{"anything-but": "5"}]}},
    {"detail": {"zip": [{"anything-but": 8004}]}},
    {"detail": {"open": [{"anything-but": ["true", "false"]}]}},
    {"detail": {"sizes": [{"anything-but": 3}]}},
    {"resources": [{"anything-but": "arn:one"}]},
    {"resources": [{"anything-but": {"suffix": "one"}}]},
    {"detail": {"state": [{"anything-but": {"prefix": ["init", "x"]}}]}},
    {"detail": {"state": [{"anything-but": {"equals-ignore-case": ["RUNNING", "STOPPED"]}}]}},
    {"detail": {"state": [{"anything-but": {"wildcard": "run*"}}]}},
    {"detail": {"source-ip": [{"cidr": "10.0.0.0/24"}]}},
    {"detail": {"source-ip": [{"cidr": "10.0.0.7/24"}]}},
    {"detail": {"missing": [{"exists": False}]}},
    {"detail": {"owner": [{"exists": False}]}},
    {"detail": {"owner": {"name": {"first": ["Ada"]}, "age": [36]}}},
    {"detail": {"owner.age": [36]}},
    {"detail": {"items": {"sku": ["a"], "price": [9]}}},
    {"detail": {"items": {"sku": ["a"], "gift": [{"exists": False}]}}},
    {"source": ["nothing"], "$or": [{"source": ["x"]}, {"detail": {"state": ["terminated"]}}]}
    | {"source": ["shop.compute"]}
    | {"$or": [{"account": ["9"]}, {"detail": {"state": ["terminated"]}}]},
    {"detail": {"$or": [{"c-count": [{"numeric": [">", 9]}]}, {"x-limit": [{"numeric": ["<", 302]}]}]}},
    {"detail": {"state": [{"prefix": "x"}, {"suffix": "ed"}, 7]}},
]
FAIL = [
    {"source": ["Shop.Compute"]},
    {"source": ["shop.compute"], "detail": {"state": ["running"]}},
    {"detail": {"c-count": ["5"]}},
    {"detail": {"zip": [8004]}},
    {"detail": {"zip": [{"numeric": ["=", 8004]}]}},
    {"detail": {"zip": [{"numeric": [">", 1, "<", 9000]}]}},
    {"detail": {"open": ["false"]}},
    {"detail": {"open": [0]}},
    {"detail": {"c-count": [{"numeric": [">", 5, "<", 9]}]}},
    {"detail": {"sizes": [{"numeric": [">", 3, "<", 8]}]}},
    {"detail": {"eventVersion": [None]}},
    {"detail": {"responseElements": [""]}},
    {"detail": {"missing": [None]}},
    {"detail": {"missing": [{"anything-but": "x"}]}},
    {"detail": {"missing": [{"anything-but": {"prefix": "x"}}]}},
    {"detail": {"missing": [{"exists": True}]}},
    {"detail": {"responseElements": [{"exists": False}]}},
    {"detail": {"owner": [{"exists": True}]}},
    {"detail": {"owner": [{"anything-but": "x"}]}},
    {"detail": {"c-count": [{"prefix": "5"}]}},
    {"detail": {"state": [{"anything-but": ["stopped", "terminated"]}]}},
    {"detail": {"c-count": [{"anything-but": [5, 6]}]}},
    {"detail": {"zip": [{"anything-but": "8004"}]}},
    {"resources": [{"anything-but": ["arn:one", "arn:two"]}]},
    {"resources": [{"anything-but": {"prefix": "arn"}}]},
    {"detail": {"state": [{"anything-but": {"equals-ignore-case": "TERMINATED"}}]}},
    {"detail": {"path": [{"wildcard": "dir/*/100_*"}]}},
    {"detail": {"path": [{"wildcard": "lib*"}]}},
    {"detail": {"source-ip": [{"cidr": "10.0.1.0/24"}]}},
    {"detail": {"items": {"sku": ["a"], "price": [20]}}},
    {"detail": {"items": {"sku": ["b"], "gift": [{"exists": False}]}}},
    {"detail": {"owner": {"name": {"first": ["Ada"]}, "age": [37]}}},
    {"source": ["shop.compute"], "$or": [{"account": ["9"]}, {"detail": {"state": ["running"]}}]},
]


@pytest.mark.parametrize("pattern", HOLD, ids=json.dumps)
def test_patterns_that_hold(pattern):
    assert matches(read_pattern(pattern), EVENT)


@pytest.mark.parametrize("pattern", FAIL, ids=json.dumps)
def test_patterns_that_do_not(pattern):
    assert not matches(read_pattern(pattern), EVENT)


REFUSED = [
    ([], "$: a pattern is an object, not []"),
    ({}, "$: an empty object asks for nothing"),
    ({"detail": {}}, "$.detail: an empty object"),
    ({"source": []}, "$.source: an empty list matches nothing"),
    ({"source": "x"}, "$.source: tests stand in a list; write ['x']"),
    ({"a": {"b c": None}}, "$.a['b c']: tests stand in a list; write [null]"),
    ({"": ["x"]}, "$['']: a field needs a name"),
    ({"a": [["x"]]}, "$.a[0]: ['x'] is no test"),
    ({"a": ["x", {"like": "y"}]}, "$.a[1].like: 'like' is no operator; there are prefix,"),
    ({"a": [{}]}, "$.a[0]: a test is an object with one operator"),
    ({"a": [{"prefix": "x", "suffix": "y"}]}, "$.a[0]: a test is an object with one operator"),
    ({"a": [{"prefix": 5}]}, "$.a[0].prefix: prefix takes a text, not 5"),
    ({"a": [{"prefix": {"wildcard": "x"}}]}, "$.a[0].prefix: prefix takes a text or equals-ignore-case"),
    ({"a": [{"equals-ignore-case": ["x"]}]}, "$.a[0].equals-ignore-case: equals-ignore-case takes a text"),
    ({"a": [{"wildcard": "x**y"}]}, "$.a[0].wildcard: two * follow each other"),
    ({"a": [{"wildcard": r"x\y"}]}, "$.a[0].wildcard: a backslash stands before *"),
    ({"a": [{"exists": "true"}]}, "$.a[0].exists: exists takes true or false, not 'true'"),
    ({"a": [{"cidr": "10.0.0.0"}]}, "$.a[0].cidr: '10.0.0.0' is no block of addresses"),
    ({"a": [{"cidr": "10.0.0.0/33"}]}, "$.a[0].cidr: '10.0.0.0/33' is no block"),
    ({"a": [{"numeric": [">"]}]}, "$.a[0].numeric: numeric takes a list such as"),
    ({"a": [{"numeric": ["!=", 5]}]}, "$.a[0].numeric[0]: '!=' compares no numbers"),
    ({"a": [{"numeric": [">", "5"]}]}, "$.a[0].numeric[1]: '5' is no number"),
    ({"a": [{"numeric": [">", True]}]}, "$.a[0].numeric[1]: true is no number"),
    ({"a": [{"numeric": ["<", 5, ">", 1]}]}, "$.a[0].numeric: a range has its lower bound first"),
    ({"a": [{"numeric": [">", 5, "<", 1]}]}, "$.a[0].numeric: no number lies between 5 and 1"),
    ({"a": [{"numeric": [">", 5, "<=", 5]}]}, "$.a[0].numeric: no number lies between 5 and 5"),
    (
        {"a": [{"numeric": [">", 0, "<", Decimal("1e999")]}]},
        "$.a[0].numeric: a range has bounds of at most 300 digits",
    ),
    ({"a": [float("nan")]}, "$.a[0]: nan is no number that can be compared"),
    ({"a": [10**500]}, "write one of at most 400 digits"),
    ({"a": ["\ud800"]}, "$.a[0]: '\\ud800' has half a surrogate pair"),
    ({"a": [{"anything-but": []}]}, "$.a[0].anything-but: anything-but takes a text, a number"),
    ({"a": [{"anything-but": ["x", 5]}]}, "$.a[0].anything-but: anything-but takes a text, a number"),
    ({"a": [{"anything-but": None}]}, "$.a[0].anything-but: anything-but takes a text, a number"),
    (
        {"a": [{"anything-but": {"numeric": ["=", 5]}}]},
        "$.a[0].anything-but: anything-but takes values, prefix,",
    ),
    ({"a": [{"anything-but": {"prefix": ""}}]}, "$.a[0].anything-but.prefix: every text has an empty prefix"),
    (
        {"a": [{"anything-but": {"suffix": [5]}}]},
        "$.a[0].anything-but.suffix: anything-but suffix takes a text",
    ),
    ({"$or": [{"a": ["x"]}]}, "$['$or']: $or takes a list of at least two objects"),
    ({"$or": {"a": ["x"]}}, "$['$or']: $or takes a list of at least two objects"),
    ({"$or": [{"a": ["x"]}, ["y"]]}, "$['$or'][1]: a pattern is an object, not ['y']"),
    ({"$or": [{"numeric": ["x"]}, {"a": ["y"]}]}, "$['$or'][0]: 'numeric' is an operator"),
    ({"a": {"b": ["x"]}, "a.b": ["y"]}, "$['a.b']: the field a.b is tested twice, also at $.a.b"),
    ({"a": ["x"], "$or": [{"a": ["y"]}, {"b": ["z"]}]}, "the field a is tested twice"),
]


@pytest.mark.parametrize(("pattern", "sentence"), REFUSED, ids=lambda case: repr(case)[:60])
def test_what_is_invalid_is_refused_with_its_place(pattern, sentence):
    with pytest.raises(SubscriptionError) as refused:
        read_pattern(pattern)
    assert sentence in str(refused.value)


def test_too_much_is_refused():
    deep = {"a": ["x"]}
    for _ in range(120):
        deep = {"a": deep}
    with pytest.raises(SubscriptionError, match="nests deeper than 100 levels"):
        read_pattern(deep)
    ors = {f"f{n}": {"$or": [{"a": ["x"]}, {"b": ["y"]}]} for n in range(10)}
    with pytest.raises(SubscriptionError, match="more than 1,000 combinations"):
        read_pattern(ors)


def test_what_differs_from_eventbridge():
    """Of several values, a null beside others and a number beside texts are not seen; an empty list counts as null."""
    assert matches(read_pattern({"a": [None]}), {"a": []})
    assert matches(read_pattern({"a": [{"exists": True}]}), {"a": []})
    assert not matches(read_pattern({"a": [None]}), {"a": [None, "x"]})
    assert not matches(read_pattern({"b": {"a": [None]}}), {"b": [{"a": None}, {"a": "x"}]})
    assert not matches(read_pattern({"a": [5]}), {"a": [5, "x"]})
    open_range = read_pattern({"a": [{"numeric": [">", 5, "<", 6]}]})
    assert matches(open_range, {"a": 5.00000001})
    assert not matches(open_range, {"a": 5.0000000001})
    assert matches(read_pattern({"a": [{"numeric": [">", 5]}]}), {"a": 5.0000000001})


# -- the definition, once more and apart: fields with the places in lists that they come from


def fields(value, path="", place=()):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from fields(inner, f"{path}.{key}" if path else key, place)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            if isinstance(inner, dict | list):
                yield from fields(inner, path, (*place, (id(value), position)))
            else:
                yield path, inner, place
    else:
        yield path, value, place


def consistent(places):
    lists = {}
    return all(lists.setdefault(one, position) == position for place in places for one, position in place)


def branches(pattern, path=""):
    found = [{}]
    for key, value in pattern.items():
        if key == "$or":
            parts = [branch for option in value for branch in branches(option, path)]
        elif isinstance(value, dict):
            parts = branches(value, f"{path}{key}.")
        else:
            parts = [{f"{path}{key}": value}]
        found = [{**one, **other} for one, other in product(found, parts)]
    return found


def same_kind(a, b):
    return isinstance(a, str) == isinstance(b, str) and isinstance(a, bool) == isinstance(b, bool)


def meets(value, test):
    if not isinstance(test, dict):
        return value == test and same_kind(value, test) and (value is None) == (test is None)
    ((op, wanted),) = test.items()
    is_text = isinstance(value, str)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if op == "exists":
        return wanted
    if op == "anything-but":
        if isinstance(wanted, dict):
            ((inner, several),) = wanted.items()
            return not any(meets(value, {inner: one}) for one in several)
        return not any(meets(value, one) for one in wanted)
    if op == "numeric":
        compare = {"=": "__eq__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}
        pairs = zip(wanted[::2], wanted[1::2], strict=True)
        return is_number and all(getattr(float(value), compare[sign])(float(bound)) for sign, bound in pairs)
    if not is_text:
        return False
    if op == "equals-ignore-case":
        return value.lower() == wanted.lower()
    if op == "wildcard":
        assert wanted.count("*") == 1
        start, end = wanted.split("*")
        return value.startswith(start) and value.endswith(end) and len(value) >= len(start + end)
    if isinstance(wanted, dict):
        value, wanted = value.lower(), wanted["equals-ignore-case"].lower()
    return value.startswith(wanted) if op == "prefix" else value.endswith(wanted)


def expected(pattern, event):
    """Some choice of a field for each path, from consistent places, beside which what shall be absent is."""
    there = list(fields(event))
    for branch in branches(pattern):
        choices = []
        for path, tests in branch.items():
            found = [
                place for at, value, place in there if at == path and any(meets(value, t) for t in tests)
            ]
            absent = [None] if {"exists": False} in tests else []
            choices.append([(path, place) for place in found + absent])
        for choice in product(*choices):
            places = [place for _, place in choice if place is not None]
            lacking = {path for path, place in choice if place is None}
            if consistent(places) and not any(
                at in lacking and consistent([*places, p]) for at, _, p in there
            ):
                return True
    return False


TEXTS = st.sampled_from(["", "5", "05", "a", "ab", "AB", "b", "true"])
NUMBERS = st.sampled_from([5, 5.0, -1, 0, 7])
KEYS = st.sampled_from(["a", "b", "detail"])
SCALARS = TEXTS | NUMBERS | st.booleans()
TEXT_TESTS = st.one_of(
    st.builds(
        lambda op, text: {op: text}, st.sampled_from(["prefix", "suffix", "equals-ignore-case"]), TEXTS
    ),
    st.builds(lambda op, t: {op: {"equals-ignore-case": t}}, st.sampled_from(["prefix", "suffix"]), TEXTS),
    st.builds(lambda a, b: {"wildcard": f"{a}*{b}"}, TEXTS, TEXTS),
)
BUT_OPERATORS = st.sampled_from(["prefix", "suffix", "equals-ignore-case"])
TESTS = st.one_of(
    SCALARS,
    st.none(),
    TEXT_TESTS,
    st.builds(lambda yes: {"exists": yes}, st.booleans()),
    st.builds(lambda sign, bound: {"numeric": [sign, bound]}, st.sampled_from(["=", "<", ">="]), NUMBERS),
    st.sampled_from(
        [{"numeric": [">", -1, "<=", 5]}, {"numeric": [">=", 0, "<", 7]}, {"numeric": [">", 0, "<", 5]}]
    ),
    st.builds(lambda options: {"anything-but": options}, st.lists(TEXTS, min_size=1, max_size=3)),
    st.builds(lambda options: {"anything-but": options}, st.lists(NUMBERS, min_size=1, max_size=3)),
    st.builds(
        lambda op, texts: {"anything-but": {op: texts}},
        BUT_OPERATORS,
        st.lists(TEXTS.filter(bool), min_size=1, max_size=2),
    ),
)
LEAVES = st.lists(TESTS, min_size=1, max_size=3)
PATTERNS = st.recursive(
    st.dictionaries(KEYS, LEAVES, min_size=1, max_size=3),
    lambda inner: st.dictionaries(KEYS, LEAVES | inner, min_size=1, max_size=3),
    max_leaves=5,
)
# An event's detail is an object. Where there are lists, they are not empty, there is no null, and texts and numbers are
# not mixed.


def events(scalars, lists):
    def wider(inner):
        objects = st.dictionaries(KEYS, inner, max_size=3)
        return objects | st.lists(inner, min_size=1, max_size=3) if lists else objects

    values = st.recursive(scalars, wider, max_leaves=8)
    detail = st.dictionaries(KEYS, values, max_size=3)
    return st.fixed_dictionaries({}, optional={"a": values, "b": values, "detail": detail})


EVENTS = st.one_of(
    events(SCALARS | st.none(), lists=False),
    events(TEXTS | st.booleans(), lists=True),
    events(NUMBERS | st.booleans(), lists=True),
)


@examples(200)
@given(PATTERNS, EVENTS)
def test_agrees_with_the_definition(pattern, event):
    assert matches(read_pattern(pattern), event) == expected(pattern, event)


@examples(60)
@given(PATTERNS, PATTERNS, EVENTS)
def test_or_agrees_with_the_definition(one, other, event):
    pattern = {"c": [{"exists": False}], "$or": [one, other]}
    assert matches(read_pattern(pattern), event) == expected(pattern, event)


@examples(20)
@given(st.lists(PATTERNS, min_size=1, max_size=8), st.lists(EVENTS, min_size=1, max_size=8))
def test_the_engine_agrees_with_the_definition(patterns, events):
    """Through the text of the language and the index, as the command line takes it."""
    engine = Engine()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # many of these are broad
        for number, pattern in enumerate(patterns):
            engine.subscribe(str(number), to_text(Query(read_pattern(pattern))))
    published = [Event(id=str(number), attributes=event) for number, event in enumerate(events)]
    found = engine.publish_many(published).select(["subscription", "event"]).to_pylist()
    assert {(int(row["subscription"]), int(row["event"])) for row in found} == {
        (p, e)
        for (p, pattern), (e, event) in product(enumerate(patterns), enumerate(events))
        if expected(pattern, event)
    }


# -- files of rules

SIMPLE = {"source": ["x"]}
FORMS = {
    "names": json.dumps({"one": SIMPLE, "two": json.dumps(SIMPLE)}, indent=2),
    "list": json.dumps(
        [{"Name": "one", "EventPattern": SIMPLE}, {"id": "two", "EventPattern": json.dumps(SIMPLE)}]
    ),
    "list-rules": json.dumps(
        {
            "Rules": [
                {"Name": name, "EventPattern": json.dumps(SIMPLE), "State": "ENABLED"}
                for name in ("one", "two")
            ]
        }
    ),
    "lines": "\n".join(json.dumps({"Name": name, "EventPattern": SIMPLE}) for name in ("one", "two")) + "\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_file(form):
    assert list(read_rules(FORMS[form].encode())) == [
        ("one", read_pattern(SIMPLE)),
        ("two", read_pattern(SIMPLE)),
    ]


def test_a_file_with_one_pattern():
    for pattern in ({"source": ["x"]}, {"detail": {"state": ["x"]}}, {"mine": {"a": ["x"]}, "b": ["y"]}):
        assert list(read_rules(json.dumps(pattern))) == [("pattern", read_pattern(pattern))]
    assert [name for name, _ in read_rules(json.dumps({"Name": "one", "EventPattern": SIMPLE}))] == ["one"]


def test_a_rule_that_is_refused_costs_no_other():
    rules = [
        {"Name": "bad", "EventPattern": {"source": "x"}},
        {"Name": "off", "EventPattern": SIMPLE, "State": "DISABLED"},
        {"Name": "clock", "ScheduleExpression": "rate(5 minutes)"},
        {"Name": "text", "EventPattern": "{"},
        {"Name": "none"},
        {"EventPattern": SIMPLE},
        5,
        {"Name": "good", "EventPattern": SIMPLE},
    ]
    found = dict(read_rules(json.dumps(rules)))
    sentences = {
        name: str(found.pop(name)) for name in ("bad", "off", "clock", "text", "none", "rule 6", "rule 7")
    }
    assert found == {"good": read_pattern(SIMPLE)}
    for name, sentence in {
        "bad": "$.source: tests stand in a list",
        "off": "the rule is DISABLED",
        "clock": "runs by a schedule",
        "text": "not readable as JSON",
        "none": "has no EventPattern",
        "rule 6": "has no name",
        "rule 7": "5 is no rule",
    }.items():
        assert sentence in sentences[name]


def test_lines_are_read_one_by_one():
    good = json.dumps({"Name": "good", "EventPattern": SIMPLE})
    (first, _), (name, error), (last, _) = read_rules(f"{good}\n{{oops\n\n{good}")
    assert (first, name, last) == ("good", "rule 2", "good")
    assert "not readable as JSON" in str(error)


def test_a_key_that_is_there_twice_is_refused():
    ((_, error),) = read_rules('{"Rules": [{"Name": "r", "EventPattern": {"a": ["x"], "a": ["y"]}}]}')
    assert "the field 'a' is there twice" in str(error)
    ((_, error),) = read_rules('{"a": [{"prefix": "x", "prefix": "y"}]}')
    assert "a test is an object with one operator" in str(error)


def test_numbers_are_read_exactly():
    ((_, condition),) = read_rules('{"a": [0.1000000000000000000001]}')
    assert not matches(condition, {"a": 0.1})


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "not readable as JSON"),
        (b"{\n  oops", "line 2 column 3"),
        (b"[" * 100_000, "nests too deep"),
        (b"5", "5 holds no rules; rules are"),
        (b"{}", "{} holds no rules"),
        (b'{"one": {"a": ["x"]}, "one": {"a": ["y"]}}', "the rule 'one' is there twice"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_a_file_without_rules_is_an_error(data, sentence):
    with pytest.raises(SubscriptionError) as refused:
        list(read_rules(data))
    assert sentence in str(refused.value)
