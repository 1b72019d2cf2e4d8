"""Durations and moments as they are written on a command line: `90s`, `2h`, `1d`, or a time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from tpudash.errors import UsageError

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([smhd]?)")
LONGEST: Final = timedelta(days=366)


def parse_duration(text: str) -> timedelta:
    """Return a duration; a bare number counts seconds.

    Raises:
        UsageError: It is not one, or it is longer than a year.
    """
    found = _DURATION.fullmatch(text.strip().lower())
    seconds = float(found[1]) * _UNITS[found[2] or "s"] if found else None
    if seconds is None or seconds > LONGEST.total_seconds():
        raise UsageError(f"{text!r} is not a duration", hint="write it as 90s, 15m, 2h or 1d")
    return timedelta(seconds=seconds)


def parse_since(text: str, now: datetime) -> datetime:
    """Return the moment that `--since` means: so long ago, or a time in RFC 3339.

    Raises:
        UsageError: It is neither.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return now - parse_duration(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
