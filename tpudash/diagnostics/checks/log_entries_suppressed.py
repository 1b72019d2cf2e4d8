"""Whether Cloud Logging sent everything that was written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Scope
from tpudash.store.snapshot import LOGS, SourceState

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "log-entries-suppressed",
    "Cloud Logging sends every entry",
    Scope.PROJECT,
    why="A tail leaves entries out when there are too many; the list has them all.",
    rank=66,
    source=LOGS,
)


def check(evidence: Evidence) -> Finding:
    """Warn when the tail left entries out."""
    count = evidence.suppressed_log_entries
    if count:
        return ABOUT.warned(
            evidence,
            f"at least {count:,} entries were left out of the tail",
            advice="Read the run's log from its beginning instead, or filter it.",
            command="tpudash logs RUN --since 1h",
        )
    source = evidence.snapshot.sources.get(LOGS)
    if source is None or source.state is not SourceState.OK:
        return ABOUT.unknown(evidence, "the log is not being read")
    return ABOUT.passed(evidence, "none was left out")
