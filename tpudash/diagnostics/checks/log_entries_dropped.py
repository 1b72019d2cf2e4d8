"""Whether everything that a run wrote reached the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Scope
from tpudash.store.snapshot import RUNS

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "log-entries-dropped",
    "No log entry of the run was dropped",
    Scope.RUN,
    why="The line that names a cause may be among those that are missing.",
    rank=65,
    source=RUNS,
)


def check(evidence: Evidence) -> Finding:
    """Warn when an agent could not keep all that it had to send."""
    run = evidence.run
    if run is None or not run.attempts:
        return ABOUT.not_applicable(evidence, "no attempt has begun")
    dropped = {
        record.node: record.log_entries_dropped
        for record in run.attempts
        if record.log_entries_dropped
    }
    if not dropped:
        return ABOUT.passed(evidence, "its agents dropped none")
    text = ", ".join(f"{count:,} on {node}" for node, count in dropped.items())
    return ABOUT.warned(
        evidence,
        f"dropped before they reached Cloud Logging: {text}",
        advice="The node was cut off from Cloud Logging for longer than its agent can keep "
        "lines. What the trainer wrote is still in events.jsonl on the node.",
    )
