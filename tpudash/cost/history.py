"""This machine's memory of when nodes were READY, so that a cost outlives its node and session.

One SQLite file in the state directory, shared by all consoles of a user. Every change is one short
transaction, and an account that another console gave of the same moment changes nothing.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from tpudash.domain.life import NodeLife, ReadySpan
from tpudash.domain.node import NodeState, Scheduling
from tpudash.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tpudash.domain.node import Node

FILE_NAME: Final = "history.sqlite3"
KEPT: Final = timedelta(days=400)
"""Lives that ended before are forgotten; a year and its first month can be looked back on."""
MOST_LIVES: Final = 20_000
WATCHED: Final = timedelta(minutes=2)
"""Between two looks no further apart a change is dated by the second one."""
BUSY_S: Final = 5.0
VERSION: Final = 1

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS life (
  name TEXT NOT NULL, created TEXT NOT NULL, project TEXT NOT NULL,
  accelerator_type TEXT NOT NULL, scheduling TEXT NOT NULL,
  run TEXT, owner TEXT, attempt INTEGER,
  is_open INTEGER NOT NULL, last_seen TEXT NOT NULL, preempted TEXT, gone TEXT,
  PRIMARY KEY (name, created));
CREATE TABLE IF NOT EXISTS span (
  name TEXT NOT NULL, created TEXT NOT NULL, start TEXT NOT NULL, end TEXT NOT NULL,
  begins_late INTEGER NOT NULL, ends_early INTEGER NOT NULL,
  PRIMARY KEY (name, created, start));
CREATE INDEX IF NOT EXISTS life_of_project ON life (project, gone);
"""


class NodeHistory:
    """Reads and writes the history of one file; may be used from any thread.

    Args:
        path: The file; made when something is first written to it.
        endpoint: `HOST:PORT` of a local endpoint, whose projects are other ones than Google's.
    """

    def __init__(self, path: Path, endpoint: str | None = None) -> None:
        self._path = path
        self._endpoint = endpoint

    def _place(self, project: str) -> str:
        return f"{project}@{self._endpoint}" if self._endpoint else project

    def record(
        self,
        project: str,
        nodes: Iterable[Node],
        as_of: datetime,
        unreachable: Iterable[str] = (),
    ) -> bool:
        """Take in a full listing of nodes.

        Args:
            project: The project that was listed.
            nodes: All its nodes.
            as_of: When they were listed.
            unreachable: Zones that did not answer: nothing is concluded about their nodes.

        Returns:
            Whether a life began, a span began or ended, or a node went.

        Raises:
            ConfigurationError: The file can't be written.
        """
        try:
            with closing(self._open()) as database, database:
                database.execute("BEGIN IMMEDIATE")
                writer = _Writer(database, self._place(project), as_of)
                listed = [node for node in nodes if node.project == project]
                for node in listed:
                    writer.see(node)
                writer.miss({_key(node) for node in listed}, frozenset(unreachable))
                writer.prune()
                return writer.has_changed
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from error

    def lives(self, project: str, since: datetime | None = None) -> tuple[NodeLife, ...]:
        """Return the lives of a project's nodes that were seen since a time, oldest first.

        Raises:
            ConfigurationError: The file can't be read.
        """
        if not self._path.exists():
            return ()
        try:
            with closing(self._open()) as database:
                return _lives(database, self._place(project), since)
        except (sqlite3.Error, OSError, ValueError) as error:
            raise self._unusable(error) from error

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        database = sqlite3.connect(self._path, timeout=BUSY_S, isolation_level=None)
        database.row_factory = sqlite3.Row
        try:
            _prepare(database)
        except BaseException:
            database.close()
            raise
        return database

    def _unusable(self, error: Exception) -> ConfigurationError:
        return ConfigurationError(
            "the history of nodes can't be used, so costs of earlier sessions are missing",
            detail=f"{self._path}: {error}",
            hint="move the file away to begin a new history",
        )


def _prepare(database: sqlite3.Connection) -> None:
    """Make the tables of a new file.

    Raises:
        sqlite3.DatabaseError: It is no such file, or a later tpudash wrote it.
    """
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        msg = f"it was written by a later tpudash (version {version})"
        raise sqlite3.DatabaseError(msg)
    if version < VERSION:
        database.executescript(_SCHEMA)
        database.execute(f"PRAGMA user_version = {VERSION}")


