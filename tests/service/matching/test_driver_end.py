"""A driver that ends leaves nothing of its session, also when no service is there to see to it."""

from __future__ import annotations

import subprocess
import sys

from tidings.service.matching import process_session

DRIVER = """
import subprocess
from tidings.service.matching.driver import _end_now

subprocess.Popen(["sleep", "600"])
_end_now(0)
"""


def test_nothing_is_left_of_a_driver_that_has_ended() -> None:
    driver = subprocess.Popen([sys.executable, "-c", DRIVER], start_new_session=True)
    assert driver.wait(30) == 0
    assert process_session.living(driver.pid) == []
