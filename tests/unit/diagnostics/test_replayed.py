"""The checklist over a recorded preemption, at each moment at which anything became known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.unit.diagnostics.cases import BOOK
from tests.unit.store.test_recording import PREEMPTION
from tpudash.diagnostics.checklist import load_checks, run_checklist
from tpudash.diagnostics.evidence import gather
from tpudash.domain.finding import Finding, Verdict
from tpudash.store.changes import FindingsMade, NodesListed, RunsRead
from tpudash.store.recording_reader import Recording
from tpudash.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

PREEMPTED, RESUMED = "rough-1", "rough-2"
CHECKS: Final = tuple(
    check
    for check in load_checks()
    if check.about.check_id in {"run-preempted", "resumed-from-zero", "run-stalled", "run-failed"}
)


def moments() -> Iterator[tuple[bool, list[Finding]]]:
    """Yield whether the preemption is known, and what failed, after each change of the world."""
    store, is_known = Store(), False
    recording = Recording(PREEMPTION)
    for place, change in enumerate(recording.changes(0, len(recording))):
        if isinstance(change, FindingsMade):
            continue
        store.apply(change)
        is_known |= any(node.is_dead for node in store.snapshot.nodes.values())
        is_known |= any(
            record.state == "PREEMPTED"
            for run in store.snapshot.runs.values()
            for record in run.attempts
        )
        if isinstance(change, NodesListed | RunsRead):
            rows = run_checklist(gather(store, BOOK, recording.time_of(place)), CHECKS)
            yield is_known, [row for row in rows if row.verdict is Verdict.FAIL]
    recording.close()


def test_only_the_node_that_was_preempted_is_ever_called_so() -> None:
    told = 0
    for is_known, failed in moments():
        assert is_known or not failed, [row.evidence for row in failed]
        for row in failed:
            assert row.check_id == "run-preempted"
            assert row.evidence.startswith(f"{PREEMPTED} was PREEMPTED"), row.evidence
            assert RESUMED not in row.evidence
            told += 1
    assert told > 3
    assert not failed, "the resumed run trains again at the end"
