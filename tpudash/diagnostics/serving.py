"""Whether a model is served well, in words that checks and panes share."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.domain.serving import ServingFigures, ServingLimits

STALE: Final = timedelta(seconds=60)
"""Figures come every few seconds; older ones tell of a source that fell silent."""


def trouble(figures: ServingFigures, limits: ServingLimits, now: datetime) -> str:
    """Return what is wrong with how a model is served, worst first, or "" if nothing is."""
    if figures.problem:
        return figures.problem
    if figures.age(now) > STALE:
        return f"no figures for {figures.age(now).total_seconds():.0f} s"
    if figures.is_ready is False:
        return f"not ready ({figures.state})" if figures.state else "not ready"
    found = []
    if figures.error_share is not None and figures.error_share > limits.error_share:
        codes = ", ".join(figures.errors_per_second)
        found.append(f"{figures.error_share:.1%} errors" + (f" ({codes})" if codes else ""))
    p99 = figures.latency_p99_s
    if p99 is not None and p99 > limits.p99_s:
        found.append(f"p99 {p99 * 1000:,.0f} ms, the limit is {limits.p99_s * 1000:,.0f} ms")
    return "; ".join(found)


def summary(figures: ServingFigures) -> str:
    """Return rate, latency and errors in a few words."""
    rate, p99, share = figures.requests_per_second, figures.latency_p99_s, figures.error_share
    parts = [
        "" if rate is None else f"{rate:,.1f} requests/s",
        "" if p99 is None else f"p99 {p99 * 1000:,.1f} ms",
        "" if share is None else f"{share:.1%} errors",
    ]
    return ", ".join(part for part in parts if part) or "no requests yet"
