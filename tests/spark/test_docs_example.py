"""The examples of the pages about Spark work as pasted, those of one page after each other."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs" / "howto"


@pytest.mark.parametrize("page", ["spark", "large-index"])
def test_examples_print_what_the_page_shows(spark, tmp_path, monkeypatch, capsys, page):
    monkeypatch.chdir(tmp_path)
    text, names = (PAGES / f"{page}.md").read_text(), {}
    blocks = re.findall(r"^```(python|text)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    shown = [(code, output) for (_, code), (kind, output) in pairwise(blocks) if kind == "text"]
    assert len(shown) == 2
    for code, output in shown:
        exec(code, names)
        assert capsys.readouterr().out.split() == output.split()
