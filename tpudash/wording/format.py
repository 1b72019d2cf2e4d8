"""Ages, dollars and numbers as they stand on the screen; None is always a dash."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import datetime, timedelta

NOTHING: Final = "-"
MINUTE: Final = 60
HOUR: Final = 3_600
DAY: Final = 86_400
LEAST_IN_FULL: Final = 0.005
"""What is smaller would be shown as 0.00, which it is not."""


def duration(span: timedelta | None, *, step: int = 1) -> str:
    """Return a span in at most six characters, such as `42s`, `3m05s`, `7h12m` or `12d03h`.

    Args:
        span: How long, or None for unknown; a negative span (a clock that jumped) counts as 0.
        step: Seconds are rounded down to a multiple of this, so that a row changes less often.
    """
    if span is None:
        return NOTHING
    seconds = max(0, int(span.total_seconds()))
    seconds -= seconds % step if seconds < 10 * MINUTE else 0
    if seconds < MINUTE:
        return f"{seconds}s"
    if seconds < 10 * MINUTE:
        return f"{seconds // MINUTE}m{seconds % MINUTE:02d}s"
    if seconds < HOUR:
        return f"{seconds // MINUTE}m"
    if seconds < DAY:
        return f"{seconds // HOUR}h{seconds % HOUR // MINUTE:02d}m"
    return f"{seconds // DAY}d{seconds % DAY // HOUR:02d}h"


def age(moment: datetime | None, now: datetime, *, step: int = 1) -> str:
    """Return how long ago a moment was, like `duration`."""
    return NOTHING if moment is None else duration(now - moment, step=step)


def dollars(amount: float | None, *, at_least: bool = False) -> str:
    """Return an amount of US dollars: three decimals below one dollar, else two, or none."""
    if amount is None:
        return NOTHING
    mark = "≥" if at_least else ""
    if amount == 0:
        return f"{mark}$0"
    if abs(amount) < 1:
        return f"{mark}${amount:.3f}"
    if abs(amount) < 10_000:
        return f"{mark}${amount:,.2f}"
    return f"{mark}${amount:,.0f}"


def number(value: float | None) -> str:
    """Return a number in about five characters: `4e-04`, `0.12`, `12.3`, `450`, `12.4k`, `3.1M`."""
    if value is None:
        return NOTHING
    if 0 < abs(value) < LEAST_IN_FULL:
        return f"{value:.0e}"
    for limit, divisor, suffix in ((10_000, 1, ""), (1e6, 1e3, "k"), (1e9, 1e6, "M")):
        if abs(value) < limit:
            scaled = value / divisor
            digits = 0 if abs(scaled) >= 100 or scaled == int(scaled) else 1
            digits = 2 if abs(scaled) < 1 and scaled else digits
            return f"{scaled:.{digits}f}{suffix}"
    return f"{value:.1e}"


def bytes_size(value: float | None) -> str:
    """Return a number of bytes in binary units, such as `1.5 GiB`."""
    if value is None:
        return NOTHING
    size = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
