"""Money and time as short words, for the evidence of a check."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime, timedelta


def dollars(usd: float | None, *, at_least: bool = False) -> str:
    """Return an amount such as `$1.35`, `at least $0.02`, or `an unknown amount`."""
    if usd is None:
        return "an unknown amount"
    text = f"${usd:,.2f}" if usd >= 0.01 or usd == 0 else "less than $0.01"
    return f"at least {text}" if at_least else text


def rate(usd_per_hour: float | None, *, at_least: bool = False) -> str:
    """Return a rate such as `$1.35/h`, or `an unknown rate`."""
    if usd_per_hour is None:
        return "an unknown rate"
    return f"{dollars(usd_per_hour, at_least=at_least)}/h"


def span(length: timedelta) -> str:
    """Return a length of time in its largest fitting unit, such as `45 s`, `12 min`, `3 d`."""
    seconds = max(0, int(length.total_seconds()))
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 2 * 3600:
        return f"{seconds // 60} min"
    return f"{seconds // 3600} h" if seconds < 2 * 86400 else f"{seconds // 86400} d"


def ago(moment: datetime | None, now: datetime) -> str:
    """Return how long ago something was, or that this is not known."""
    return "at an unknown time" if moment is None else f"{span(now - moment)} ago"


def counted(number: int, thing: str) -> str:
    """Return a number with its noun: `1 step`, `50 steps`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
