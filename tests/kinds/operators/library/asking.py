"""A subscription's text asked of one event, as it is defined: every call is made."""

from collections.abc import Mapping

from tidings import conditions
from tidings.event import Event
from tidings.language.parser import parse
from tidings.operators import naive
from tidings.operators.calling import Caller, Request
from tidings.operators.catalogue import Catalogue

CALLER = Caller()


def ask(text: str, catalogue: Catalogue, event: Event) -> naive.Verdict:
    condition = parse(text).where
    catalogue.check_query(condition)

    def answer(call, inputs):
        operator = catalogue.find(call.name)
        (answered,) = CALLER.run([Request(operator, event, operator.read_inputs(inputs))])
        return answered.outcome

    def holds(leaf, binding: Mapping):
        return conditions.holds(leaf, event.attributes, binding)

    return naive.verdict(condition, {}, catalogue.find, answer, holds)
