"""The example of docs/howto/spark.md works as pasted."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "spark.md"


def test_the_example_prints_what_the_page_shows(spark, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, output = re.findall(r"^```(?:python|text)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)[
        :2
    ]
    exec(code, {})
    assert capsys.readouterr().out.split() == output.split()
