"""Runs that were begun on this machine, from the journal's own lines, for those who only read.

Whoever only reads must not import operations, so the lines are read here as what they are: JSON.
The journal is written by `tpudash.operations.journal`.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final

from tpudash.domain.run import RecordError, RunSpec, decode_spec

if TYPE_CHECKING:
    from pathlib import Path

logger = logging.getLogger(__name__)

MOST_BYTES: Final = 32 * 1024 * 1024


class KnownRuns:
    """The newest spec of each run in a journal; the file is read again only when it has changed.

    Args:
        journal: The journal's file; it does not have to exist.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._read_as: tuple[int, int, int] | None = None
        self._specs: tuple[RunSpec, ...] = ()

    def specs(self, project: str) -> tuple[RunSpec, ...]:
        """Return the runs of a project. What can't be read is left out, and logged."""
        try:
            status = self._journal.stat()
            as_now = (status.st_ino, status.st_mtime_ns, status.st_size)
            if as_now != self._read_as:
                self._specs = self._read(status.st_size)
                self._read_as = as_now
        except FileNotFoundError:
            return ()
        except OSError as error:
            logger.warning("the journal can't be read: %s", error)
        return tuple(spec for spec in self._specs if spec.project == project)

    def _read(self, size: int) -> tuple[RunSpec, ...]:
        with self._journal.open("rb") as file:
            file.seek(max(0, size - MOST_BYTES))
            lines = file.read(MOST_BYTES).splitlines()
        specs: dict[tuple[str, str, str], RunSpec] = {}
        for line in lines:
            spec = _spec_of(line)
            if spec is not None:
                specs[spec.project, spec.run, spec.run_url] = spec
        return tuple(specs.values())


def _spec_of(line: bytes) -> RunSpec | None:
    if b'"spec"' not in line:
        return None
    try:
        record: dict[str, Any] = json.loads(line)
        return decode_spec(record["spec"]) if record.get("event") == "spec" else None
    except (ValueError, RecordError, KeyError, AttributeError, TypeError) as error:
        logger.info("a line of the journal can't be used: %s", error)
        return None
