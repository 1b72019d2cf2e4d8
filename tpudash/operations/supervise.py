"""Supervise: the plan to have a run resumed by itself, and the plan to end that."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from tpudash.domain.failure import ErrorClass
from tpudash.domain.operation import OperationKind, Plan, PlanStep
from tpudash.domain.run import RunState, encode_record
from tpudash.errors import NotFoundError, UsageError
from tpudash.operations import calls
from tpudash.operations.changes import changed_spec
from tpudash.operations.lease import is_in_force, lease_url, read_lease, supervised_already
from tpudash.operations.payload import StandDownPayload, SupervisePayload
from tpudash.operations.refusals import refused
from tpudash.operations.resume import find_run

if TYPE_CHECKING:
    from tpudash.domain.operation import SupervisionWish
    from tpudash.domain.run import RunSpec
    from tpudash.operations.course import Course
    from tpudash.operations.desk import Desk
    from tpudash.operations.journal import JournalledOperation
    from tpudash.operations.resume import FoundRun


def lock_of(run: str) -> str:
    """Return the name under which the supervisor of a run is held; no run can be called so."""
    return f"{run}.supervisor"


async def plan_supervise(desk: Desk, name: str, wish: SupervisionWish) -> Plan:
    """Say what a supervisor of a run would do; changes nothing.

    Raises:
        UsageError: The limits make no sense, or a cap can't be held to.
        NotFoundError: There is no such run.
        RefusedError: It is finished, or supervised already.
        TpudashError: The cloud could not be asked.
    """
    if wish.max_attempts < 1:
        raise UsageError(f"the number of tries must be at least 1, not {wish.max_attempts}")
    if wish.max_cost_usd is not None and not 0 < wish.max_cost_usd < math.inf:
        raise UsageError(f"the cost limit must be a number above 0, not {wish.max_cost_usd}")
    survey = await desk.survey(only=name)
    found = await find_run(desk, survey, name)
    spec, notes = await changed_spec(desk, survey.cloud, found.spec, wish.changes)
    payload = _payload(found.spec, wish, spec)
    former = _former(desk, payload)
    _check_may_supervise(desk, found, is_begun=former is not None)
    if former is not None:
        payload = replace(payload, operation_id=former.operation_id)
        notes = (*notes, f"it goes on with what was begun before; {former.tries} tries are made")
    lease = await read_lease(survey.cloud.bucket, spec.run_url)
    token = payload.operation_id or ""
    if lease is not None and is_in_force(lease, token, desk.tools.clock.now()):
        raise supervised_already(lease)
    cap = min(
        (one for one in (wish.max_cost_usd, found.spec.max_cost_usd) if one is not None),
        default=None,
    )
    if cap is not None and desk.highest_rate(spec) is None:
        raise UsageError(
            f"the price of {spec.accelerator_type} in {spec.zone} is not known",
            detail="so that a cost limit could not be held to",
            hint="leave --max-cost out, or set the price in the settings",
        )
    if cap is None:
        notes = (*notes, "no --max-cost: only the number of tries limits what it costs")
    return _plan(desk, found, payload, spec, cap, notes)


def _check_may_supervise(desk: Desk, found: FoundRun, *, is_begun: bool) -> None:
    run = found.run
    # A supervisor that is begun again may find that there is nothing left to do; it says so.
    if run.state in {RunState.FINISHED, RunState.DELETED} and not is_begun:
        hint = f"tpudash resume {run.name} goes on from its checkpoints"
        raise refused(
            f"{run.name} is {run.state}; there is nothing to supervise",
            ErrorClass.BAD_REQUEST,
            detail=run.reason,
            hint=hint if run.state is RunState.DELETED else "launch another run to train again",
        )
    if desk.tools.journal.is_held(lock_of(run.name)):
        raise refused(
            f"{run.name} is supervised already",
            ErrorClass.NAME_TAKEN,
            detail="on this machine, by this user",
            hint=f"tpudash supervise {run.name} --off ends that",
        )


def _payload(spec: RunSpec, wish: SupervisionWish, changed: RunSpec) -> SupervisePayload:
    return SupervisePayload(
        project=spec.project,
        run=spec.run,
        owner=spec.owner,
        run_url=spec.run_url,
        created=spec.created,
        max_attempts=wish.max_attempts,
        max_cost_usd=wish.max_cost_usd,
        resume_stalled=wish.resume_stalled,
        zones=changed.candidate_zones if wish.changes.zones else (),
        queued=wish.changes.queued,
        valid_until_s=wish.changes.valid_until_s,
    )


def _former(desk: Desk, payload: SupervisePayload) -> JournalledOperation | None:
    """Return the same supervision as it was begun here and not ended."""
    for operation in reversed(desk.tools.journal.unfinished(payload.project)):
        if operation.payload == payload:
            return operation
    return None


def _plan(
    desk: Desk,
    found: FoundRun,
    payload: SupervisePayload,
    spec: RunSpec,
    cap: float | None,
    notes: tuple[str, ...],
) -> Plan:
    name = payload.run
    places = ", ".join(spec.zones)
    how = "by queued resource" if spec.placement.queued else "by CreateNode"
    most = payload.max_attempts
    effects = [
        f"Resumes {name} whenever its node is preempted or vanishes, {how} in {places}.",
        f"Tries at most {most} times to make a node, those without capacity counted.",
        "Tries zone after zone, and waits longer and longer, while there is no capacity.",
        "Stops at a quota, a missing permission or a defect of the trainer, and says which.",
        "Deletes dead nodes and finished requests of the run; its checkpoints are kept.",
    ]
    if cap is not None:
        effects.append(f"When it has cost ${cap:,.2f} (estimate), its nodes are deleted.")
    effects.append(
        "A live node that does nothing is deleted and the run resumed."
        if payload.resume_stalled
        else "A live node that does nothing is told and never deleted."
    )
    next_try = spec.begun_again(found.evidence.attempt + 1, desk.tools.clock.now())
    lease = PlanStep("write file", lease_url(spec.run_url), {}, "now, and every minute")
    steps = (lease, *calls.create_in_each_zone(next_try, ""))
    return Plan(
        kind=OperationKind.SUPERVISE,
        run=name,
        title=f"Supervise {name}: resume it by itself, at most {payload.max_attempts} times",
        steps=steps,
        effects=tuple(effects),
        warnings=(*found.warnings, *notes),
        cost_per_hour_usd=desk.rate(spec.accelerator_type, spec.zone, spec.scheduling),
        payload=payload,
    )


async def plan_stand_down(desk: Desk, name: str) -> Plan:
    """Return the plan to end the supervision of a run, wherever it goes on; changes nothing.

    Raises:
        NotFoundError: There is no such run, or nobody supervises it.
    """
    survey = await desk.survey(only=name)
    found = await find_run(desk, survey, name)
    lease = await read_lease(survey.cloud.bucket, found.spec.run_url)
    here = [one for one in desk.tools.journal.unfinished() if _is_supervision(one, found.spec)]
    if (lease is None or lease.ended is not None) and not here:
        raise NotFoundError(f"nobody supervises {name}", hint=f"tpudash supervise {name} begins it")
    who = "" if lease is None else f", begun by {lease.owner} on {lease.host}"
    return Plan(
        kind=OperationKind.STAND_DOWN,
        run=name,
        title=f"Supervise {name} no longer{who}",
        steps=(PlanStep("write file", lease_url(found.spec.run_url), {}, "that it is ended"),),
        effects=(f"{name} goes on as it is, and is not resumed by itself when it is preempted.",),
        payload=StandDownPayload(project=found.spec.project, run=name, run_url=found.spec.run_url),
    )


def _is_supervision(one: JournalledOperation, spec: RunSpec) -> bool:
    return isinstance(one.payload, SupervisePayload) and one.payload.run_url == spec.run_url


async def apply_stand_down(course: Course, payload: StandDownPayload) -> str:
    """End a supervision: its holder sees it in the bucket, and the journal holds it as ended."""
    lease = await read_lease(await course.tools.bucket(), payload.run_url)
    now = course.tools.clock.now()
    if lease is not None and lease.ended is None:
        data = encode_record(replace(lease, ended=now, message="switched off"))

        async def write() -> bool:
            return await (await course.tools.bucket()).write(lease_url(payload.run_url), data)

        await course.insist(write, "end the supervision")
    return f"{payload.run} is not supervised any more"
