"""Whether this machine's clock and the cloud's agree."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.words import span
from tpudash.store.snapshot import LOGS

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "clocks-agree",
    "Clocks agree",
    Scope.PROJECT,
    why="Ages, costs and stalls are told by comparing clocks.",
    rank=36,
    source=LOGS,
    group=Group.BASICS,
)
TOLERATED: Final = timedelta(seconds=30)


def check(evidence: Evidence) -> Finding:
    """Warn of anything that is dated later than now."""
    times = [entry.timestamp for entry in evidence.logs[-200:]]
    times += [node.create_time for node in evidence.snapshot.nodes.values() if node.create_time]
    times += [
        record.updated for run in evidence.snapshot.runs.values() for record in run.attempts[-1:]
    ]
    if not times:
        return ABOUT.unknown(evidence, "nothing that is dated was read yet")
    ahead = max(times) - evidence.now
    if ahead > TOLERATED:
        return ABOUT.warned(
            evidence,
            f"something is dated {span(ahead)} from now",
            advice="Set this machine's clock by the network; until then costs are reckoned up to "
            "its own time.",
            command="timedatectl status   # on macOS: sudo sntp -sS time.apple.com",
        )
    return ABOUT.passed(evidence, "nothing is dated later than now")
