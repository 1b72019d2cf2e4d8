"""Whether the services that the facts come from answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Scope
from tpudash.diagnostics.words import ago
from tpudash.store.snapshot import LOGS, METRICS, NODES, REQUESTS, RUNS, SourceState

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding
    from tpudash.store.snapshot import SourceStatus

ABOUT: Final = About(
    "api-answers",
    "Google's services answer",
    Scope.PROJECT,
    why="What does not answer is shown as it last was, and everything below rests on it.",
    rank=0,
)
NEEDED: Final = (NODES, REQUESTS, RUNS, METRICS, LOGS)
"""Without live prices the bundled ones are used, and this list is a source of its own."""


def check(evidence: Evidence) -> Finding:
    """Fail without the nodes, warn without any other source."""
    sources = evidence.snapshot.sources
    known = [sources[name] for name in NEEDED if name in sources]
    failing = [status for status in known if status.state is SourceState.FAILING]
    if failing:
        text = "; ".join(_describe(status, evidence.now) for status in failing)
        hints = dict.fromkeys(status.hint for status in failing if status.hint)
        advice = " ".join(hints) or "Check the network, the sign-in and the project."
        judged = ABOUT.failed if failing[0].name == NODES else ABOUT.warned
        return judged(evidence, text, advice=advice)
    slowed = [status for status in known if status.state is SourceState.THROTTLED]
    if slowed:
        pace = ", ".join(f"{status.name} every {status.interval_s:.0f} s" for status in slowed)
        return ABOUT.warned(
            evidence,
            f"Google wants fewer calls, so that some sources are asked less often now: {pace}",
            advice="It passes by itself. Other programs may use the same quota; longer [intervals]"
            " in the settings leave them more of it.",
        )
    silent = [status.name for status in known if status.state is SourceState.WAITING]
    if silent or not known:
        return ABOUT.unknown(evidence, f"nothing was heard yet of {', '.join(silent or NEEDED)}")
    return ABOUT.passed(evidence, f"{', '.join(status.name for status in known)} answer")


def _describe(status: SourceStatus, now: datetime) -> str:
    words = ": ".join(part for part in (status.title, status.detail) if part)
    heard = (
        f"last answered {ago(status.last_success, now)}"
        if status.last_success
        else ("never answered")
    )
    return f"{status.name}: {words or 'failing'} ({heard})"
