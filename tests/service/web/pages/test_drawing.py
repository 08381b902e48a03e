"""Times, numbers, questions and charts as people see them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from tidings.service.web.pages.charts import chart, nice, spark
from tidings.service.web.pages.wording import (
    ago,
    clock_time,
    coloured,
    duration,
    figure,
    past,
    relative,
    size,
)

NOW = datetime(2026, 11, 16, 10, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "just now"),
        (2, "in a moment"),
        (-10, "10 seconds ago"),
        (-60, "1 minute ago"),
        (-7_300, "2 hours ago"),
        (86_399, "in 1 day"),
        (30 * 86_400 - 5, "in 30 days"),
        (-400 * 86_400, "1 year ago"),
    ],
)
def test_relative_times(seconds: float, words: str) -> None:
    assert relative(NOW + timedelta(seconds=seconds), NOW) == words


def test_the_past_is_named_in_words() -> None:
    hours = (0.1, 1.4, 2, 35, 36, 240)
    assert [past(3_600 * each) for each in hours] == [
        "last hour", "last hour", "last 2 hours", "last 35 hours", "last 2 days", "last 10 days"
    ]  # fmt: skip


def test_a_time_keeps_its_absolute_form() -> None:
    assert 'title="16 November 2026, 10:00:00 UTC"' in ago("2026-11-16T10:00:00.000Z")
    assert clock_time("2026-11-16T10:00:07.000Z").striptags() == "10:00:07"
    assert ago(None, "<never>") == "&lt;never&gt;"


def test_numbers() -> None:
    assert [figure(n) for n in (None, 0.0, 0.126, 5.25, 12.0, 1_234.5, 12_300_000.0)] == [
        "–", "0", "0.13", "5.2", "12", "1,234", "12.3M",
    ]  # fmt: skip
    assert [duration(n) for n in (None, 0.00025, 0.0234, 1.25, 400.0)] == [
        "–",
        "250 µs",
        "23 ms",
        "1.2 s",
        "6 minutes",
    ]
    assert [size(n) for n in (12, 1_400_000, 5e12)] == ["12 bytes", "1.4 MB", "5.0 TB"]


def test_a_question_in_colours_is_the_same_question() -> None:
    drawn = coloured("WHERE a = '<b>&' AND ?x > 5 AND andy.order < 1")
    assert drawn == (
        '<span class="k">WHERE</span> a = <span class="s">&#39;&lt;b&gt;&amp;&#39;</span> <span class="k">AND</span> '
        '<span class="v">?x</span> &gt; <span class="n">5</span> <span class="k">AND</span> andy.order &lt; <span class="n">1</span>'
    )
    text = "SELECT ?t WHERE (?i, <http://a/b>, 'x''y') AND `no where` = 2004-01-31T10:00:00Z \n-- <script>"
    assert coloured(text).striptags().split() == text.split()


def test_charts_stay_in_their_frame_whatever_they_show() -> None:
    assert [nice(top) for top in (0, 0.3, 1, 9, 15, 73, float("inf"))] == [1, 0.4, 1, 10, 20, 80, 1]
    for values in ([], [None, None], [0, 0], [1], [None, 3, None, 5, 2.5]):
        drawn = chart("Rates", {"a": values, "b": values[::-1]}, 300)
        assert drawn.startswith('<svg class="chart"')
        assert "nan" not in drawn
        assert "style=" not in drawn + spark(values)
    calm = [10.0, 12.0] * 30
    assert "cut off" not in chart("Rates", {"a": calm}, 300)
    peaked = chart("Rates", {"a": [*calm[:-1], 500.0]}, 300, " s", start=36_000.0)
    assert "Peaks above 20 s are cut off; the highest is 500 s." in peaked
    assert ">10:00:05 UTC: a 12 s<" in peaked
    assert "-" not in re.sub(r"(aria|text)-|[a-z]-[a-z]", "", peaked), "a line leaves the frame"
    assert 'aria-label="Rates &lt;&gt;: a 2.5 at last"' in chart("Rates <>", {"a": [1, 2.5]}, 300)
