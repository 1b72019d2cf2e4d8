"""Durations as people write them: `90s`, `15m`, `2h`, `1d`."""

from __future__ import annotations

import re
from datetime import timedelta
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
