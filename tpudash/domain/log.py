"""Log entries of nodes, wherever they were read from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


class Severity(StrEnum):
    """`LogSeverity` of Cloud Logging, in rising order."""

    DEFAULT = "DEFAULT"
    DEBUG = "DEBUG"
    INFO = "INFO"
    NOTICE = "NOTICE"
    WARNING = "WARNING"
    ERROR = "ERROR"
    CRITICAL = "CRITICAL"
    ALERT = "ALERT"
    EMERGENCY = "EMERGENCY"

    @property
    def rank(self) -> int:
        """Place in the order of severities, 0 for DEFAULT."""
        return tuple(Severity).index(self)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One entry. All text comes from outside and may hold anything.

    Attributes:
        insert_id: Unique within project, log and timestamp; entries that share all are the same.
        node_id: Node that wrote it, or "" for entries that are not of a worker.
        stream: `event`, `stdout`, `stderr`, `agent`, `startup`, or "" if unknown.
        text: What to show: the text payload, or the `message` of a structured one.
        payload: The structured payload, if it had one.
    """

    timestamp: datetime
    severity: Severity
    text: str
    insert_id: str = ""
    node_id: str = ""
    zone: str = ""
    worker_id: str = ""
    run: str | None = None
    attempt: int | None = None
    stream: str = ""
    payload: Mapping[str, Any] | None = None

    @property
    def event(self) -> str | None:
        """The trainer event's name, if the entry is one."""
        name = self.payload.get("event") if self.payload else None
        return name if isinstance(name, str) else None
