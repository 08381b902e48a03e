"""Test deliveries: only a few at once."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import Mock

import pytest

from tidings.service.delivery import webhooks
from tidings.service.delivery.webhooks import TESTS, Webhooks


def test_only_a_few_test_deliveries_are_sent_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    under_way, most = 0, 0

    async def attempt_test(*_: Any) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        under_way -= 1

    monkeypatch.setattr(webhooks, "attempt_test", attempt_test)

    async def send() -> None:
        sender = Webhooks(Mock(), Mock(), Mock(), Mock(), Mock())
        await asyncio.gather(*(sender.test(Mock()) for _ in range(3 * TESTS)))

    asyncio.run(send())
    assert most == TESTS
