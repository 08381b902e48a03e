"""The command line as a user has it: arguments in; exit code, answers and remarks out."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tidings.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"


def tidings(*args: object, stdin: bytes | None = None) -> Result:
    result = CliRunner().invoke(main, [str(arg) for arg in args], input=stdin)
    # Whatever a user does, the way out is an exit code.
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def questions(tmp_path):
    path = tmp_path / "questions.txt"
    path.write_text(
        "# questions\n"
        "@prefix ex: <http://example.org/>\n"
        "\n"
        "titles: SELECT ?t WHERE (?item, rss:title, ?t)\n"
        "cheap bicycles:\n"
        "    SELECT ?t, ?p\n"
        "    # in any currency\n"
        "    WHERE (?item, rss:title, ?t), (?item, ex:price, ?p) AND ?p < 200\n"
    )
    return path


@pytest.fixture
def offer(tmp_path):
    path = tmp_path / "offer.ttl"
    path.write_text(
        "@prefix rss: <http://purl.org/rss/1.0/> .\n"
        "<http://example.org/1> rss:title 'Racing bicycle' ; <http://example.org/price> 180 .\n"
    )
    return path
