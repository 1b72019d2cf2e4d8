"""What a run's log and records name as causes of trouble, and whether the run got over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.advice import advice_on_class, describe_error
from tpudash.diagnostics.classifier import classify_text
from tpudash.domain.failure import ErrorClass
from tpudash.domain.log import Severity
from tpudash.domain.run import RunState

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from datetime import datetime

    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.log import LogEntry

MOST_LINES: Final = 300
LOUD: Final = frozenset({Severity.WARNING, Severity.ERROR, Severity.CRITICAL})
STREAMS: Final = frozenset({"stderr", "startup", "agent"})
SETTLED: Final = frozenset({RunState.FINISHED, RunState.DELETED})


@dataclass(frozen=True, slots=True)
class Cause:
    """Something that a log line or a record names as the cause of trouble.

    Attributes:
        words: The line itself, as short as it tells.
        advice: What helps.
        when: When it was said, or None.
        is_overcome: Whether training went on after it.
    """

    error_class: ErrorClass
    words: str
    advice: str
    when: datetime | None
    is_overcome: bool = False


def newest_cause(evidence: Evidence, classes: Collection[ErrorClass]) -> Cause | None:
    """Return the newest cause of one of some classes, or None.

    A cause that training got over comes only where there is no other.
    """
    found = [cause for cause in causes_of(evidence) if cause.error_class in classes]
    open_ones = [cause for cause in found if not cause.is_overcome]
    chosen = open_ones or found
    return chosen[-1] if chosen else None


def causes_of(evidence: Evidence) -> tuple[Cause, ...]:
    """Return every cause that the newest attempt of the run names, oldest first.

    They are worked out once for each run and looking.
    """
    if evidence.run is None:
        return ()
    if "causes" not in evidence.memo:
        evidence.memo["causes"] = tuple(_find(evidence))
    kept: tuple[Cause, ...] = evidence.memo["causes"]
    return kept


def _find(evidence: Evidence) -> Iterator[Cause]:
    attempt, run = evidence.attempt, evidence.run
    number = attempt.attempt if attempt else None
    went_on = _last_step(evidence, number)
    is_settled = run is not None and run.state in SETTLED
    for entry in _lines(evidence.logs, number):
        for error_class, words, advice in _read(entry):
            is_over = is_settled or (went_on is not None and went_on > entry.timestamp)
            yield Cause(error_class, words, advice, entry.timestamp, is_overcome=is_over)
    if attempt is not None and attempt.error:
        error_class, detail, hint = describe_error(attempt.error)
        if error_class is ErrorClass.UNCLASSIFIED:
            return
        when = attempt.ended or attempt.updated
        yield Cause(
            error_class, detail, hint or advice_on_class(error_class), when, is_overcome=is_settled
        )


def _last_step(evidence: Evidence, attempt: int | None) -> datetime | None:
    steps = (
        entry.timestamp
        for entry in evidence.logs
        if entry.event == "step" and entry.attempt in {None, attempt}
    )
    return max(steps, default=None)


def _lines(logs: Iterable[LogEntry], attempt: int | None) -> list[LogEntry]:
    """Return the lines of an attempt that may name a cause, the newest of them."""
    wanted = [
        entry
        for entry in logs
        if entry.attempt in {None, attempt}
        and (
            entry.event == "error"
            or (entry.event is None and (entry.severity in LOUD or entry.stream in STREAMS))
        )
    ]
    return wanted[-MOST_LINES:]


def _read(entry: LogEntry) -> Iterator[tuple[ErrorClass, str, str]]:
    if entry.event == "error" and entry.payload:
        error_class, detail, hint = describe_error(entry.payload)
        if error_class is not ErrorClass.UNCLASSIFIED:
            yield error_class, detail or entry.text, hint or advice_on_class(error_class)
            return
    for failure in classify_text(entry.text):
        if failure.error_class is not ErrorClass.UNCLASSIFIED:
            yield failure.error_class, failure.evidence, failure.advice