class _Writer:
    """One transaction."""

    def __init__(self, database: sqlite3.Connection, project: str, as_of: datetime) -> None:
        self._database = database
        self._project = project
        self._as_of = as_of
        self.has_changed = False

    def see(self, node: Node) -> None:
        """Take in one node that is listed."""
        name, created = _key(node)
        row = self._database.execute(
            "SELECT * FROM life WHERE name = ? AND created = ?", (name, created)
        ).fetchone()
        if row is None:
            self._begin(node, name, created)
            return
        last_seen = _time(row["last_seen"])
        if self._as_of <= last_seen:
            return
        was_watched = self._as_of - last_seen <= WATCHED
        if node.is_billing and row["is_open"]:
            self._extend(name, created, ends_early=False)
        elif node.is_billing:
            self._add_span(name, created, begins_late=not was_watched)
        elif row["is_open"]:
            self._close(name, created, was_watched=was_watched)
        is_preempted = node.state == NodeState.PREEMPTED and row["preempted"] is None
        self._database.execute(
            "UPDATE life SET is_open = ?, last_seen = ?, gone = NULL, "
            "preempted = COALESCE(preempted, ?) WHERE name = ? AND created = ?",
            (
                node.is_billing,
                _text(self._as_of),
                _text(self._as_of) if is_preempted else None,
                name,
                created,
            ),
        )

    def miss(self, listed: set[tuple[str, str]], unreachable: frozenset[str]) -> None:
        """Note which of the known nodes are no longer listed."""
        known = self._database.execute(
            "SELECT name, created, is_open, last_seen FROM life "
            "WHERE project = ? AND gone IS NULL AND last_seen < ?",
            (self._project, _text(self._as_of)),
        ).fetchall()
        for row in known:
            name, created = row["name"], row["created"]
            if (name, created) in listed or name.split("/")[3] in unreachable:
                continue
            if row["is_open"]:
                was_watched = self._as_of - _time(row["last_seen"]) <= WATCHED
                self._close(name, created, was_watched=was_watched)
            self._database.execute(
                "UPDATE life SET gone = ?, is_open = 0 WHERE name = ? AND created = ?",
                (_text(self._as_of), name, created),
            )
            self.has_changed = True

    def prune(self) -> None:
        """Forget what is too old or too much."""
        self._database.execute(
            "DELETE FROM life WHERE last_seen < ? AND gone IS NOT NULL",
            (_text(self._as_of - KEPT),),
        )
        self._database.execute(
            "DELETE FROM life WHERE rowid IN (SELECT rowid FROM life "
            "ORDER BY last_seen DESC LIMIT -1 OFFSET ?)",
            (MOST_LIVES,),
        )
        if self._database.execute("SELECT changes()").fetchone()[0] or self.has_changed:
            self._database.execute(
                "DELETE FROM span WHERE NOT EXISTS (SELECT 1 FROM life "
                "WHERE life.name = span.name AND life.created = span.created)"
            )

    def _begin(self, node: Node, name: str, created: str) -> None:
        as_of = _text(self._as_of)
        self._database.execute(
            "INSERT INTO life VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
            (
                name,
                created,
                self._project,
                node.accelerator_type,
                str(node.scheduling),
                node.run,
                node.owner,
                node.attempt,
                node.is_billing,
                as_of,
                as_of if node.state == NodeState.PREEMPTED else None,
            ),
        )
        self.has_changed = True
        if node.is_billing:
            self._add_span(name, created, begins_late=True)

    def _add_span(self, name: str, created: str, *, begins_late: bool) -> None:
        as_of = _text(self._as_of)
        self._database.execute(
            "INSERT OR IGNORE INTO span VALUES (?, ?, ?, ?, ?, 0)",
            (name, created, as_of, as_of, begins_late),
        )
        self.has_changed = True

    def _extend(self, name: str, created: str, *, ends_early: bool) -> None:
        self._database.execute(
            "UPDATE span SET end = ?, ends_early = ? WHERE name = ? AND created = ? AND start = "
            "(SELECT MAX(start) FROM span WHERE name = ? AND created = ?)",
            (_text(self._as_of), ends_early, name, created, name, created),
        )

    def _close(self, name: str, created: str, *, was_watched: bool) -> None:
        self.has_changed = True
        if was_watched:
            self._extend(name, created, ends_early=False)
            return
        self._database.execute(
            "UPDATE span SET ends_early = 1 WHERE name = ? AND created = ? AND start = "
            "(SELECT MAX(start) FROM span WHERE name = ? AND created = ?)",
            (name, created, name, created),
        )


def _lives(
    database: sqlite3.Connection, project: str, since: datetime | None
) -> tuple[NodeLife, ...]:
    spans: dict[tuple[str, str], list[ReadySpan]] = {}
    for row in database.execute(
        "SELECT span.* FROM span JOIN life USING (name, created) WHERE life.project = ? "
        "ORDER BY span.start",
        (project,),
    ):
        span = ReadySpan(
            _time(row["start"]),
            _time(row["end"]),
            begins_late=bool(row["begins_late"]),
            ends_early=bool(row["ends_early"]),
        )
        spans.setdefault((row["name"], row["created"]), []).append(span)
    found = database.execute(
        "SELECT * FROM life WHERE project = ? AND last_seen >= ? ORDER BY last_seen",
        (project, _text(since) if since else ""),
    ).fetchall()
    return tuple(_life(row, tuple(spans.get((row["name"], row["created"]), ()))) for row in found)


def _life(row: Any, spans: tuple[ReadySpan, ...]) -> NodeLife:
    return NodeLife(
        name=row["name"],
        create_time=_time(row["created"]) if row["created"] else None,
        accelerator_type=row["accelerator_type"],
        scheduling=Scheduling(row["scheduling"]),
        run=row["run"],
        owner=row["owner"],
        attempt=row["attempt"],
        spans=spans,
        is_open=bool(row["is_open"]),
        last_seen=_time(row["last_seen"]),
        preempted=_time(row["preempted"]) if row["preempted"] else None,
        gone=_time(row["gone"]) if row["gone"] else None,
    )


def _key(node: Node) -> tuple[str, str]:
    return node.name, _text(node.create_time) if node.create_time else ""


def _text(moment: datetime) -> str:
    """Return a time as text that sorts as time does."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _time(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%f%z")
