"""Whether quota is left for what runs and waits, and what holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.failed_operations import (
    failure_of_operation,
    failure_of_spec,
    newest_creation,
)
from tpudash.diagnostics.quota import holders_in, limits_for, used_by
from tpudash.diagnostics.words import counted
from tpudash.domain.accelerator import load_catalog
from tpudash.domain.failure import ErrorClass
from tpudash.domain.probe import ProbeKey, ProbeKind
from tpudash.domain.run import AT_WORK, RunState

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding
    from tpudash.domain.run import RunSpec


def _probe(evidence: Evidence) -> ProbeKey | None:
    is_asked = evidence.run and evidence.run.spec and not evidence.is_emulator
    return ProbeKey(ProbeKind.QUOTA) if is_asked else None


ABOUT: Final = About(
    "quota-room",
    "Quota is left",
    Scope.RUN,
    why="A zone's and a region's quota must both have room, and dead nodes and requests fill them.",
    rank=7,
    group=Group.CREATION,
    probe=_probe,
)
CONSOLE: Final = "https://console.cloud.google.com/iam-admin/quotas?service=tpu.googleapis.com"


def check(evidence: Evidence) -> Finding:
    """Fail where the cloud refused for quota or a limit has no room, naming what holds it."""
    run = evidence.run
    spec = run.spec if run else None
    if run is None or spec is None:
        return ABOUT.not_applicable(evidence, "no run is asked about")
    if run.state in {*AT_WORK, RunState.FINISHED, RunState.DELETED}:
        return ABOUT.not_applicable(evidence, f"it is {run.state}")
    refused = _refused(evidence)
    held = _held(spec, evidence)
    if refused:
        return ABOUT.failed(
            evidence,
            f"{refused}{held}",
            advice="Waiting does not help. Free what holds it, or ask for more; zone and region "
            "have limits of their own.",
            command=f"tpudash clean   # or {CONSOLE}",
        )
    if evidence.is_emulator:
        return ABOUT.not_applicable(evidence, "the emulator lists no limits, and refused nothing")
    answer = ABOUT.answer(evidence)
    if answer is None or not isinstance(answer.value, tuple):
        return ABOUT.unanswered(
            evidence, command="gcloud beta quotas info list --service=tpu.googleapis.com"
        )
    return _judge(spec, evidence, held)


def _judge(spec: RunSpec, evidence: Evidence, held: str) -> Finding:
    kind = load_catalog().find(spec.accelerator_type)
    answer = ABOUT.answer(evidence)
    limits = limits_for(spec, answer.value if answer else ())
    if kind is None or not limits:
        return ABOUT.unknown(evidence, "no limit is known for this type and place")
    tightest = min(limits, key=lambda limit: limit.limit - used_by(limit, spec, evidence.snapshot))
    used = used_by(tightest, spec, evidence.snapshot)
    room = tightest.limit - used
    text = (
        f"{tightest.quota_id} in {tightest.place or spec.zone}: {used:,.0f} of "
        f"{tightest.limit:,.0f} in use{held}"
    )
    needed = kind.chips if kind.name.startswith(("v5lite", "v6e")) else kind.cores
    if room < needed:
        return ABOUT.failed(
            evidence,
            text,
            advice="There is no room for it. Free what holds it, or ask for more.",
            command=f"tpudash clean   # or {CONSOLE}",
        )
    return ABOUT.passed(evidence, text)


def _refused(evidence: Evidence) -> str:
    run = evidence.run
    if run is None:
        return ""
    progress = newest_creation(evidence.snapshot, run.name)
    failure = failure_of_operation(progress) if progress else failure_of_spec(run.spec)
    if failure is None or failure.error_class is not ErrorClass.QUOTA:
        return ""
    return failure.words


def _held(spec: RunSpec, evidence: Evidence) -> str:
    holders = holders_in(spec, evidence.snapshot)
    if not holders:
        return ""
    named = ", ".join(
        f"{name} ({counted(chips, 'chip')}, {state})" for name, chips, state in holders[:5]
    )
    more = f" and {len(holders) - 5} more" if len(holders) > 5 else ""
    return f"; held by {named}{more}"
