"""Causes are named where they are told of, and the earliest specific one is the root."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tpudash.domain.failure import ErrorClass
from tpudash.domain.log import LogEntry, Severity
from tpudash.store.log_ring import LogRing
from tpudash.tui.widgets.log_causes import CauseBook

NOW = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)
HBM = (
    "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. "
    "Used 17.50G of 15.48G hbm. Exceeded hbm capacity by 2.02G."
)
LOST = "UNAVAILABLE: failed to connect to all addresses; last error: Connection refused"


def make_entry(second: float, text: str, worker: str, **more: Any) -> LogEntry:
    return LogEntry(
        NOW + timedelta(seconds=second),
        Severity.ERROR,
        text,
        insert_id=f"{second}-{worker}",
        node_id="demo-1",
        worker_id=worker,
        run="demo",
        attempt=more.pop("attempt", 1),
        **more,
    )


def judged(ring: LogRing, book: CauseBook) -> None:
    book.sync()
    while book.is_busy:
        book.sync()


def test_the_earliest_specific_line_of_all_workers_is_the_root() -> None:
    ring = LogRing()
    book = CauseBook(ring)
    ring.add([make_entry(5, LOST, "0"), make_entry(6, "something odd happened", "1")])
    judged(ring, book)
    assert book.roots()[0].error_class in {ErrorClass.CONNECT, ErrorClass.INTERNAL}
    # The worker that failed first is heard last.
    ring.add([make_entry(7, HBM, "2"), make_entry(3, HBM, "3")])
    judged(ring, book)
    (root,) = book.roots()
    assert (root.error_class, root.worker_id) == (ErrorClass.HBM_OOM, "3")
    assert root.advice
    tags = sorted(book.tags.values())
    assert tags.count("cause: HBM_OOM") == 1
    assert "HBM_OOM" in tags


def test_attempts_have_causes_of_their_own() -> None:
    ring = LogRing()
    book = CauseBook(ring)
    ring.add([make_entry(1, HBM, "0"), make_entry(9, HBM, "1", attempt=2)])
    judged(ring, book)
    assert [root.group for root in book.roots()] == [("demo", 2), ("demo", 1)]
    found = book.root_of(("demo", 2))
    assert found is not None
    assert found.worker_id == "1"


def test_a_flood_of_errors_is_judged_a_little_at_a_time() -> None:
    ring = LogRing()
    book = CauseBook(ring)
    ring.add(
        make_entry(at / 100, f"error {at} of many: {'abcdefgh'[at % 8]}", "0")
        for at in range(9_000)
    )
    book.sync()
    judged(ring, book)
    assert book.roots() == []
