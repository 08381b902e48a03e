"""`tidings relay`: what it refuses, and its demo."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tidings.cli import main
from tidings.cli.relay.demo import play


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ([], "name the service that events come from"),
        (["--upstream", "central:8750"], "'central:8750' is no address of a service"),
        (["--upstream", "http://a:1", "--second", "ftp://b"], "'ftp://b' is no address of a service"),
        (["--upstream", "http://a:1", "--host", ""], "--host is empty"),
        (["--demo", "--upstream", "http://a:1"], "--upstream has no effect; leave one of the two out"),
        (["--upstream", "http://a:1", "--name", "x" * 101], "has 101 characters; give at most 100"),
    ],
)
def test_a_mistake_is_one_sentence(given: list[str], reason: str) -> None:
    result = CliRunner().invoke(main, ["relay", *given])
    assert result.exit_code != 0
    assert reason in result.output
    assert "Traceback" not in result.output


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_demo_shows_what_crosses_each_link(capsys: pytest.CaptureFixture[str]) -> None:
    play(seconds=15)
    shown = capsys.readouterr().out
    for link in ("centre → north", "centre → south", "north → harbour"):
        assert link in shown
    assert "without relays" in shown
    assert "The centre has sent " in shown
