"""A subscription's text asked of one event, as it is defined: every call is made."""

from collections.abc import Mapping

from tidings.kinds.operators import naive
from tidings.kinds.operators.functions.caller import Caller, Request
from tidings.kinds.operators.functions.catalogue import Catalogue
from tidings.language import conditions
from tidings.language.parser import parse
from tidings.model.event import Event

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
