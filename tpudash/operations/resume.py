"""Resume: a further attempt of a run on a new node, once its old node is gone for sure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tpudash.domain.failure import ErrorClass
from tpudash.domain.node import Node, NodeState
from tpudash.domain.operation import OperationKind, Plan
from tpudash.domain.resource_name import is_same_resource, node_name
from tpudash.domain.run import AT_WORK, Run, RunSpec, RunState
from tpudash.errors import NotFoundError, UnreachableError, absent
from tpudash.operations import calls
from tpudash.operations.changes import changed_spec
from tpudash.operations.desk import Desk, Survey, nearest, with_bundle, with_definite_node
from tpudash.operations.node_maker import NodeMaker
from tpudash.operations.payload import Doomed, ResumePayload
from tpudash.operations.refusals import refused
from tpudash.operations.remover import Remover, doomed_of
from tpudash.operations.run_files import RunFiles, newest_checkpoint

if TYPE_CHECKING:
    from tpudash.domain.operation import ResumeChanges
    from tpudash.domain.run_state import RunEvidence
    from tpudash.errors import TpudashError
    from tpudash.operations.course import Course

_RESUMABLE: Final = frozenset(
    {RunState.PREEMPTED, RunState.FAILED, RunState.DELETED, RunState.STALLED}
)


@dataclass(frozen=True, slots=True)
class FoundRun:
    """The run that is to go on, as far as anybody can know it."""

    run: Run
    spec: RunSpec
    evidence: RunEvidence
    warnings: tuple[str, ...] = ()


async def plan_resume(desk: Desk, name: str, changes: ResumeChanges | None = None) -> Plan:
    """Look at a run and say how it would go on; changes nothing.

    Args:
        desk: Where plans are made.
        name: The run.
        changes: What is to be different from now on.

    Raises:
        UsageError: The type is offered in none of the zones that are to be tried.
        NotFoundError: There is no such run.
        RefusedError: It is training, starting, waiting or finished.
        UnreachableError: What it is doing can't be found out now.
        TpudashError: The cloud could not be asked.
    """
    survey = await desk.survey(only=name)
    found = await find_run(desk, survey, name)
    payload = _begun_resume(desk, found)
    if payload is None:
        _check_may_resume(desk, found)
        payload = _payload(desk, found)
        if changes is not None:
            changed, notes = await changed_spec(desk, survey.cloud, payload.spec, changes)
            payload = replace(payload, spec=changed)
            found = replace(found, warnings=(*found.warnings, *notes))
    step = await newest_checkpoint(survey.cloud.bucket, found.spec.run_url)
    script = (await desk.tools.bundle()).startup_script
    return _plan(desk, found, payload, step, script)


async def find_run(desk: Desk, survey: Survey, name: str) -> FoundRun:
    """Return the run of a name, with its node as it is for sure.

    Raises:
        NotFoundError: There is none.
        RefusedError: There are several.
        UnreachableError: What it is doing can't be found out now.
    """
    known = [one for one in survey.of(name) if one.spec is not None]
    if not known:
        raise await _not_found(desk, survey, name)
    evidence = _chosen(desk, known)
    evidence = await with_definite_node(survey, evidence)
    run = desk.derive(survey, evidence)
    spec = evidence.spec
    assert spec is not None  # noqa: S101  filtered above
    if evidence.records_unread:
        raise UnreachableError(
            f"the records of {name} can't be read, so what it is doing is not known",
            detail="; ".join(evidence.problems),
            hint="nothing was done; see that the bucket can be read, and try again",
        )
    warnings = list(evidence.problems)
    if evidence.problems:
        warnings.append("a damaged run.json will be set aside under another name")
    if spec.owner != desk.owner:
        warnings.append(f"{name} belongs to {spec.owner}, and goes on belonging to them")
    return FoundRun(run, spec, evidence, tuple(warnings))


def _chosen(desk: Desk, known: list[RunEvidence]) -> RunEvidence:
    """Return the run that is meant where several have the name: our own, if there is one."""
    own = [one for one in known if one.owner == desk.owner] or known
    if len(own) > 1:
        places = ", ".join(one.spec.run_url for one in own if one.spec is not None)
        raise refused(
            f"{len(own)} runs are called {own[0].name}",
            ErrorClass.NAME_TAKEN,
            detail=places,
            hint="delete the one that is not meant, or work from the project that holds one only",
        )
    return own[0]


async def _not_found(desk: Desk, survey: Survey, name: str) -> TpudashError:
    nodes = survey.of(name)
    if nodes:
        return NotFoundError(
            f"the spec of run {name} can't be read, so it can't go on",
            detail="; ".join(problem for one in nodes for problem in one.problems),
            hint=f"tpudash delete {name} removes its nodes; its checkpoints are kept",
        )
    everything = await desk.survey()
    return absent(
        f"run {name!r}",
        f"project {survey.cloud.project}",
        silent=survey.nodes.unreachable,
        hint=nearest(name, (run.name for run in everything.runs)) or "see: tpudash runs",
    )


def _begun_resume(desk: Desk, found: FoundRun) -> ResumePayload | None:
    """Return the same resume as it was begun here and not ended, unless the run is past it."""
    if found.run.state in {*AT_WORK, RunState.FINISHED}:
        return None
    for operation in desk.begun(found.spec.project, found.run.name):
        payload = operation.payload
        if not isinstance(payload, ResumePayload):
            continue
        node = found.evidence.node
        is_newest = payload.spec.attempt >= found.evidence.attempt
        is_spent = payload.spec.attempt == found.evidence.attempt and (
            found.evidence.record is not None or (node is not None and node.is_dead)
        )
        if is_newest and not is_spent and payload.spec.created == found.spec.created:
            return replace(payload, operation_id=operation.operation_id)
    return None


def _check_may_resume(desk: Desk, found: FoundRun) -> None:
    """See that the run is at rest for sure.

    Raises:
        RefusedError: It is not.
    """
    run, name = found.run, found.run.name
    node = found.evidence.node
    if desk.tools.journal.is_held(name):
        raise refused(
            f"another operation on {name} is going on",
            ErrorClass.NAME_TAKEN,
            detail="on this machine, by this user",
            hint="wait for it to end",
        )
    if run.state in _RESUMABLE:
        return
    if run.state in {RunState.LAUNCHING, RunState.RESUMING} and node is None:
        if desk.begun(found.spec.project, name):
            return
        raise refused(
            f"{name} is being started from somewhere else",
            ErrorClass.BAD_REQUEST,
            detail=run.reason,
            hint="wait for its node, or try again in a quarter of an hour",
        )
    at = "" if run.step is None else f" at step {run.step}"
    titles = {
        RunState.TRAINING: f"{name} is training{at}; there is nothing to resume",
        RunState.SERVING: f"{name} is serving; there is nothing to resume",
        RunState.FINISHED: f"{name} is finished{at}; there is nothing to resume",
    }
    hints = {
        RunState.TRAINING: f"tpudash logs {name} --follow shows what it does",
        RunState.SERVING: f"tpudash logs {name} --follow shows what it does",
        RunState.FINISHED: "launch another run to train again",
    }
    raise refused(
        titles.get(run.state, f"{name} is {run.state}; it can't be resumed now"),
        ErrorClass.BAD_REQUEST,
        detail=run.reason,
        hint=hints.get(run.state, f"wait, or end it with: tpudash delete {name}"),
    )


def _payload(desk: Desk, found: FoundRun) -> ResumePayload:
    spec, evidence = found.spec, found.evidence
    own = [node for node in evidence.nodes if node.owner == spec.owner]
    never_lived = (
        evidence.record is None and evidence.node is None and spec.attempt == evidence.attempt
    )
    # An attempt that never had a node gives its number to the next one.
    is_spare = never_lived and (spec.failure is not None or found.run.state not in _RESUMABLE)
    attempt = evidence.attempt if is_spare else evidence.attempt + 1
    further = spec.begun_again(attempt, desk.tools.clock.now())
    further = replace(further, cost_per_hour_usd=desk.highest_rate(further))
    dead = [one.name for one in evidence.requests if one.owner == spec.owner]
    return ResumePayload(spec=further, doomed=tuple(map(doomed_of, own)), requests=tuple(dead))


def _plan(
    desk: Desk, found: FoundRun, payload: ResumePayload, step: int | None, script: str
) -> Plan:
    spec, run = payload.spec, found.run
    live = [node for node in found.evidence.nodes if _is_live(node, payload.doomed)]
    warnings = list(found.warnings)
    warnings += [f"{node.node_id} is {node.state} and is deleted: {run.reason}" for node in live]
    foreign = [node.node_id for node in found.evidence.nodes if node.owner != spec.owner]
    if foreign:
        warnings.append(f"{', '.join(foreign)} carry the run's label and another owner; left alone")
    return Plan(
        kind=OperationKind.RESUME,
        run=run.name,
        title=f"Resume {run.name} as attempt {spec.attempt} on {spec.accelerator_type} "
        f"({spec.scheduling}) in {spec.zone}",
        steps=(
            *(
                call
                for one in payload.doomed
                for call in (calls.delete_node(one), calls.await_gone(one.name))
            ),
            *(calls.delete_request(name, "once it is SUSPENDED") for name in _requests(payload)),
            calls.write_spec(spec),
            *calls.create_in_each_zone(spec, script),
            calls.await_ready(spec),
        ),
        effects=_effects(found, spec, step),
        warnings=tuple(warnings),
        cost_per_hour_usd=desk.rate(spec.accelerator_type, spec.zone, spec.scheduling),
        confirm_word=run.name if live else None,
        nodes=(
            *(one.name for one in payload.doomed),
            node_name(spec.project, spec.zone, spec.node_id),
        ),
        payload=payload,
    )


def _effects(found: FoundRun, spec: RunSpec, step: int | None) -> tuple[str, ...]:
    run = found.run
    effects = []
    if run.state in {RunState.DELETED, RunState.FAILED}:
        effects.append(f"It is {run.state}: {run.reason}")
    target = "" if run.target_step is None else f" towards step {run.target_step}"
    if step is None:
        effects.append(f"No complete checkpoint was found: training begins at step 0{target}.")
    else:
        effects.append(f"Training goes on from the checkpoint of step {step}{target}.")
    if run.step is not None:
        lost = max(0, run.step - (step or 0))
        effects.append(f"{lost} steps since then are lost (last seen: step {run.step}).")
    effects.append(f"Creates node {spec.node_id}; checkpoints stay in {spec.run_url}/checkpoints.")
    return tuple(effects)


def _requests(payload: ResumePayload) -> tuple[str, ...]:
    """Return the requests to delete, each once, however its project is written."""
    found: list[str] = []
    for name in (*payload.requests, *(name for one in payload.doomed for name in one.requests)):
        if not any(is_same_resource(name, one) for one in found):
            found.append(name)
    return tuple(found)


def _is_live(node: Node, doomed: tuple[Doomed, ...]) -> bool:
    is_meant = any(one.name == node.name for one in doomed)
    return is_meant and not node.is_dead and node.state != NodeState.DELETING


async def apply_resume(course: Course, payload: ResumePayload) -> str:
    """Carry a resume out, from wherever it stands, and return how it ended.

    Raises:
        TpudashError: It failed, or its outcome is not known.
    """
    remover, files, spec = Remover(course), RunFiles(course), payload.spec
    for doomed in payload.doomed:
        await remover.remove_node(doomed)
    for name in _requests(payload):
        await remover.remove_request(name)
    course.say(f"the old node of {spec.run} is gone", done=1)
    bundle = await course.tools.bundle()
    spec = await with_bundle(course, files, spec)
    made = await NodeMaker(course, files, bundle.startup_script).make(spec)
    return f"{made.node_id} is READY in {made.zone}; the trainer is starting"
