"""Reads the history file: thinned, so that a long past costs little time and memory."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from tpudash.domain.metric import MetricPoint, MetricSeries
from tpudash.store.past import CostSeen, Event, NodeStateSeen
from tpudash.store.training_curve import StepPoint, TrainingCurve

if TYPE_CHECKING:
    import sqlite3

MOST_RUNS: Final = 200
MOST_SERIES: Final = 5_000
POINTS: Final = 1_000
"""How many points of one series or curve are read at most."""
MOST_POINTS: Final = 60_000
LEAST_POINTS: Final = 20
MOST_ROWS: Final = 10_000
"""How many states, events and costs are read at most, the newest."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is to be kept, or what is remembered."""

    series: tuple[MetricSeries, ...] = ()
    curves: tuple[TrainingCurve, ...] = ()
    states: tuple[NodeStateSeen, ...] = ()
    events: tuple[Event, ...] = ()
    costs: tuple[CostSeen, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return any((self.series, self.curves, self.states, self.events, self.costs))


def read_seen(database: sqlite3.Connection, place: str, since: datetime) -> Seen:
    """Return what is remembered of a place since a time.

    Raises:
        sqlite3.Error: The file can't be read.
        ValueError: It holds what nobody wrote.
    """
    start = millis_of(since)
    return Seen(
        tuple(_series(database, place, start)),
        tuple(_curves(database, place, start)),
        *_rest(database, place, start),
    )


def read_past(database: sqlite3.Connection, place: str, since: datetime) -> Seen:
    """Return states, events and costs of a place since a time; see `read_seen`."""
    states, events, costs = _rest(database, place, millis_of(since))
    return Seen(states=states, events=events, costs=costs)


def millis_of(moment: datetime) -> int:
    """Return a moment as it stands in the file."""
    return round(moment.timestamp() * 1000)


def _time(millis: int) -> datetime:
    return datetime.fromtimestamp(millis / 1000, UTC)


def _series(database: sqlite3.Connection, place: str, since: int) -> list[MetricSeries]:
    known = database.execute(
        "SELECT id, node, zone, metric, worker, labels, unit FROM series WHERE place = ? "
        "ORDER BY id DESC LIMIT ?",
        (place, MOST_SERIES),
    ).fetchall()
    most = max(LEAST_POINTS, min(POINTS, MOST_POINTS // max(1, len(known))))
    found = []
    for number, node, zone, metric, worker, labels, unit in reversed(known):
        points = _points(database, number, since, most)
        if points:
            label_of = json.loads(labels)
            found.append(
                MetricSeries(metric, node or None, zone or None, worker, unit, points, label_of)
            )
    return found


def _points(
    database: sqlite3.Connection, series: int, since: int, most: int
) -> tuple[MetricPoint, ...]:
    width = _width(
        database.execute(
            "SELECT COUNT(*), MIN(time), MAX(time) FROM sample WHERE series = ? AND time >= ?",
            (series, since),
        ).fetchone(),
        most,
    )
    rows = database.execute(
        "SELECT MAX(time), SUM(value * weight) / SUM(weight) FROM sample "
        "WHERE series = ? AND time >= ? GROUP BY time / ? ORDER BY 1",
        (series, since, width),
    )
    return tuple(MetricPoint(_time(time), value) for time, value in rows)


def _curves(database: sqlite3.Connection, place: str, since: int) -> list[TrainingCurve]:
    runs = database.execute(
        "SELECT run, COUNT(*), MIN(time), MAX(time) FROM step WHERE place = ? AND time >= ? "
        "GROUP BY run ORDER BY MAX(time) DESC LIMIT ?",
        (place, since, MOST_RUNS),
    ).fetchall()
    found = []
    for run, *extent in sorted(runs):
        # SQLite takes the other columns from the row that has the greatest time.
        rows = database.execute(
            "SELECT attempt, MAX(time), step, figures FROM step "
            "WHERE place = ? AND run = ? AND time >= ? GROUP BY attempt, time / ? ORDER BY 1, 2",
            (place, run, since, _width(extent, POINTS)),
        )
        points = (
            StepPoint(_time(time), attempt, step, json.loads(figures))
            for attempt, time, step, figures in rows
        )
        found.append(TrainingCurve(run, tuple(points)))
    return found


def _width(extent: tuple[int, int | None, int | None] | list[int], most: int) -> int:
    """Return the milliseconds of which one row is read, so that at most so many are."""
    count, first, last = extent
    if count <= most or first is None or last is None:
        return 1
    return (last - first) // most + 1


def _rest(
    database: sqlite3.Connection, place: str, since: int
) -> tuple[tuple[NodeStateSeen, ...], tuple[Event, ...], tuple[CostSeen, ...]]:
    asked = (place, since, MOST_ROWS)
    tail = "WHERE place = ? AND time >= ? ORDER BY time DESC LIMIT ?"
    states = database.execute(f"SELECT time, node, state FROM state {tail}", asked)  # noqa: S608
    events = database.execute(
        f"SELECT time, node, run, attempt, name, text, insert_id FROM event {tail}",  # noqa: S608
        asked,
    )
    costs = database.execute(
        f"SELECT time, per_hour_usd, accrued_usd FROM cost {tail}",  # noqa: S608
        asked,
    )
    return (
        tuple(reversed([NodeStateSeen(_time(time), node, state) for time, node, state in states])),
        tuple(reversed([Event(_time(time), *rest) for time, *rest in events])),
        tuple(reversed([CostSeen(_time(time), *rest) for time, *rest in costs])),
    )
