"""Every rule of containment by example, and each trap that a simpler rule falls into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tidings.containment.contains import contains
from tidings.language.parser import parse
from tidings.language.query import And, KindCondition, Query
from tidings.model.taxonomy import Taxonomy

PREFIXES = {"ex": "http://example.org/"}


def make_taxonomy() -> Taxonomy:
    found = Taxonomy()
    for name, above in (("Sport", ()), ("Ball", ("Sport",)), ("Football", ("Ball",)), ("Meta", ())):
        found.add_class(f"http://example.org/{name}", [f"http://example.org/{cls}" for cls in above])
    found.add_instance("http://example.org/Football", ["http://example.org/Meta"])
    found.add_instance("http://example.org/cup", ["http://example.org/Football"])
    found.add_property("http://example.org/scorer", ["http://example.org/person"])
    found.add_property("http://example.org/kind", ["http://www.w3.org/1999/02/22-rdf-syntax-ns#type"])
    return found


TAXONOMY = make_taxonomy()


def covers(a: str, b: str) -> bool:
    return contains(parse(a, PREFIXES), parse(b, PREFIXES), TAXONOMY).holds


CONTAINED = [
    # numbers, dates and texts compare with their like
    ("x > 10", "x > 20"),
    ("x >= 10", "x > 10"),
    ("x != 5", "x < 5"),
    ("x != 5", "x BETWEEN 6 AND 7"),
    ("x = 5.0", "x = 5"),
    ("x BETWEEN 1 AND 9", "x IN (1, 9, 3)"),
    ("x IN (1, 2, 3, 'a')", "x IN (1, 'a')"),
    ("x IN ('a', 1)", "x = 1"),
    ("x > 2004-01-31", "x >= 2004-02-01T00:00:00Z"),
    ("x < 'c'", "x = 'abc'"),
    ("x = 'Haus'", "x = 'Haus'@de"),
    ("x != 'Haus'", "x != 'Haus'@de"),
    ("x NOT IN (1, 2)", "x NOT IN (1, 2, 3)"),
    ("x NOT IN (1, 'a')", "x NOT IN ('a', 1, 2)"),
    ("x NOT IN (1, 'a')", "x NOT IN (1)"),
    ("x NOT IN (1, 2)", "x > 2"),
    ("x NOT IN (1, <urn:a>)", "x > 2"),
    ("x NOT IN (1, 'a', '1.5')", "x > 2"),
    ("x NOT IN (5, 'b', 'a'@de)", "x = 'c'"),
    ("x != 5", "x NOT IN (5, 6)"),
    # tests of texts
    ("x STARTS WITH 'a'", "x STARTS WITH 'ab'"),
    ("x CONTAINS 'b'", "x STARTS WITH 'ab'"),
    ("x ENDS WITH 'b'", "x LIKE 'a%b'"),
    ("x LIKE 'a%'", "x STARTS WITH 'abc'"),
    ("x CONTAINS 'oa'", "x CONTAINS 'goal'"),
    ("x LIKE 'g_al%'", "x IN ('goal', 'gral!')"),
    ("x MATCHES '^go+al$'", "x = 'gooal'"),
    ("x CONTAINS 'example'", "x = <http://example.org/a>"),
    ("x SEARCH 'solar'", "x SEARCH 'Solar power'"),
    ("x SEARCH 'wind'", "x SEARCH '\"wind power\"'"),
    ("x SEARCH '\"wind power\"'", "x SEARCH '\"cheap wind power\" -nuclear'"),
    ("x SEARCH 'solar OR wind'", "x SEARCH 'wind'"),
    ("x SEARCH 'solar OR wind'", "x SEARCH '(wind OR solar) cheap'"),
    ("x SEARCH 'solar -\"wind power\"'", "x SEARCH 'solar -wind'"),
    ("x SEARCH 'solar -(wind power)'", "x SEARCH 'solar -wind'"),
    ("x SEARCH 'run' STEMMED 'english'", "x SEARCH 'running fast' STEMMED 'english'"),
    ("x SEARCH 'solar -wind'", "x = 'Solar, cheap'"),
    ("x IN CIDR '10.0.0.0/8'", "x IN CIDR '10.1.0.0/16'"),
    ("x IN CIDR '10.0.0.0/8'", "x = '10.1.2.3'"),
    ("x = 'ABC' IGNORE CASE", "x = 'aBc'"),
    ("x IN ('abc', 'd') IGNORE CASE", "x = 'ABC' IGNORE CASE"),
    ("x CONTAINS 'B' IGNORE CASE", "x STARTS WITH 'ab'"),
    ("x > 5 IGNORE CASE", "x > 6"),
    # what is there
    ("EXISTS x", "x = 5"),
    ("EXISTS x", "x + 1 > 5"),
    ("EXISTS x", "ANY e IN x SATISFIES (e > 5)"),
    ("MISSING x", "MISSING x AND y = 1"),
    ("NOT x = 1", "y = 1 AND NOT x = 1"),
    ("x + 1 > y", "x + 1 > y AND z = 1"),
    ("ANY e IN x SATISFIES (e > 5)", "ANY e IN x SATISFIES (e > 5) AND z = 1"),
    # AND, OR
    ("x > 10", "x > 20 AND y = 1"),
    ("x > 10 OR y = 1", "y = 1"),
    ("x > 10 OR y = 1", "x > 30 OR (y = 1 AND z = 2)"),
    ("(x > 10 OR y = 1) AND z > 0", "(x > 30 OR y = 1) AND z = 2"),
    ("x = 1 OR x = 2", "x = 2 OR x BETWEEN 5 AND 2"),
    ("x = 1", "SELECT * FROM s WHERE x = 1"),
    ("FROM s WHERE x > 1", "FROM s WHERE x > 2"),
    ("VIA net AT 'n'", "x = 1 VIA net AT 'n'"),
    ("x = 1", "x = 1 VIA net AT 'n'"),
    ("FROM a JOIN b USING (c) WHERE a.x > 1", "FROM a JOIN b USING (c) WHERE a.x > 1"),
    # patterns
    ("(?a, ex:p, ?b)", "(?x, ex:p, ?y), (?y, ex:q, ?z)"),
    ("(?a, ex:p, ?b), (?c, ex:p, ?d)", "(?x, ex:p, ?y)"),
    ("(?a, ex:p, ?b)", "(?x, ex:p, ?x)"),
    ("(?a, ?q, ex:b)", "(ex:a, ex:p, ex:b)"),
    ("(?a, ex:person, ?b)", "(?a, ex:scorer, ?b)"),
    ("(?a, ex:p, 5)", "(?a, ex:p, ?x) AND ?x = 5.0"),
    ("(?a, ex:p, ?x) AND ?x > 3", "(?a, ex:p, 5)"),
    ("(?a, ex:p, ex:b)", "(?a, ex:p, ?x) AND ?x = ex:b"),
    ("(?a, ex:person, ?b)", "(?a, ?p, ?b) AND ?p = ex:scorer"),
    ("(?a, ex:p, ?x) AND ?x BETWEEN 10 AND 30", "(?a, ex:p, ?x) AND ?x >= 10 AND ?x <= 30"),
    ("(?a, ex:p, ?x), (?b, ex:p, ?y) AND ?x < ?y", "(?i, ex:p, ?n), (?j, ex:p, ?m) AND ?n < ?m"),
    ("(?a, ex:p, ?x) AND NOT ?x = 5", "(?a, ex:p, ?y) AND NOT ?y = 5 AND z = 1"),
    ("(?a, ex:p, ?b) OR x = 1", "x = 1 OR (?a, ex:p, 5)"),
    ("x > 1", "(?a, ex:p, ?b) AND x > 2"),
    # is-a
    ("(?a, ex:p, ?x) AND ?x ISA ex:Sport", "(?a, ex:p, ?x) AND ?x ISA ex:Football"),
    ("(?a, ex:p, ?x) AND ?x ISA ex:Sport", "(?a, ex:p, ?x) AND ?x ISA = ex:Football"),
    ("(?a, ex:p, ?x) AND ?x ISA >= ex:Football", "(?a, ex:p, ?x) AND ?x ISA >= ex:Sport"),
    ("(?a, ex:p, ?x) AND ?x ISA ex:Sport", "(?a, ex:p, ?x), (?x, rdf:type, ex:Ball)"),
    ("(?a, ex:p, ?x) AND ?x ISA = ex:Ball", "(?a, ex:p, ?x), (?x, ex:kind, ex:Ball)"),
    ("(?a, ex:p, ?x) AND ?x ISA ex:Sport", "(?a, ex:p, ex:cup)"),
    ("(?a, ex:p, ?x) AND ?x ISA ex:Other", "(?a, ex:p, ex:b), (ex:b, rdf:type, ex:Other)"),
    ("(?a, ex:p, ?x) AND NOT ?x ISA ex:Ball", "(?b, ex:p, ?y) AND NOT ?y ISA ex:Ball AND z = 1"),
    # operators
    ("f(?n) AND ?n > 5", "f(?m) AND ?m > 7 AND x = 1"),
    ("f(?n) AND g(?n)", "f(?m) AND g(?m) AND x = 1"),
    ("(?a, ex:p, ?x) AND f(?x, 5)", "(?b, ex:p, ?y), (?b, ex:q, ?z) AND f(?y, 5)"),
    ("f(?n) OR g(?n)", "f(?n) OR g(?n)"),
    ("NOT f()", "NOT f() AND x = 1"),
]

NOT_CONTAINED = [
    ("x > 20", "x > 10"),
    ("x > 10", "x >= 10"),
    ("x > 10", "y > 20"),
    ("x = '5'", "x = 5"),  # the number 5 is no text
    ("x = 5", "x = '5'"),  # "5"@en is no number
    ("x != 5", "x = 'a'"),
    ("x = 'Haus'@de", "x = 'Haus'"),
    ("x NOT IN ('Haus'@de, 'Baum')", "x = 'Haus'"),
    ("x NOT IN (1, '7')", "x > 2"),  # the text 7 is a number above 2
    ("x NOT IN (1)", "x NOT IN (1, 'a')"),  # the text b is not comparable with 1
    ("x = 'abc'", "x = 'ABC' IGNORE CASE"),
    ("x < 'b' IGNORE CASE", "x < 'b'"),
    ("x STARTS WITH 'ab'", "x STARTS WITH 'a'"),
    ("x STARTS WITH 'a'", "x STARTS WITH 'a' IGNORE CASE"),
    ("x = 'a'", "x LIKE 'a'"),  # LIKE also looks at IRIs and typed literals
    ("x IN CIDR '10.1.0.0/16'", "x IN CIDR '10.0.0.0/8'"),
    ("EXISTS x", "EXISTS x.y"),
    ("EXISTS x", "NOT MISSING x"),
    ("NOT x = 1", "NOT x = 2"),
    ("NOT x = 1", "x = 2"),  # x may have both values
    ("MISSING x", "y = 1"),
    # an attribute has several values
    ("x BETWEEN 10 AND 30", "x >= 10 AND x <= 30"),
    ("ANY e IN x SATISFIES (e > 5 AND e < 9)", "x > 5 AND x < 9"),
    # ways
    ("x > 10 OR y = 1", "x > 30 OR z = 1"),
    ("FROM s WHERE x = 1", "x = 1"),
    ("FROM s WHERE x = 1", "FROM t WHERE x = 1"),
    ("x = 1 VIA net AT 'n'", "x = 1"),
    ("x = 1 VIA net AT 'n'", "x = 1 VIA net AT 'm'"),
    ("FROM a JOIN b USING (c) WHERE a.x > 1", "FROM a JOIN b USING (c) WHERE a.x > 2"),
    ("a.x > 1", "FROM a JOIN b USING (c) WHERE a.x > 1"),
    # what nothing can match is contained in nothing
    ("x > 1", "x BETWEEN 5 AND 2"),
    ("(?a, ex:p, ?b)", "(?a, ex:p, ?b) AND ?b > 5 AND ?b < 4"),
    ("(?a, ex:p, ?b)", "(?a, ex:p, ?b) AND ?b > 5 AND ?b = true"),
    ("(?a, ex:p, ?b)", "(?a, ex:p, ?b) AND ?a > 5"),  # no subject is a number
    # a literal matches by value, a variable by term: "5" and "5.0" are two terms
    ("(?a, ex:p, ?x), (?b, ex:q, ?x)", "(?a, ex:p, 5), (?b, ex:q, 5)"),
    ("(?a, ex:p, ?x), (?a, ex:q, ?x)", "(?a, ex:p, ?x), (?a, ex:q, ?y)"),
    ("(?a, ex:p, ?x), (?b, ex:q, ?x)", "(?a, ex:p, ?x), (?b, ex:q, ?y) AND ?x = ?y"),
    ("(?a, ex:p, ?a)", "(?a, ex:p, ?b)"),
    ("(?a, ex:scorer, ?b)", "(?a, ex:person, ?b)"),
    ("(?a, ex:p, 5)", "(?a, ex:p, '5')"),
    # members of containers: (?c, rdf:_1, ?m) may hold by subPropertyOf alone
    ("(?a, ex:p, ?m) AND ?m > 3", "(?a, ex:p, ?c), (?c, rdf:_1, ?m) AND ?m > 3"),
    ("(?c, rdfs:member, ?m)", "(?c, rdf:_1, ?m)"),
    # is-a
    ("(?a, ex:p, ?x) AND ?x ISA ex:Football", "(?a, ex:p, ?x) AND ?x ISA ex:Sport"),
    ("(?a, ex:p, ?x) AND NOT ?x ISA ex:Football", "(?a, ex:p, ?x) AND NOT ?x ISA ex:Sport"),
    # Football is an instance of Meta, what is below Football is not
    ("(?a, ex:p, ?x) AND ?x ISA ex:Meta", "(?a, ex:p, ?x) AND ?x ISA ex:Football"),
    ("(?a, ex:p, ?x) AND ?x ISA ex:Ball", "(?a, ex:p, ?x) AND ?x = 'Ball2'"),
    # operators
    ("f(?n) AND ?n > 5", "f(?m) AND g(?m) AND ?m > 7"),  # ?m may be what g gave
    ("f(?n) AND g(?n)", "g(?m) AND f(?m)"),  # the first gives the value, be it a number or a text
    ("f(?n) AND g(?m)", "f(?n) AND g(?n)"),
    ("f(?n) AND ?n = 5", "(?a, ex:p, ?n) AND f(?n) AND ?n = 5"),  # there a term, here what f gave
    ("f(5)", "f(?n) AND ?n = 5"),
    ("NOT (f(?p) AND ?p > 5)", "g(?p) AND NOT (f(?p) AND ?p > 5)"),
    ("(f(?n) OR g(?m)) AND ?n > 5", "(f(?n) OR g(?m)) AND h(?n) AND ?n > 5"),
]


@pytest.mark.parametrize(("a", "b"), CONTAINED)
def test_contained(a, b):
    assert covers(a, b)


@pytest.mark.parametrize(("a", "b"), NOT_CONTAINED)
def test_not_contained(a, b):
    assert not covers(a, b)


@dataclass(frozen=True)
class Every(KindCondition):
    """A condition of a kind of one's own."""

    number: int

    def holds(self, attributes: Mapping[str, Any]) -> bool:
        return True


def test_conditions_of_other_kinds_have_to_be_the_same():
    other = parse("x = 1").where
    narrow = Query(And((Every(3), other)))
    assert contains(Query(Every(3)), narrow, TAXONOMY)
    assert not contains(Query(Every(4)), narrow, TAXONOMY)
    assert not contains(Query(Every(3)), Query(other), TAXONOMY)


def test_the_mapping_is_the_proof():
    a, b = "(?a, ex:p, ?x), (?a, ?q, ex:b) AND ?x > 3", "(?i, ex:p, 5), (?i, ex:q, ex:b)"
    found = contains(parse(a, PREFIXES), parse(b, PREFIXES), TAXONOMY)
    assert found.mapping == ({"a": "?i", "x": "5", "q": "<http://example.org/q>"},)


def test_a_search_that_takes_too_many_steps_is_no():
    clique = [f"(?v{i}, ex:p, ?v{j})" for i in range(7) for j in range(7) if i != j]
    ring = [f"(?v{i}, ex:p, ?v{(i + k) % 40})" for i in range(40) for k in range(1, 6)]
    assert not covers(", ".join(clique), ", ".join(ring))
