"""Whether memory ran out: the chips' own, or the host's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.advice import more_memory
from tpudash.diagnostics.cause_check import NOTHING_HEARD, told, without_attempt
from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.log_causes import newest_cause
from tpudash.domain.failure import ErrorClass
from tpudash.store.snapshot import LOGS

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.diagnostics.log_causes import Cause
    from tpudash.domain.finding import Finding
    from tpudash.domain.run import Run

ABOUT: Final = About(
    "out-of-memory",
    "Memory is enough",
    Scope.RUN,
    why="The chips' memory and the host's run out for different reasons, and both come back.",
    rank=11,
    source=LOGS,
    group=Group.MEMORY,
)
CLASSES: Final = frozenset({ErrorClass.HBM_OOM, ErrorClass.HOST_OOM})
SYMPTOMS: Final = frozenset({"HBM_OUT_OF_MEMORY", "OUT_OF_MEMORY", "LOW_MEMORY"})
ON_HOST: Final = (
    "The host's memory ran out, not the chips': use a smaller shuffle buffer and cache, fewer "
    "parallel calls, or look for what grows."
)
ON_CHIP: Final = (
    "The chips' memory is too small for this, and will be after a resume too: use a smaller "
    "--batch_size, gradient accumulation, or bfloat16."
)


def check(evidence: Evidence) -> Finding:
    """Fail for a line that says so, warn of a node's symptom."""
    run = evidence.run
    pointless = without_attempt(ABOUT, evidence)
    if run is None or pointless is not None:
        return pointless or ABOUT.not_applicable(evidence, "no run is asked about")
    cause = newest_cause(evidence, CLASSES)
    if cause is not None:
        return _judge(run, cause, evidence)
    node = evidence.newest_node()
    symptoms = [one for one in node.symptoms if one.kind in SYMPTOMS] if node else []
    if symptoms:
        kinds = ", ".join(f"{one.kind} on worker {one.worker_id or '?'}" for one in symptoms)
        return ABOUT.warned(
            evidence,
            f"the node's symptoms: {kinds}",
            advice="Read the log of that worker.",
            action="pane-logs",
            command=f"tpudash logs {run.name}",
        )
    if not evidence.logs and not run.attempts:
        return ABOUT.unknown(evidence, NOTHING_HEARD)
    return ABOUT.passed(evidence, "no line of its log and no symptom says that it ran out")


def _judge(run: Run, cause: Cause, evidence: Evidence) -> Finding:
    is_chip = cause.error_class is ErrorClass.HBM_OOM
    advice = [cause.advice or (ON_CHIP if is_chip else ON_HOST), "" if is_chip else ON_HOST]
    spec = run.spec
    if is_chip and spec is not None:
        advice.append(
            more_memory(spec.accelerator_type, spec.zone, spec.scheduling, evidence.prices)
        )
    said = " ".join(dict.fromkeys(part for part in advice if part))
    return told(ABOUT, evidence, run, cause, advice=said)
