"""Launch: from a request to a plan checked against the cloud, and from the plan to a node."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from tpudash.domain.failure import ErrorClass
from tpudash.domain.operation import LaunchRequest, OperationKind, Plan
from tpudash.domain.recipes import RECIPES, SERVER
from tpudash.domain.resource_name import node_name
from tpudash.domain.run import AT_WORK, Recipe, Run, RunSpec, RunState, run_url_of
from tpudash.domain.run_state import age_text
from tpudash.operations import calls
from tpudash.operations.desk import Desk, Survey, spec_with_bundle, with_bundle
from tpudash.operations.launch_checks import check_bucket, check_request, choose_zones
from tpudash.operations.making import is_own, taken_error
from tpudash.operations.node_maker import NodeMaker
from tpudash.operations.payload import LaunchPayload
from tpudash.operations.placement_checks import distance_warning
from tpudash.operations.refusals import refused
from tpudash.operations.run_files import RunFiles, newest_checkpoint
from tpudash.operations.serving import check_model, serving_effects, serving_recipe

if TYPE_CHECKING:
    from tpudash.domain.node import Node
    from tpudash.domain.run_state import RunEvidence
    from tpudash.operations.bundle import TrainerBundle
    from tpudash.operations.course import Course

STEPS_TOTAL: Final = 3
_NO_TIME: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Start:
    """How a launch begins: afresh, or by taking up what is there of it."""

    spec: RunSpec
    operation_id: str | None = None
    warnings: tuple[str, ...] = ()


async def plan_launch(desk: Desk, request: LaunchRequest) -> Plan:
    """Check a request against the catalogue, the cloud and the bucket; changes nothing.

    Raises:
        UsageError: The request names what does not exist or does not fit together.
        NotFoundError: The bucket does not exist.
        RefusedError: The name is taken.
        TpudashError: The cloud could not be asked.
    """
    kind = check_request(request)
    cloud = await desk.tools.connection.cloud()
    bucket = await check_bucket(cloud, request.bucket)
    await check_model(cloud, request, bucket)
    choice = await choose_zones(cloud, request, kind)
    bundle = await desk.tools.bundle()
    fresh = _spec_of(replace(request, bucket=bucket), desk, choice.zones, choice.runtime_version)
    fresh = spec_with_bundle(replace(fresh, project=cloud.project), bundle)
    fresh = replace(fresh, cost_per_hour_usd=desk.highest_rate(fresh))
    survey = await desk.survey(only=request.run, buckets=(bucket,))
    start = await _start(desk, survey, fresh)
    warnings = (*choice.warnings, *start.warnings, *await _warnings(survey, start, desk))
    return _plan(desk, start, bundle, warnings)


def _spec_of(
    request: LaunchRequest, desk: Desk, zones: tuple[str, ...], runtime_version: str
) -> RunSpec:
    now = desk.tools.clock.now()
    return RunSpec(
        run=request.run,
        owner=desk.owner,
        attempt=1,
        project="",
        zone=zones[0],
        candidate_zones=zones,
        bucket=request.bucket,
        run_url=run_url_of(request.bucket, request.run),
        recipe=_recipe(request),
        accelerator_type=request.accelerator_type,
        runtime_version=runtime_version,
        scheduling=request.scheduling,
        created=now,
        attempt_started=now,
        target_step=request.steps,
        checkpoint_every_steps=request.checkpoint_every_steps,
        seed=request.seed,
        delete_node_when_done=request.delete_node_when_done,
        validate_first=request.validate_first,
        max_cost_usd=request.max_cost_usd,
        placement=request.placement,
    )


def _recipe(request: LaunchRequest) -> Recipe:
    if request.serve is not None:
        return serving_recipe(request, request.bucket)
    bundled = RECIPES[request.recipe]
    command = ("python3", "-m", bundled.module, *_flags(request))
    return Recipe(name=bundled.name, command=command, workers=bundled.workers)


def _flags(request: LaunchRequest) -> tuple[str, ...]:
    flags = {
        "--steps": request.steps,
        "--checkpoint_every": request.checkpoint_every_steps,
        "--seed": request.seed,
    }
    words = [word for flag, value in flags.items() if value is not None for word in (flag, value)]
    return (*map(str, words), *request.trainer_arguments)


async def _start(desk: Desk, survey: Survey, fresh: RunSpec) -> _Start:
    """Decide whether the name is free, or what is there of this very launch.

    Raises:
        RefusedError: The name is in use.
    """
    if desk.tools.journal.is_held(fresh.run):
        raise refused(
            f"another operation on {fresh.run} is going on",
            ErrorClass.NAME_TAKEN,
            detail="on this machine, by this user",
            hint="wait for it to end, or choose another name",
        )
    begun = _begun_launch(desk, fresh)
    start = _Start(fresh) if begun is None else begun
    for evidence in survey.of(fresh.run):
        start = _reconciled(desk.derive(survey, evidence), evidence, start, fresh)
    for zone in start.spec.zones:
        name = node_name(start.spec.project, zone, start.spec.node_id)
        node = next((one for one in survey.nodes.nodes if one.name == name), None)
        if node is not None and not is_own(node, start.spec):
            raise taken_error(node, _age(node, desk))
    return start


def _begun_launch(desk: Desk, fresh: RunSpec) -> _Start | None:
    """Return the same launch as it was begun here and not ended, if there is one."""
    for operation in desk.begun(fresh.project, fresh.run):
        payload = operation.payload
        if isinstance(payload, LaunchPayload) and _is_same_wish(payload.spec, fresh):
            since = age_text(desk.tools.clock.now() - operation.started)
            note = f"this launch was begun {since} ago and not ended; it is taken up again"
            return _Start(payload.spec, operation.operation_id, (note,))
    return None


def _is_same_wish(one: RunSpec, other: RunSpec) -> bool:
    """Whether two specs ask for the same, whenever they were made and wherever they got to."""
    return _wish(one) == _wish(other)


def _wish(spec: RunSpec) -> RunSpec:
    return replace(
        spec,
        created=_NO_TIME,
        attempt_started=None,
        bundle=None,
        cost_per_hour_usd=None,
        zone=spec.candidate_zones[0] if spec.candidate_zones else spec.zone,
        failure=None,
        deleted=None,
    )


def _reconciled(run: Run, evidence: RunEvidence, start: _Start, fresh: RunSpec) -> _Start:
    """Return how to begin in view of a run that has this name already.

    Raises:
        RefusedError: That run is in the way.
    """
    spec = evidence.spec
    is_begun = spec is not None and spec.created == start.spec.created
    if is_begun and start.operation_id and run.state in _AS_IT_SHOULD_BE:
        return start
    if run.owner != fresh.owner and (evidence.nodes or (spec and spec.run_url == fresh.run_url)):
        raise refused(
            f"the name {run.name} is taken: it belongs to {run.owner}",
            ErrorClass.NAME_TAKEN,
            detail=f"{run.state}: {run.reason}",
            hint="choose another name",
        )
    if spec is not None and _never_had_a_node(run, evidence):
        # Its checkpoints do not exist and neither does its node: the same name may begin again.
        again = replace(fresh, created=spec.created)
        return _Start(again, None, (*start.warnings, f"an earlier launch failed: {run.reason}"))
    if spec is None and not evidence.nodes and not evidence.attempts:
        return replace(start, warnings=(*start.warnings, *evidence.problems, *_SET_ASIDE))
    raise refused(
        f"there is a run {run.name} already, and it is {run.state}",
        ErrorClass.NAME_TAKEN,
        detail=run.reason,
        hint=_what_instead(run),
    )


_AS_IT_SHOULD_BE: Final = frozenset(
    {
        RunState.LAUNCHING,
        RunState.WAITING,
        RunState.RESUMING,
        *AT_WORK,
        RunState.FINISHED,
    }
)
"""States of a run whose unfinished launch has nothing more to do than to see that it is so."""

_SET_ASIDE: Final = ("a damaged run.json will be set aside under another name",)


def _never_had_a_node(run: Run, evidence: RunEvidence) -> bool:
    began_again = run.state in {RunState.FAILED, RunState.PREEMPTED}
    return began_again and not (evidence.nodes or evidence.attempts or evidence.records_unread)


def _what_instead(run: Run) -> str:
    if run.state in {RunState.PREEMPTED, RunState.FAILED, RunState.DELETED, RunState.STALLED}:
        return f"tpudash resume {run.name} continues it; or choose another name"
    if run.state is RunState.FINISHED:
        return "choose another name; its checkpoints are kept"
    return f"tpudash logs {run.name} --follow shows what it does; or choose another name"


async def _warnings(survey: Survey, start: _Start, desk: Desk) -> tuple[str, ...]:
    spec = start.spec
    found = []
    if start.operation_id is None:
        step = await newest_checkpoint(survey.cloud.bucket, spec.run_url)
        if step is not None:
            found.append(
                f"{spec.run_url}/checkpoints holds a checkpoint of step {step}, from which this "
                f"run would go on; choose another name to begin at 0"
            )
    if spec.scheduling.may_be_preempted:
        found.append(f"{spec.scheduling} capacity may be taken away at short notice")
        if spec.checkpoint_every_steps is None and spec.recipe.name != SERVER.name:
            found.append("no --checkpoint-every: the trainer decides how often it saves")
    found += await distance_warning(survey.cloud, spec.bucket, spec.zones)
    if spec.placement.queued and spec.placement.valid_until_s is None:
        found.append("no --valid-until-duration: the request waits, and can come true, for ever")
    if desk.rate(spec.accelerator_type, spec.zone, spec.scheduling) is None:
        found.append(f"the price of {spec.accelerator_type} in {spec.zone} is not known")
        if spec.max_cost_usd is not None and spec.cost_per_hour_usd is None:
            found.append("so its agent can't hold the run to its cap")
    silent = [zone for zone in survey.nodes.unreachable if zone in spec.zones]
    if silent:
        found.append(f"no answer from {', '.join(silent)}: what is there is not known")
    return tuple(found)


def _plan(desk: Desk, start: _Start, bundle: TrainerBundle, warnings: tuple[str, ...]) -> Plan:
    spec, script = start.spec, bundle.startup_script
    url = spec.bundle.url if spec.bundle else ""
    place = spec.zone if len(spec.zones) == 1 else f"{spec.zone} (or {', '.join(spec.zones[1:])})"
    return Plan(
        kind=OperationKind.LAUNCH,
        run=spec.run,
        title=f"Launch {spec.run} on {spec.accelerator_type} ({spec.scheduling}"
        f"{', queued' if spec.placement.queued else ''}) in {place}",
        steps=(
            calls.write_bundle(url, len(bundle.data), bundle.sha256),
            calls.write_spec(spec, "unless the run is somebody else's by then"),
            *calls.create_in_each_zone(spec, script),
            calls.await_ready(spec),
        ),
        effects=_effects(spec),
        warnings=warnings,
        cost_per_hour_usd=desk.rate(spec.accelerator_type, spec.zone, spec.scheduling),
        nodes=(node_name(spec.project, spec.zone, spec.node_id),),
        payload=LaunchPayload(spec=spec, operation_id=start.operation_id),
    )


def _effects(spec: RunSpec) -> tuple[str, ...]:
    target = "to its end" if spec.target_step is None else f"up to step {spec.target_step}"
    end = (
        "The node deletes itself when the run is finished."
        if spec.delete_node_when_done
        else "The node stays, and costs money, until it is deleted."
    )
    trains = f"Trains {target}; checkpoints go to {spec.run_url}/checkpoints."
    tests = ("Tests devices, input and bucket first; if a test fails, it does not train.",)
    effects = (
        f"Creates node {spec.node_id} with runtime {spec.runtime_version}.",
        *queue_effects(spec),
        *(tests if spec.validate_first else ()),
        *(serving_effects(spec) or (trains,)),
        end,
    )
    if spec.max_cost_usd is None or spec.cost_per_hour_usd is None:
        return effects
    cap = (
        f"When it has cost ${spec.max_cost_usd:,.2f} (estimate), its agent saves a checkpoint, "
        "stops, and deletes the node."
    )
    return (*effects, cap)


def queue_effects(spec: RunSpec) -> tuple[str, ...]:
    """Return what it means to ask through the queue."""
    if not spec.placement.queued:
        return ()
    valid_s = spec.placement.valid_until_s
    end = "until there is capacity"
    if valid_s is not None:
        end = f"for at most {age_text(timedelta(seconds=valid_s))} in each zone"
    return (f"Asks by queued resource {spec.node_id}, which waits {end} and costs nothing by it.",)


def _age(node: Node, desk: Desk) -> str:
    if node.create_time is None:
        return "at an unknown time"
    return f"{age_text(desk.tools.clock.now() - node.create_time)} ago"


async def apply_launch(course: Course, payload: LaunchPayload) -> str:
    """Carry a launch out, from wherever it stands, and return how it ended.

    Raises:
        TpudashError: It failed, or its outcome is not known.
    """
    files = RunFiles(course)
    bundle = await course.tools.bundle()
    spec = await with_bundle(course, files, payload.spec)
    await files.claim(spec)
    course.say(f"run {spec.run} is written to the bucket", done=1)
    made = await NodeMaker(course, files, bundle.startup_script).make(spec)
    return f"{made.node_id} is READY in {made.zone}; the trainer is starting"
