"""What the emulator remembers, in one SQLite file that survives kill -9."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from tpudash.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

_SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS records (
    kind TEXT NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL, extra TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS log_entries (sequence INTEGER PRIMARY KEY, value BLOB NOT NULL);
"""


class StateFile:
    """Named records of a few kinds, and the log entries.

    A write is with the operating system when the call returns: it survives the death of the
    process, though not that of the machine.
    """

    def __init__(self, path: Path, now: datetime) -> None:
        """Open or create the file; a damaged one is set aside under another name.

        Raises:
            ConfigurationError: The file was written by a newer emulator.
        """
        self._path = path
        try:
            self._database = self._open()
        except sqlite3.DatabaseError as error:
            self._set_aside(now, str(error))
            self._database = self._open()

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, isolation_level=None)
        try:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=OFF")
            _check_integrity(database)
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version <= _SCHEMA_VERSION:
                database.executescript(_SCHEMA)
                database.execute(f"PRAGMA user_version={_SCHEMA_VERSION}")
        except sqlite3.DatabaseError:
            database.close()
            raise
        if version > _SCHEMA_VERSION:
            database.close()
            raise ConfigurationError(
                f"{self._path} was written by a newer emulator",
                detail=f"its schema is {version}, this emulator knows {_SCHEMA_VERSION}",
                hint="update tpudash, or choose another --state-dir",
            )
        return database

    def _set_aside(self, now: datetime, reason: str) -> None:
        """Rename the damaged file, and say so: its content may still be wanted."""
        aside = self._path.with_name(f"{self._path.name}.corrupt-{now:%Y%m%dT%H%M%S%fZ}")
        self._path.rename(aside)
        for suffix in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                side_file = self._path.with_name(self._path.name + suffix)
                side_file.rename(aside.with_name(aside.name + suffix))
        print(  # noqa: T201  (told on stderr before any screen exists)
            f"tpudash emulator: state file {self._path} is damaged ({reason}); "
            f"set aside as {aside}, starting empty",
            file=sys.stderr,
            flush=True,
        )

    def start_over(self, now: datetime, reason: str) -> None:
        """Set a file aside whose records cannot be read, and begin an empty one."""
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._database.close()
        self._set_aside(now, reason)
        self._database = self._open()

    def put(self, kind: str, name: str, value: bytes, extra: str = "{}") -> None:
        """Write one record."""
        self._database.execute(
            "INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?)", (kind, name, value, extra)
        )

    def remove(self, kind: str, name: str) -> None:
        """Forget one record."""
        self._database.execute("DELETE FROM records WHERE kind = ? AND name = ?", (kind, name))

    def load(self, kind: str) -> Iterator[tuple[str, bytes, str]]:
        """Yield (name, value, extra) of every record of a kind."""
        rows = self._database.execute(
            "SELECT name, value, extra FROM records WHERE kind = ? ORDER BY name", (kind,)
        )
        yield from rows.fetchall()

    def append_log(self, entries: Iterable[tuple[int, bytes]]) -> None:
        """Write log entries under their sequence numbers."""
        self._database.execute("BEGIN")
        self._database.executemany("INSERT OR REPLACE INTO log_entries VALUES (?, ?)", entries)
        self._database.execute("COMMIT")

    def remove_log(self, sequences: Iterable[int]) -> None:
        """Forget log entries."""
        self._database.execute("BEGIN")
        self._database.executemany(
            "DELETE FROM log_entries WHERE sequence = ?", ((item,) for item in sequences)
        )
        self._database.execute("COMMIT")

    def load_log(self) -> Iterator[tuple[int, bytes]]:
        """Yield every log entry in the order of arrival."""
        rows = self._database.execute("SELECT sequence, value FROM log_entries ORDER BY sequence")
        yield from rows.fetchall()

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _check_integrity(database: sqlite3.Connection) -> None:
    (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise sqlite3.DatabaseError(verdict)
