"""The logs that agents left in the bucket, for attempts of which Cloud Logging has nothing.

An agent writes the newest part of its log to `attempts/<n>.log` (worker 0) and
`attempts/<n>.<worker>.log`, a JSON object a line; the first line says whose it is.
"""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING, Any, Final

from tpudash.domain.run import AttemptState
from tpudash.errors import TpudashError
from tpudash.logtext.entries import entry_of_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tpudash.domain.log import LogEntry
    from tpudash.domain.run import Run
    from tpudash.gateways.protocols import BucketGateway, Cloud
    from tpudash.store.store import Store

logger = logging.getLogger(__name__)

MOST_ATTEMPTS: Final = 50
"""Attempts whose logs are fetched in one session, the newest of each run first."""
MOST_BYTES: Final = 2 * 1024 * 1024
_FILE: Final = re.compile(r"(?P<attempt>\d{1,6})(?:\.\d{1,5})?\.log")
_OVER: Final = frozenset({AttemptState.FINISHED, AttemptState.PREEMPTED, AttemptState.FAILED})


class LogArchive:
    """Finds attempts that are over and of which the log knows nothing, and reads them once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._asked: set[tuple[str, int]] = set()

    async def missing(self, cloud: Cloud) -> list[tuple[LogEntry, ...]]:
        """Return the entries of attempts that were not heard of otherwise; faults only delay."""
        found: list[tuple[LogEntry, ...]] = []
        for run in self._store.snapshot.runs.values():
            wanted = self._wanted(run)
            if not wanted or run.spec is None:
                continue
            try:
                found += await read_archive(cloud.bucket, run.spec.run_url, wanted)
            except TpudashError as error:
                logger.info("the log of %s can't be read from its bucket: %s", run.name, error)
            self._asked |= {(run.name, attempt) for attempt in wanted}
        return found

    def _wanted(self, run: Run) -> frozenset[int]:
        known = {(source.run, source.attempt) for source in self._store.logs.sources}
        over = [
            record.attempt
            for record in run.attempts
            if record.state in _OVER
            and (run.name, record.attempt) not in known
            and (run.name, record.attempt) not in self._asked
        ]
        room = max(0, MOST_ATTEMPTS - len(self._asked))
        return frozenset(sorted(over, reverse=True)[:room])


async def read_archive(
    bucket: BucketGateway, run_url: str, attempts: frozenset[int] | None = None
) -> list[tuple[LogEntry, ...]]:
    """Read the logs that agents left of some attempts, or of all; one tuple for each file.

    Raises:
        TpudashError: The bucket can't be read.
    """
    found = []
    for url in await bucket.list(f"{run_url}/attempts"):
        match = _FILE.fullmatch(url.rstrip("/").rsplit("/", 1)[-1])
        if match is None or (attempts is not None and int(match["attempt"]) not in attempts):
            continue
        data = await bucket.read(url)
        if data is not None:
            found.append(parse_archive(data))
    return found


def parse_archive(data: bytes) -> tuple[LogEntry, ...]:
    """Return the entries of one file; lines that are no JSON object are left out."""
    head: dict[str, Any] = {}
    entries = []
    for value in _objects(data[:MOST_BYTES]):
        if "tpudash-log" in value:
            head = value
        else:
            entries.append(_entry(value, head))
    return tuple(entries)


def _objects(data: bytes) -> Iterator[dict[str, Any]]:
    for line in data.split(b"\n"):
        try:
            value = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def _entry(value: dict[str, Any], head: dict[str, Any]) -> LogEntry:
    labels = {"tpudash-run": head.get("run"), "tpudash-attempt": head.get("attempt")}
    place = {name: head.get(name) for name in ("node", "zone", "worker")}
    return entry_of_json({**place, "labels": labels, **value})


def merged(files: Sequence[tuple[LogEntry, ...]]) -> list[LogEntry]:
    """Return the entries of several files as one list in order of time."""
    return sorted((entry for file in files for entry in file), key=lambda entry: entry.timestamp)
