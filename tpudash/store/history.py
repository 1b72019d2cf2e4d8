"""What was seen, over sessions: states of nodes, steps, samples, events and costs, in SQLite.

One file in the state directory, shared by all consoles of a user. Whatever two of them saw alike
is kept once. When nodes were READY, which costs are reckoned from, is kept by `cost.history`.
Old samples become coarser, then go; the file has a largest size.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tpudash.errors import ConfigurationError
from tpudash.store.history_reading import Seen, millis_of, read_past, read_seen
from tpudash.store.past import LONGEST_TEXT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from pathlib import Path

    from tpudash.domain.metric import MetricSeries

VERSION: Final = 1
BUSY_S: Final = 2.0
KEPT: Final = timedelta(days=90)
TIERS: Final = (
    (timedelta(hours=3), timedelta(minutes=1)),
    (timedelta(days=2), timedelta(minutes=10)),
    (timedelta(days=14), timedelta(hours=1)),
)
"""From which age on there is one sample for how long."""
MOST_BYTES: Final = 128 << 20
SHARE_DROPPED: Final = 0.2

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS series (
  id INTEGER PRIMARY KEY, place TEXT NOT NULL, node TEXT NOT NULL, zone TEXT NOT NULL,
  metric TEXT NOT NULL, worker TEXT NOT NULL, labels TEXT NOT NULL, unit TEXT NOT NULL,
  UNIQUE (place, node, zone, metric, worker, labels, unit));
CREATE TABLE IF NOT EXISTS sample (
  series INTEGER NOT NULL, time INTEGER NOT NULL, value REAL NOT NULL, weight INTEGER NOT NULL,
  PRIMARY KEY (series, time)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS sample_time ON sample (time);
CREATE TABLE IF NOT EXISTS step (
  place TEXT NOT NULL, run TEXT NOT NULL, attempt INTEGER NOT NULL, time INTEGER NOT NULL,
  step INTEGER NOT NULL, figures TEXT NOT NULL,
  PRIMARY KEY (place, run, attempt, time, step)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS state (
  place TEXT NOT NULL, node TEXT NOT NULL, time INTEGER NOT NULL, state TEXT NOT NULL,
  PRIMARY KEY (place, node, time)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS event (
  place TEXT NOT NULL, time INTEGER NOT NULL, insert_id TEXT NOT NULL, node TEXT NOT NULL,
  run TEXT NOT NULL, attempt INTEGER NOT NULL, name TEXT NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY (place, time, node, insert_id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS cost (
  place TEXT NOT NULL, time INTEGER NOT NULL, per_hour_usd REAL, accrued_usd REAL,
  PRIMARY KEY (place, time)) WITHOUT ROWID;
"""
_TABLES: Final = ("sample", "step", "state", "event", "cost")


