"""The checklist over recorded preemptions, at each moment at which anything became known.

In `older_listing.rec` runs are read with an older listing of nodes, so that their states say for a
moment that a node vanished which is too new to be listed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

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
    from pathlib import Path

OLDER_LISTING: Final = PREEMPTION.with_name("older_listing.rec")
PREEMPTED, RESUMED = "rough-1", "rough-2"
CHECKS: Final = tuple(
    check
    for check in load_checks()
    if check.about.check_id in {"run-preempted", "resumed-from-zero", "run-stalled", "run-failed"}
)


def moments(path: Path) -> Iterator[tuple[bool, list[Finding]]]:
    """Yield whether the preemption is known, and what failed, after each change of the world."""
    store, is_known = Store(), False
    recording = Recording(path)
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


@pytest.mark.parametrize("path", [PREEMPTION, OLDER_LISTING], ids=lambda path: path.stem)
def test_only_the_node_that_was_preempted_is_ever_called_so(path: Path) -> None:
    told = 0
    for is_known, failed in moments(path):
        assert is_known or not failed, [row.evidence for row in failed]
        for row in failed:
            assert row.check_id == "run-preempted"
            assert row.evidence.startswith(f"{PREEMPTED} was PREEMPTED"), row.evidence
            assert RESUMED not in row.evidence
            told += 1
    assert told > 3
    assert not failed, "the resumed run trains again at the end"
