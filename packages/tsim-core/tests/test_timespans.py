from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tsim_core.timespans import DAY, closeness, named_spans

NOW = datetime(2024, 5, 15, 10, 30, tzinfo=UTC)  # a Wednesday


def spans(query: str) -> list[str]:
    found = named_spans(query, NOW.timestamp())
    return [f"{datetime.fromtimestamp(a, UTC):%Y-%m-%d}/{datetime.fromtimestamp(b, UTC):%Y-%m-%d}" for a, b in found]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("what did we say on 2023-05-03?", "2023-05-03/2023-05-04"),
        ("on 3 May, 2023", "2023-05-03/2023-05-04"),
        ("On May 3rd, 2023, who came?", "2023-05-03/2023-05-04"),
        ("on the 3rd of May", "2024-05-03/2024-05-04"),
        ("on December 24th", "2023-12-24/2023-12-25"),
        ("in May 2023", "2023-05-01/2023-06-01"),
        ("Sept 2023", "2023-09-01/2023-10-01"),
        ("last March", "2024-03-01/2024-04-01"),
        ("in August", "2023-08-01/2023-09-01"),
        ("on 29 February", "2024-02-29/2024-03-01"),
        ("in 2022", "2022-01-01/2023-01-01"),
        ("2023年5月3日说了什么", "2023-05-03/2023-05-04"),
        ("3月に話したこと", "2024-03-01/2024-04-01"),
        ("what did I say yesterday", "2024-05-14/2024-05-15"),
        ("last week", "2024-05-06/2024-05-13"),
        ("this week", "2024-05-13/2024-05-20"),
        ("last weekend", "2024-05-11/2024-05-13"),
        ("last month", "2024-04-01/2024-05-01"),
        ("last year", "2023-01-01/2024-01-01"),
        ("on Friday", "2024-05-10/2024-05-11"),
        ("last Wednesday", "2024-05-08/2024-05-09"),
        ("three days ago", "2024-05-12/2024-05-13"),
        ("2 weeks ago", "2024-04-27/2024-05-04"),
    ],
)
def test_times_are_understood(query: str, expected: str) -> None:
    assert spans(query) == [expected]


@pytest.mark.parametrize(
    "query",
    [
        "may I march in?",
        "version 2.10.3 of the app, PEG-20",
        "when did we meet?",
        "on 31 June 2023",
        "in 30 February",
        "code 2023-77-99",
        "chapter 12",
    ],
)
def test_what_names_no_time_gives_none(query: str) -> None:
    assert spans(query) == []


def test_hours_and_minutes_are_added_up() -> None:
    ((start, end),) = named_spans("which joke was it 2 hours 22 minutes  ago?", NOW.timestamp())
    then = (NOW - timedelta(hours=2, minutes=22)).timestamp()
    assert start < then < end
    assert end - start < 1800


def test_two_times_are_two_spans() -> None:
    assert len(spans("between 3 May 2023 and 9 May 2023")) == 2


@given(st.text(max_size=60), st.floats(0, 4e9))
def test_any_query_gives_spans_that_begin_before_they_end(query: str, now: float) -> None:
    assert all(start < end for start, end in named_spans(query, now))


def test_closeness_is_one_within_and_fades_outside() -> None:
    times = np.array([0.0, 9.5, 10.2, 11.5, 40.0, float("nan")]) * DAY
    near = closeness(times, [(10 * DAY, 11 * DAY)])
    assert near[2] == 1
    assert 1 > near[1] > near[3] * 0.9 > 0.3
    assert near[0] < 0.01
    assert near[5] == 0


def test_closeness_says_nothing_where_no_turn_is_close_or_all_are() -> None:
    times = np.array([0.0, 1.0]) * DAY
    assert not closeness(times, [(900 * DAY, 901 * DAY)]).any()
    assert not closeness(times, [(-10 * DAY, 10 * DAY)]).any()
    assert not closeness(times, []).any()
    assert closeness(np.zeros(0), [(0.0, 1.0)]).shape == (0,)
