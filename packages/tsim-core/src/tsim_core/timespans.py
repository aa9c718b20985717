"""Which times a query names: "on 3 May 2023", "in March", "last week", "two hours ago".

English and digits, ISO dates, and Chinese and Japanese 年月日. A date without a year is the latest one that is past.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

Span = tuple[float, float]
"""From when until when, in seconds since 1970."""

DAY = 86400.0
_NAMES = [name.lower() for name in calendar.month_name]
_WEEKDAYS = [name.lower() for name in calendar.day_name]
_FULL = "|".join(_NAMES[1:])
_MONTH = "|".join(rf"{name[:3]}(?:{name[3:]})?" for name in _NAMES[1:] if name != "september") + "|sept?(?:ember)?"
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8}
_COUNTS |= {"nine": 9, "ten": 10, "eleven": 11, "twelve": 12}
_SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": DAY, "week": 7 * DAY}
_SECONDS |= {"month": 30.44 * DAY, "year": 365.25 * DAY}
_AMOUNT = rf"(?:\d+|{'|'.join(_COUNTS)})\s+(?:{'|'.join(_SECONDS)})s?"
_NTH = r"(?:st|nd|rd|th)?"


def named_spans(query: str, now: float) -> list[Span]:
    """The times that a query names.

    Args:
        query: What is asked.
        now: What "last week" is said from, in seconds since 1970.

    Returns:
        Spans; a day, month or year that does not exist names none.
    """
    today = datetime.fromtimestamp(now, UTC)
    rest, spans = query.lower(), []
    for pattern, reading in _READINGS:
        for match in pattern.finditer(rest):
            try:
                span = reading(match, today)
            except (ValueError, OverflowError):  # 31 June, or a year beyond the calendar
                continue
            if span is not None:
                spans.append((span[0].timestamp(), span[1].timestamp()))
        rest = pattern.sub(lambda m: " " * len(m[0]), rest)
    return spans


def closeness(times: NDArray[np.float64], spans: Sequence[Span]) -> NDArray[np.float32]:
    """How close times are to the nearest of some spans.

    It is 1 within and fades on either side, since plans come before an event and reports after it.

    Args:
        times: Seconds since 1970, NaN where unknown, shape (n,).
        spans: Spans, as `named_spans` gives.

    Returns:
        0 to 1, 0 for unknown times, shape (n,); all 0 where no time is close, or all are alike.
    """
    near = np.zeros(len(times))
    for start, end in spans:
        gap = np.maximum(np.maximum(start - times, times - end), 0)
        scale = (end - start) / 2 + min(end - start, 2 * DAY)
        near = np.fmax(near, np.exp(-gap / scale))
    if len(near) == 0 or near.max() < np.exp(-1) or near.min() == near.max():
        return np.zeros(len(times), dtype=np.float32)
    return near.astype(np.float32)


Bounds = tuple[datetime, datetime]
Reading = Callable[["re.Match[str]", datetime], "Bounds | None"]


def _day(year: int, month: int, day: int) -> Bounds:
    start = datetime(year, month, day, tzinfo=UTC)
    return start, start + timedelta(days=1)


def _month(year: int, month: int) -> Bounds:
    start = datetime(year, month, 1, tzinfo=UTC)
    return start, start + timedelta(days=calendar.monthrange(year, month)[1])


def _year(year: int) -> Bounds:
    return datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)


def _number(name: str) -> int:
    return next(i for i, full in enumerate(_NAMES) if i and full.startswith(name[:3]))


def _dated(match: re.Match[str], today: datetime) -> Bounds:
    """A month, with a day or without, of a given year or the latest one."""
    groups = match.groupdict()
    month = int(groups["m"]) if groups["m"].isdigit() else _number(groups["m"])
    day = int(groups["d"]) if groups.get("d") else None

    def of(year: int) -> Bounds:
        return _month(year, month) if day is None else _day(year, month, day)

    if groups.get("y"):
        return of(int(groups["y"]))
    return next(span for span in _past(of, today.year) if span[0] <= today)


def _past(of: Callable[[int], Bounds], year: int) -> Iterator[Bounds]:
    for back in range(9):  # 29 February comes back within eight years
        try:
            yield of(year - back)
        except ValueError:
            continue
    raise ValueError("no such day")


def _ago(match: re.Match[str], today: datetime) -> Bounds:
    parts = re.findall(rf"(\d+|{'|'.join(_COUNTS)})\s+({'|'.join(_SECONDS)})", match[0])
    total = sum((int(n) if n.isdigit() else _COUNTS[n]) * _SECONDS[unit] for n, unit in parts)
    unit = min(_SECONDS[unit] for _, unit in parts)
    middle = today - timedelta(seconds=total)
    if unit == DAY:
        return _day(middle.year, middle.month, middle.day)
    slack = timedelta(seconds=max(unit / 2, total / 20))
    return middle - slack, middle + slack


def _recent(match: re.Match[str], today: datetime) -> Bounds:
    """This or last week, month, year, weekend or night."""
    last, unit = match["which"] != "this", match["unit"]
    start = today.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "night":
        return start - timedelta(days=last), start + timedelta(days=1 - last, hours=6)
    if unit == "year":
        return _year(today.year - last)
    if unit == "month":
        before = start.replace(day=1) - timedelta(days=1)
        return _month(before.year, before.month) if last else _month(today.year, today.month)
    monday = start - timedelta(days=start.weekday() + 7 * last)
    return (monday if unit == "week" else monday + timedelta(days=5)), monday + timedelta(days=7)


def _weekday(match: re.Match[str], today: datetime) -> Bounds:
    back = (today.weekday() - _WEEKDAYS.index(match["day"])) % 7 or 7
    then = today - timedelta(days=back)
    return _day(then.year, then.month, then.day)


def _near(match: re.Match[str], today: datetime) -> Bounds:
    then = today - timedelta(days=match[0] == "yesterday")
    return _day(then.year, then.month, then.day)


_READINGS: list[tuple[re.Pattern[str], Reading]] = [
    (re.compile(pattern), reading)
    for pattern, reading in (
        (r"\b(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})\b", _dated),
        (r"(?:(?P<y>\d{4})\s*年\s*)?(?P<m>\d{1,2})\s*月(?:\s*(?P<d>\d{1,2})\s*日)?", _dated),
        (rf"\b(?P<d>\d{{1,2}}){_NTH}\s+(?:of\s+)?(?P<m>{_MONTH})\b\.?(?:,?\s+(?P<y>\d{{4}})\b)?", _dated),
        (rf"\b(?P<m>{_MONTH})\.?\s+(?:the\s+)?(?P<d>\d{{1,2}}){_NTH}\b(?:,?\s+(?P<y>\d{{4}})\b)?", _dated),
        (rf"\b(?P<m>{_MONTH})\.?,?\s+(?:of\s+)?(?P<y>\d{{4}})\b", _dated),
        (r"\b(?P<y>\d{4})-(?P<m>\d{2})\b", _dated),
        # "may" and "march" are words too: a month alone needs a word before it that times have.
        (
            rf"\b(?:in|last|this|since|during|of|early|late|mid|by|until|before|after|around|past)\s+(?P<m>{_FULL})\b",
            _dated,
        ),
        (r"\b(?:in|during|of|since|year)\s+(?P<y>(?:19|20)\d{2})\b", lambda m, _: _year(int(m["y"]))),
        (rf"\b{_AMOUNT}(?:\s*(?:,|and)?\s*{_AMOUNT})*\s+ago\b", _ago),
        (r"\b(?P<which>this|last|past|previous)\s+(?P<unit>weekend|week|month|year|night)\b", _recent),
        (rf"\b(?:on|last|this|past)\s+(?P<day>{'|'.join(_WEEKDAYS)})\b", _weekday),
        (r"\b(?:yesterday|today)\b", _near),
    )
]