class History:
    """Reads and writes one file; may be used from any thread, by any number of processes.

    Args:
        path: The file; made when something is first written.
        endpoint: `HOST:PORT` of a local endpoint, whose projects are other ones than Google's.
        most_bytes: How large the file may grow.
    """

    def __init__(
        self, path: Path, endpoint: str | None = None, most_bytes: int = MOST_BYTES
    ) -> None:
        self.path = path
        self._endpoint = endpoint
        self._most_bytes = most_bytes

    def write(self, project: str, seen: Seen) -> None:
        """Keep what was seen, in one short transaction.

        Raises:
            ConfigurationError: It can't be written now: locked, full disk, no permission. A
                damaged file is set aside first, and the next writing begins a new one.
        """
        try:
            with closing(self._open()) as database, database:
                database.execute("BEGIN IMMEDIATE")
                _Writer(database, self._place(project)).write(seen)
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from error

    def read(self, project: str, since: datetime) -> Seen:
        """Return all that is remembered of a project since a time.

        Raises:
            ConfigurationError: It can't be read; see `write`.
        """
        return self._read(read_seen, project, since)

    def read_past(self, project: str, since: datetime) -> Seen:
        """Return states, events and costs only.

        Raises:
            ConfigurationError: It can't be read; see `write`.
        """
        return self._read(read_past, project, since)

    def _read(
        self,
        read: Callable[[sqlite3.Connection, str, datetime], Seen],
        project: str,
        since: datetime,
    ) -> Seen:
        if not self.path.exists():
            return Seen()
        try:
            with closing(self._open()) as database:
                return read(database, self._place(project), since)
        except (sqlite3.Error, OSError, ValueError) as error:
            raise self._unusable(error) from error

    def tidy(self, now: datetime) -> None:
        """Make old samples coarser, forget what is too old, and keep to the size.

        Raises:
            ConfigurationError: See `write`.
        """
        try:
            with closing(self._open()) as database:
                _thin(database, now)
                with database:
                    database.execute("BEGIN IMMEDIATE")
                    _forget(database, millis_of(now - KEPT))
                self._keep_size(database)
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from error

    def _keep_size(self, database: sqlite3.Connection) -> None:
        (size,) = database.execute("PRAGMA page_size").fetchone()
        for _ in range(20):
            (pages,) = database.execute("PRAGMA page_count").fetchone()
            (free,) = database.execute("PRAGMA freelist_count").fetchone()
            if (pages - free) * size <= self._most_bytes:
                break
            with database:
                database.execute("BEGIN IMMEDIATE")
                low, high = database.execute("SELECT MIN(time), MAX(time) FROM sample").fetchone()
                if low is None or low == high:
                    break
                _forget(database, int(low + (high - low) * SHARE_DROPPED) + 1)
        database.execute("PRAGMA incremental_vacuum").fetchall()

    def _place(self, project: str) -> str:
        return f"{project}@{self._endpoint}" if self._endpoint else project

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        database = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None)
        try:
            _prepare(database)
        except BaseException:
            database.close()
            raise
        return database

    def _unusable(self, error: Exception) -> ConfigurationError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB} or isinstance(error, ValueError):
            return self._set_aside(error)
        words = {
            sqlite3.SQLITE_BUSY: "another process holds it",
            sqlite3.SQLITE_LOCKED: "another process holds it",
            sqlite3.SQLITE_FULL: "the disk is full",
            sqlite3.SQLITE_READONLY: "it may not be written to",
        }.get(code, str(error))
        return ConfigurationError(
            "the history can't be used now, so nothing is remembered",
            detail=f"{self.path}: {words}",
            hint="the screen goes on without it, and tries again",
        )

    def _set_aside(self, error: Exception) -> ConfigurationError:
        """Move a damaged file out of the way, with what belongs to it."""
        aside = self.path.with_name(f"{self.path.name}.damaged")
        try:
            for end in ("", "-wal", "-shm"):
                part = self.path.with_name(self.path.name + end)
                if part.exists():
                    part.replace(aside.with_name(aside.name + end))
            hint = f"it was set aside as {aside.name}; a new one is begun"
        except OSError as problem:
            hint = f"move it away to begin a new one ({problem.strerror})"
        return ConfigurationError(
            "the history is damaged", detail=f"{self.path}: {error}", hint=hint
        )


def _prepare(database: sqlite3.Connection) -> None:
    """Make the tables of a new file.

    Raises:
        sqlite3.DatabaseError: It is no such file, or a later tpudash wrote it.
    """
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        msg = f"it was written by a later tpudash (version {version})"
        raise sqlite3.OperationalError(msg)
    if version < VERSION:
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")
        database.execute("PRAGMA journal_mode = WAL")
        database.executescript(_SCHEMA)
        database.execute(f"PRAGMA user_version = {VERSION}")
    database.execute("PRAGMA synchronous = NORMAL")


