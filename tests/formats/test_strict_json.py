"""JSON is read as its definition says, where Python's parser accepts more."""

import pytest

from tidings import EventError
from tidings.formats.strict_json import StrictJson


def test_only_the_blanks_of_json_may_follow_a_value() -> None:
    assert StrictJson().read(b"[5] \t\r\n") == [5]
    for more in ("\x0c", "\x1c", "\u00a0", "\u2028"):
        with pytest.raises(EventError, match="extra data at column 4"):
            StrictJson().read(f"[5]{more}".encode())
