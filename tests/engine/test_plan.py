"""What no plan is made of."""

from __future__ import annotations

import pytest

from tidings.engine.plan import Planner, make_plan
from tidings.errors import SubscriptionError
from tidings.kinds.filters.kind import Filters
from tidings.language.parser import parse

JOIN = "FROM stocks JOIN reviews USING (symbol) WHERE stocks.per > 5"


def test_a_join_needs_tables() -> None:
    with pytest.raises(SubscriptionError, match="joins 'stocks' with 'reviews', which are no tables here"):
        make_plan(parse(JOIN), [Filters()])
    planner = Planner(None, [Filters()])
    with pytest.raises(SubscriptionError, match="Engine.tables="):
        planner.read(*planner.shape(JOIN))