class _Writer:
    """One transaction."""

    def __init__(self, database: sqlite3.Connection, place: str) -> None:
        self._database = database
        self._place = place

    def write(self, seen: Seen) -> None:
        """Add everything; what is there already stays as it is."""
        place = self._place
        for one in seen.series:
            number = self._number(one)
            rows = [(number, millis_of(p.time), p.value) for p in one.points]
            self._add("sample (series, time, value, weight)", "?, ?, ?, 1", rows)
        steps = [
            (place, curve.run, p.attempt, millis_of(p.time), p.step, json.dumps(dict(p.values)))
            for curve in seen.curves
            for p in curve.points
        ]
        self._add("step", "?, ?, ?, ?, ?, ?", steps)
        states = [(place, one.node, millis_of(one.time), one.state) for one in seen.states]
        self._add("state", "?, ?, ?, ?", states)
        events = [
            (
                *(place, millis_of(e.time), e.insert_id or e.text[:80], e.node_id),
                *(e.run, e.attempt, e.name, e.text[:LONGEST_TEXT]),
            )
            for e in seen.events
        ]
        self._add("event", "?, ?, ?, ?, ?, ?, ?, ?", events)
        costs = [(place, millis_of(c.time), c.per_hour_usd, c.accrued_usd) for c in seen.costs]
        self._add("cost", "?, ?, ?, ?", costs)

    def _add(self, table: str, marks: str, rows: Sequence[tuple[object, ...]]) -> None:
        if rows:
            # Table and marks are ours; values go in as parameters.
            statement = f"INSERT OR IGNORE INTO {table} VALUES ({marks})"  # noqa: S608
            self._database.executemany(statement, rows)

    def _number(self, one: MetricSeries) -> int:
        labels = json.dumps(dict(sorted(one.labels.items())))
        key = (self._place, one.node_id or "", one.zone or "", one.metric, one.worker_id, labels)
        self._database.execute(
            "INSERT OR IGNORE INTO series (place, node, zone, metric, worker, labels, unit) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*key, one.unit),
        )
        (number,) = self._database.execute(
            "SELECT id FROM series WHERE place = ? AND node = ? AND zone = ? AND metric = ? "
            "AND worker = ? AND labels = ? AND unit = ?",
            (*key, one.unit),
        ).fetchone()
        return int(number)


def _thin(database: sqlite3.Connection, now: datetime) -> None:
    """Keep one sample, the weighted mean, for each stretch of time beyond an age.

    Each table of each tier is a transaction of its own, so that other consoles wait little.
    """
    for age, width in TIERS:
        wide = int(width.total_seconds() * 1000)
        until = millis_of(now - age) // wide * wide
        with database:
            database.execute("BEGIN IMMEDIATE")
            _thin_samples(database, wide, until)
        for table, names in (("step", ("place", "run", "attempt")), ("cost", ("place",))):
            same = " AND ".join(f"later.{name} = {table}.{name}" for name in names)
            with database:
                database.execute("BEGIN IMMEDIATE")
                # The newest row of each stretch stays.
                database.execute(
                    f"DELETE FROM {table} WHERE time < ? AND EXISTS (SELECT 1 "  # noqa: S608
                    f"FROM {table} AS later WHERE {same} AND later.time > {table}.time "
                    f"AND later.time < ({table}.time / ? + 1) * ?)",
                    (until, wide, wide),
                )


def _thin_samples(database: sqlite3.Connection, wide: int, until: int) -> None:
    database.execute("DROP TABLE IF EXISTS temp.thinned")
    database.execute(
        "CREATE TEMP TABLE thinned AS SELECT series, time / ? AS stretch, MAX(time) AS time, "
        "SUM(value * weight) / SUM(weight) AS value, SUM(weight) AS weight FROM sample "
        "WHERE time < ? GROUP BY series, time / ? HAVING COUNT(*) > 1",
        (wide, until, wide),
    )
    database.execute(
        "DELETE FROM sample WHERE time < ? AND (series, time / ?) IN "
        "(SELECT series, stretch FROM temp.thinned)",
        (until, wide),
    )
    database.execute("INSERT INTO sample SELECT series, time, value, weight FROM temp.thinned")
    database.execute("DROP TABLE IF EXISTS temp.thinned")


def _forget(database: sqlite3.Connection, before: int) -> None:
    for table in _TABLES:
        database.execute(f"DELETE FROM {table} WHERE time < ?", (before,))  # noqa: S608
    database.execute("DELETE FROM series WHERE id NOT IN (SELECT DISTINCT series FROM sample)")
