"""The index of buckets and objects: one SQLite file that survives kill -9."""

from __future__ import annotations

import json
import sqlite3
import sys
from typing import TYPE_CHECKING, Any

from tpudash.emulator.storage.objects import Bucket, StoredObject

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SCHEMA = """
CREATE TABLE IF NOT EXISTS buckets (
    name TEXT PRIMARY KEY, project TEXT NOT NULL, location TEXT NOT NULL, created TEXT NOT NULL,
    updated TEXT NOT NULL, metageneration INTEGER NOT NULL, extra TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS objects (
    bucket TEXT NOT NULL, name BLOB NOT NULL, generation INTEGER NOT NULL,
    metageneration INTEGER NOT NULL, size INTEGER NOT NULL, crc32c TEXT NOT NULL, md5 TEXT NOT NULL,
    created TEXT NOT NULL, updated TEXT NOT NULL, extra TEXT NOT NULL, PRIMARY KEY (bucket, name)
) WITHOUT ROWID;
"""
_OBJECT = "bucket, name, generation, metageneration, size, crc32c, md5, created, updated, extra"
_BATCH = 500


class Index:
    """Records of buckets and objects; names are ordered by their UTF-8 bytes as in the cloud."""

    def __init__(self, path: Path) -> None:
        """Open or create the file; a damaged one is set aside."""
        try:
            self._database = _open(path)
        except sqlite3.DatabaseError as error:
            aside = path.with_name(f"{path.name}.corrupt")
            path.replace(aside)
            text = f"tpudash emulator: {path} is damaged ({error}); set aside as {aside}"
            print(text, file=sys.stderr, flush=True)  # noqa: T201  (told before any screen exists)
            self._database = _open(path)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def newest_generation(self) -> int:
        """Return the highest generation of all objects, 0 without any."""
        (newest,) = self._database.execute("SELECT max(generation) FROM objects").fetchone()
        return int(newest or 0)

    # --------------------------------------------------------------- buckets

    def bucket(self, name: str) -> Bucket | None:
        """Return a bucket, or None."""
        row = self._database.execute("SELECT * FROM buckets WHERE name = ?", (name,)).fetchone()
        return _bucket(row) if row else None

    def buckets(self, project: str, prefix: str) -> list[Bucket]:
        """Return the buckets of a project whose names begin with a prefix, by name."""
        rows = self._database.execute(
            "SELECT * FROM buckets WHERE project = ? ORDER BY name", (project,)
        )
        return [_bucket(row) for row in rows if row[0].startswith(prefix)]

    def put_bucket(self, bucket: Bucket) -> None:
        """Write a bucket."""
        row = (
            bucket.name,
            bucket.project,
            bucket.location,
            bucket.created,
            bucket.updated,
            bucket.metageneration,
            json.dumps(bucket.extra),
        )
        self._database.execute("INSERT OR REPLACE INTO buckets VALUES (?,?,?,?,?,?,?)", row)

    def remove_bucket(self, name: str) -> None:
        """Forget a bucket."""
        self._database.execute("DELETE FROM buckets WHERE name = ?", (name,))

    # --------------------------------------------------------------- objects

    def get(self, bucket: str, name: str) -> StoredObject | None:
        """Return an object, or None."""
        row = self._database.execute(
            f"SELECT {_OBJECT} FROM objects WHERE bucket = ? AND name = ?",  # noqa: S608  (constant)
            (bucket, name.encode()),
        ).fetchone()
        return _object(row) if row else None

    def put(self, item: StoredObject) -> None:
        """Write an object."""
        row = (
            item.bucket,
            item.name.encode(),
            item.generation,
            item.metageneration,
            item.size,
            item.crc32c,
            item.md5,
            item.created,
            item.updated,
            json.dumps(item.extra),
        )
        self._database.execute("INSERT OR REPLACE INTO objects VALUES (?,?,?,?,?,?,?,?,?,?)", row)

    def remove(self, bucket: str, name: str) -> None:
        """Forget an object."""
        self._database.execute(
            "DELETE FROM objects WHERE bucket = ? AND name = ?", (bucket, name.encode())
        )

    def scan(self, bucket: str, start: bytes) -> Iterator[StoredObject]:
        """Yield the objects of a bucket from a name on, in name order.

        A new query every few hundred rows, so that changes in between do no harm.
        """
        while True:
            rows = self._database.execute(
                f"SELECT {_OBJECT} FROM objects WHERE bucket = ? AND name >= ? "  # noqa: S608  (constant)
                "ORDER BY name LIMIT ?",
                (bucket, start, _BATCH),
            ).fetchall()
            yield from map(_object, rows)
            if len(rows) < _BATCH:
                return
            start = rows[-1][1] + b"\0"


def _open(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None)
    try:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=OFF")
        database.executescript(_SCHEMA)
    except sqlite3.DatabaseError:
        database.close()
        raise
    return database


def _bucket(row: tuple[Any, ...]) -> Bucket:
    values: list[Any] = [*row[:-1], json.loads(row[-1])]
    return Bucket(*values)


def _object(row: tuple[Any, ...]) -> StoredObject:
    values: list[Any] = [row[0], bytes(row[1]).decode(), *row[2:-1], json.loads(row[-1])]
    return StoredObject(*values)
