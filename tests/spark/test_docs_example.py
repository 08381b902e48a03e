"""The examples of docs/howto/spark.md work as pasted."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "spark.md"
BLOCKS = re.findall(r"^```(python|text)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
SHOWN = [(code, output) for (_, code), (kind, output) in pairwise(BLOCKS) if kind == "text"]


@pytest.mark.parametrize(("code", "output"), SHOWN, ids=["match", "joins"])
def test_an_example_prints_what_the_page_shows(spark, tmp_path, monkeypatch, capsys, code, output):
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    assert capsys.readouterr().out.split() == output.split()
