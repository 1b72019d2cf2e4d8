"""Time series by node, merged as they are read and bounded in length."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tpudash.domain.metric import MetricPoint, MetricSeries

MAX_POINTS: Final = 1_000
_Key = tuple[str, str, tuple[tuple[str, str], ...]]


class SeriesBook:
    """The newest points of every series; a point read twice is kept once.

    Args:
        max_points: How many points of one series are kept, the newest.
    """

    def __init__(self, max_points: int = MAX_POINTS) -> None:
        self._max_points = max_points
        self._series: defaultdict[str, dict[_Key, MetricSeries]] = defaultdict(dict)

    def of(self, node_id: str) -> tuple[MetricSeries, ...]:
        """Return the series of a node; those joined to none are under the id ""."""
        return tuple(self._series.get(node_id, {}).values())

    def add(self, series: Iterable[MetricSeries]) -> frozenset[str]:
        """Merge series and return the ids of the nodes that got new points."""
        changed = set()
        for one in series:
            known = self._series[one.node_id or ""]
            key = (one.metric, one.worker_id, tuple(sorted(one.labels.items())))
            before = known.get(key)
            if before is not None and before.unit != one.unit:
                # Figures of two units can't stand in one series; the newer ones are kept.
                before = None
            points = self._merge(before.points if before else (), one.points)
            if before is None or points != before.points:
                known[key] = replace(one, points=points)
                changed.add(one.node_id or "")
        return frozenset(changed)

    def forget(self, node_ids: Iterable[str]) -> None:
        """Drop all series of these nodes."""
        for node_id in node_ids:
            self._series.pop(node_id, None)

    def _merge(
        self, old: tuple[MetricPoint, ...], new: tuple[MetricPoint, ...]
    ) -> tuple[MetricPoint, ...]:
        by_time = {point.time: point for point in old}
        by_time.update((point.time, point) for point in new if math.isfinite(point.value))
        merged = [by_time[time] for time in sorted(by_time)]
        return tuple(merged[-self._max_points :])
