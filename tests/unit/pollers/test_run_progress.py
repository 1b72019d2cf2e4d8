"""What a run's log says outranks its record only where it is newer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tpudash.domain.log import LogEntry, Severity
from tpudash.domain.run import AttemptRecord, Run, RunState
from tpudash.pollers.run_progress import ProgressBook

START = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)


def entry(event: str, at_s: float = 10, attempt: int = 1, **payload: Any) -> LogEntry:
    return LogEntry(
        START + timedelta(seconds=at_s),
        Severity.INFO,
        event,
        run="demo",
        attempt=attempt,
        payload={"event": event, **payload},
    )


def run(heard_s: float = 0, attempt: int = 1, **facts: Any) -> Run:
    moment = START + timedelta(seconds=heard_s)
    record = AttemptRecord(
        run="demo",
        attempt=attempt,
        node=f"demo-{attempt}",
        state="TRAINING",
        started=START,
        updated=moment,
    )
    fields: dict[str, Any] = {"state": RunState.TRAINING, "step": 50, **facts}
    return Run("demo", "alice", attempts=(record,), last_heard=moment, **fields)


def laid(what: Run, *entries: LogEntry) -> Run:
    book = ProgressBook()
    book.take(entries)
    return book.laid_over(what)


def test_a_newer_step_moves_the_run_on() -> None:
    moved = laid(run(), entry("step", step=80.0, loss=0.25, examples_per_second=900))
    assert (moved.step, moved.loss, moved.examples_per_second) == (80, 0.25, 900)
    assert moved.last_heard == START + timedelta(seconds=10)


def test_an_older_step_changes_nothing() -> None:
    before = run(heard_s=20)
    assert laid(before, entry("step", step=80)) is before


def test_the_log_of_an_earlier_attempt_says_nothing_of_this_one() -> None:
    before = run(attempt=2, step=40)
    assert laid(before, entry("step", step=80, attempt=1)) is before


def test_a_new_attempt_begins_where_it_was_restored() -> None:
    moved = laid(
        run(step=80),
        entry("step", at_s=5, step=80),
        entry("restore", at_s=10, attempt=2, step=40),
    )
    assert (moved.step, moved.checkpoint_step) == (40, 40)


def test_a_late_entry_does_not_turn_the_clock_back() -> None:
    moved = laid(run(), entry("step", at_s=12, step=90), entry("step", at_s=11, step=85))
    assert moved.step == 90


@pytest.mark.parametrize("state", [RunState.FINISHED, RunState.FAILED, RunState.DELETED])
def test_a_run_that_ended_stays_as_it_ended(state: RunState) -> None:
    before = run(state=state)
    assert laid(before, entry("step", step=80)) is before


@pytest.mark.parametrize("step", [None, "80", True, float("nan"), float("inf"), 80.5, [1]])
def test_a_step_that_is_none_is_no_step(step: Any) -> None:
    assert laid(run(), entry("step", step=step)).step == 50


def test_turning_points_are_told_apart() -> None:
    book = ProgressBook()
    assert not book.take([entry("step", step=1), entry("checkpoint", step=1)])
    for event in ("start", "restore", "preempt", "error", "finish"):
        assert book.take([entry(event)])
