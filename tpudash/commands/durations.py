"""Durations and moments as they are written on a command line: `90s`, `2h`, `1d`, or a time."""

from __future__ import annotations

from datetime import UTC, datetime

from tpudash.domain.durations import LONGEST, parse_duration

__all__ = ["LONGEST", "parse_duration", "parse_since"]


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
