"""Whether the Prometheus endpoints that the settings name tell of good service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.serving import summary, trouble
from tpudash.diagnostics.words import counted
from tpudash.domain.serving import ServingKind
from tpudash.store.snapshot import ENDPOINTS

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "endpoints-answer",
    "Serving endpoints are well",
    Scope.PROJECT,
    why="They are watched because somebody depends on them.",
    rank=21,
    source=ENDPOINTS,
    group=Group.PROGRESS,
)


def check(evidence: Evidence) -> Finding:
    """Fail for the endpoints that are late, wrong or silent, each named."""
    endpoints = [one for one in evidence.serving if one.kind is ServingKind.ENDPOINT]
    if not endpoints:
        return ABOUT.not_applicable(evidence, "the settings name none, or none was read yet")
    wrong = {
        one.name: words
        for one in endpoints
        if (words := trouble(one, evidence.serving_limits, evidence.now))
    }
    if wrong:
        return ABOUT.failed(
            evidence,
            "; ".join(f"{name}: {words}" for name, words in list(wrong.items())[:5]),
            advice="See what they log; the limits are in the settings, under [serving].",
        )
    if len(endpoints) == 1:
        return ABOUT.passed(evidence, f"{endpoints[0].name}: {summary(endpoints[0])}")
    return ABOUT.passed(evidence, f"{counted(len(endpoints), 'endpoint')} within their limits")
