"""Whether a run that serves a model does so fast enough and without errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.serving import summary, trouble
from tpudash.domain.run import RunState
from tpudash.domain.serving import ServingKind
from tpudash.store.snapshot import LOGS

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "serving-answers",
    "Model answers well",
    Scope.RUN,
    why="A server that answers late or with errors costs as much as one that does not.",
    rank=19,
    source=LOGS,
    group=Group.PROGRESS,
)


def check(evidence: Evidence) -> Finding:
    """Fail for errors, for slow answers, and for a server that is not ready."""
    run = evidence.run
    if run is None or run.state is not RunState.SERVING:
        return ABOUT.not_applicable(evidence, "no model is served" if run is None else run.state)
    keys = {(one.kind, one.name): one for one in evidence.serving}
    figures = keys.get((ServingKind.RUN, run.name))
    if figures is None:
        return ABOUT.unknown(evidence, "none of its figures were read")
    wrong = trouble(figures, evidence.serving_limits, evidence.now)
    if wrong:
        return ABOUT.failed(
            evidence,
            f"{wrong}; {summary(figures)}",
            advice="Read its log. More load than it can take shows as 429 and a long queue: use a "
            "larger --max_batch or a second server.",
            action="pane-logs",
            command=f"tpudash logs {run.name}",
        )
    return ABOUT.passed(evidence, summary(figures))
