"""Durations and moments of the command line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tpudash.commands.durations import parse_duration, parse_since
from tpudash.errors import UsageError

NOW = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10", 10), ("90s", 90), ("15m", 900), ("2h", 7200), ("1d", 86400), ("1.5h", 5400)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "s", "-1s", "1w", "1h30m", "nan", "99999d", "\uff11s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_duration(text)


def test_since_takes_an_age_or_a_time() -> None:
    assert parse_since("1h", NOW) == NOW - timedelta(hours=1)
    assert parse_since("2026-12-01T07:00:00Z", NOW) == NOW - timedelta(hours=1)
    assert parse_since("2026-12-01T08:00:00+01:00", NOW) == NOW - timedelta(hours=1)
    assert parse_since("2026-12-01", NOW) == NOW - timedelta(hours=8)
