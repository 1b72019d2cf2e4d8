"""Delete: runs by name, nodes by name; checkpoints are kept, and gone means NOT_FOUND."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeVar

from tpudash.domain.failure import ErrorClass
from tpudash.domain.node import Node, NodeState
from tpudash.domain.operation import OperationKind, Plan
from tpudash.domain.resource_name import is_same_resource, may_be_in
from tpudash.domain.run import RunState
from tpudash.domain.run_state import age_text
from tpudash.errors import NotFoundError, TpudashError, UsageError, absent
from tpudash.operations import calls
from tpudash.operations.desk import Desk, Survey, nearest, with_definite_node
from tpudash.operations.holding import still_holding
from tpudash.operations.payload import DeletePayload, DoomedRun
from tpudash.operations.refusals import leaves_doubt, refused
from tpudash.operations.remover import Remover, doomed_of
from tpudash.operations.run_files import RunFiles

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tpudash.domain.node import NodeListing
    from tpudash.domain.request import QueuedResource, RequestListing
    from tpudash.domain.run import Run, RunSpec
    from tpudash.domain.run_state import RunEvidence
    from tpudash.operations.course import Course
    from tpudash.operations.payload import Doomed

T = TypeVar("T")
AT_ONCE: Final = 8
"""Deletions that are followed side by side."""


@dataclass
class _Doom:
    """What the targets come down to, each thing once."""

    nodes: dict[str, Node] = field(default_factory=dict)
    requests: dict[str, QueuedResource] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    folders: dict[str, DoomedRun] = field(default_factory=dict)
    begun: list[str] = field(default_factory=list)
    effects: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


async def plan_delete(desk: Desk, targets: Sequence[str]) -> Plan:
    """Find out what the targets are, and what it means to delete them; changes nothing.

    Args:
        desk: Where plans are made.
        targets: Runs by name; nodes by id or full name; queued resources by full name.

    Raises:
        UsageError: Nothing is named.
        NotFoundError: A name means nothing and never did.
        RefusedError: It belongs to somebody else.
        TpudashError: The cloud could not be asked.
    """
    names = tuple(dict.fromkeys(target.strip() for target in targets if target.strip()))
    if not names:
        raise UsageError("nothing to delete is named", hint="name a run or a node")
    survey = await desk.survey(only=names[0] if len(names) == 1 and "/" not in names[0] else None)
    doom = _Doom()
    for name in names:
        if "/" in name:
            await _add_by_full_name(survey, doom, name)
        elif survey.of(name):
            await _add_run(desk, survey, doom, name)
        elif (begun := _begun(desk, survey.cloud.project, name)) is not None:
            doom.begun.append(name)
            is_deletion = begun is OperationKind.DELETE
            what = "is being deleted, and" if is_deletion else "was begun, and"
            doom.effects.append(f"{name} {what} there is no node of it.")
        else:
            _add_by_node_id(desk, survey, doom, name)
    return _plan(desk, survey, doom, names)


def _begun(desk: Desk, project: str, name: str) -> OperationKind | None:
    """Return what was begun here with a run of that name and not ended, or None."""
    kinds = {OperationKind.LAUNCH, OperationKind.RESUME, OperationKind.DELETE}
    every = desk.tools.journal.unfinished(project)
    return next((one.kind for one in every if one.run == name and one.kind in kinds), None)


async def _add_by_full_name(survey: Survey, doom: _Doom, name: str) -> None:
    """Add a node or queued resource that is named in full, whoever owns it."""
    collection = name.rsplit("/", 2)[-2] if name.count("/") == 5 else ""
    tpu, project = survey.cloud.tpu, survey.cloud.project
    if collection and not may_be_in(name, project):
        raise UsageError(
            f"{name} is not in project {project}",
            hint=f"begin with --project {name.split('/')[1]}",
        )
    try:
        if collection == "nodes":
            doom.nodes[name] = await tpu.get_node(name)
        elif collection == "queuedResources":
            doom.requests[name] = await tpu.get_request(name)
        else:
            raise UsageError(
                f"{name!r} names neither a node nor a queued resource",
                hint="such as projects/P/locations/us-central1-b/nodes/demo-1",
            )
    except NotFoundError:
        doom.effects.append(f"{name} is gone already.")


def _add_by_node_id(desk: Desk, survey: Survey, doom: _Doom, name: str) -> None:
    found = [node for node in survey.nodes.nodes if node.node_id == name]
    if len(found) > 1:
        raise UsageError(
            f"{name!r} is a node in {len(found)} zones",
            detail=", ".join(node.zone for node in found),
            hint=f"give its full name, such as {found[0].name}",
        )
    if not found:
        known = [one.node_id for one in survey.nodes.nodes] + [run.name for run in survey.runs]
        raise absent(
            f"run or node {name!r}",
            f"project {survey.cloud.project}",
            silent=survey.nodes.unreachable,
            hint=nearest(name, known) or "see: tpudash runs, tpudash nodes",
        )
    (node,) = found
    if node.owner != desk.owner:
        raise _not_ours(f"node {name}", node.owner, node.name)
    doom.nodes[node.name] = node


async def _add_run(desk: Desk, survey: Survey, doom: _Doom, name: str) -> None:
    every = survey.of(name)
    own = [one for one in every if one.owner == desk.owner]
    if not own:
        nodes = " ".join(node.name for one in every for node in one.nodes)
        raise _not_ours(f"run {name}", every[0].owner, nodes)
    if len(own) < len(every):
        others = sorted({one.owner for one in every} - {desk.owner})
        doom.warnings.append(f"runs of the same name of {', '.join(others)} are left alone")
    for one in own:
        _add_evidence(desk, survey, doom, await with_definite_node(survey, one))


def _add_evidence(desk: Desk, survey: Survey, doom: _Doom, evidence: RunEvidence) -> None:
    run = desk.derive(survey, evidence)
    key = evidence.spec.run_url if evidence.spec else run.name
    doom.runs[key] = run
    if evidence.spec is not None:
        url = evidence.spec.run_url
        doom.folders[url] = DoomedRun(name=run.name, owner=evidence.owner, url=url)
    for node in evidence.nodes:
        if node.owner == evidence.owner:
            doom.nodes[node.name] = node
        else:
            doom.warnings.append(
                f"{node.node_id} carries the run's label and owner {node.owner}; it is left alone"
            )
    doomed = (node for node in evidence.nodes if node.name in doom.nodes)
    behind = [node.queued_resource for node in doomed if node.queued_resource]
    for request in survey.requests.requests:
        is_behind = any(is_same_resource(request.name, name) for name in behind)
        if is_behind or (request in evidence.requests and request.owner == evidence.owner):
            doom.requests[request.name] = request
    silent = [zone for zone in evidence.unreachable if zone]
    if silent:
        doom.warnings.append(f"no answer from {', '.join(silent)}: nodes there are not covered")


def _not_ours(what: str, owner: str | None, full_names: str) -> TpudashError:
    return refused(
        f"{what} belongs to {owner or 'nobody known'}",
        ErrorClass.PERMISSION,
        detail="what belongs to others is deleted only by full name",
        hint=f"tpudash delete {full_names}" if full_names else "it has no nodes now",
    )


def _held_after(survey: Survey, doom: _Doom, owner: str) -> tuple[str, ...]:
    gone = {*doom.nodes, *doom.requests}
    owners = {owner, *(run.owner for run in doom.runs.values())}
    held = still_holding(survey.nodes.nodes, survey.requests.requests, owners, gone)
    return (f"Still holds quota afterwards: {held}.",) if held else ()


def _plan(desk: Desk, survey: Survey, doom: _Doom, names: tuple[str, ...]) -> Plan:
    nodes = sorted(doom.nodes.values(), key=lambda node: node.name)
    doomed = tuple(map(doomed_of, nodes))
    requests = tuple(sorted(doom.requests))
    steps = [
        call for one in doomed for call in (calls.delete_node(one), calls.await_gone(one.name))
    ]
    steps += [calls.delete_request(name, _request_note(doom.requests[name])) for name in requests]
    runs = {*(run.name for run in doom.runs.values()), *doom.begun}
    short = [name.rsplit("/", 1)[-1] for name in names]
    return Plan(
        kind=OperationKind.DELETE,
        run=min(runs) if len(runs) == 1 else None,
        title=f"Delete {', '.join(short)}" if steps else f"{', '.join(short)}: nothing to delete",
        steps=tuple(steps),
        effects=(*_effects(desk, doom, nodes), *_held_after(survey, doom, desk.owner)),
        warnings=tuple(doom.warnings),
        cost_per_hour_usd=0.0,
        confirm_word=_word(short) if steps else None,
        nodes=tuple(node.name for node in nodes),
        payload=DeletePayload(
            project=survey.cloud.project,
            doomed=doomed,
            requests=requests,
            runs=tuple(doom.folders.values()),
        ),
    )


def _word(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"delete {len(names)}"


def _request_note(request: QueuedResource) -> str:
    return "once its nodes are gone and it is SUSPENDED" if request.node_names else ""


def _effects(desk: Desk, doom: _Doom, nodes: list[Node]) -> tuple[str, ...]:
    effects = list(doom.effects)
    freed = 0.0
    for node in nodes:
        rate = desk.rate(node.accelerator_type, node.zone, node.scheduling)
        cost = ""
        if node.state == NodeState.READY:
            freed += rate or 0.0
            cost = ", price unknown" if rate is None else f", about ${rate:.2f} an hour"
        effects.append(f"Deletes node {node.node_id} in {node.zone} ({node.state}{cost}).")
    effects += [
        f"Deletes queued request {one.request_id} in {one.zone} ({one.state})."
        for one in doom.requests.values()
    ]
    if freed:
        effects.append(f"Stops about ${freed:.2f} an hour.")
    for url, run in doom.runs.items():
        effects.append(_impact(desk, run))
        effects.append(f"Checkpoints of {run.name} are kept in {url}/checkpoints.")
    if not nodes and not doom.requests:
        effects.append("There is nothing left to delete.")
    return tuple(effects)


def _impact(desk: Desk, run: Run) -> str:
    saved = (
        "it has no checkpoint"
        if run.checkpoint_step is None
        else (f"its last checkpoint is of step {run.checkpoint_step}")
    )
    if run.state in {RunState.TRAINING, RunState.STALLED} and run.step is not None:
        heard = ""
        if run.last_heard is not None:
            heard = f", heard {age_text(desk.tools.clock.now() - run.last_heard)} ago"
        return f"{run.name} is {run.state} at step {run.step}{heard}; {saved}."
    if run.state is RunState.SERVING:
        return f"{run.name} is SERVING: requests in flight are answered, later ones are not."
    return f"{run.name} is {run.state}; {saved}."


async def apply_delete(course: Course, payload: DeletePayload) -> str:
    """Carry a deletion out, from wherever it stands, and return how it ended.

    Raises:
        TpudashError: It failed, or its outcome is not known.
    """
    remover, done = Remover(course), 0
    # Noted first: whoever is making a node of the run looks for it before the next CreateNode.
    notes = [await _note_deleted(course, one.name, one.url) for one in payload.runs]

    async def remove_node(doomed: Doomed) -> None:
        nonlocal done
        await remover.remove_node(doomed)
        done += 1
        course.say(f"{doomed.name.rsplit('/', 1)[-1]} is gone", done=done)

    async def remove_request(name: str) -> None:
        nonlocal done
        await remover.remove_request(name)
        done += 1
        course.say(f"request {name.rsplit('/', 1)[-1]} is gone", done=done)

    await _each(payload.doomed, remove_node)
    await _each(payload.requests, remove_request)
    done += await _remove_latecomers(course, remover, payload.runs)
    held = await _held_now(course, payload)
    what = "nothing was left to delete" if done == 0 else f"{done} deleted and verified gone"
    return "; ".join(part for part in (what, *notes, held) if part)


async def _each(things: Sequence[T], remove: Callable[[T], Awaitable[None]]) -> None:
    """Remove a few things at a time: each takes minutes, and one that can't go stops no other.

    Raises:
        TpudashError: What the first of those said that could not be removed.
    """
    if len(things) == 1:
        await remove(things[0])
        return
    slots, errors = asyncio.Semaphore(AT_ONCE), list[TpudashError]()

    async def one(thing: T) -> None:
        async with slots:
            try:
                await remove(thing)
            except TpudashError as error:
                errors.append(error)

    async with asyncio.TaskGroup() as group:
        for thing in things:
            group.create_task(one(thing))
    if errors:
        raise next((error for error in errors if leaves_doubt(error)), errors[0])


async def _held_now(course: Course, payload: DeletePayload) -> str:
    """Return what of the same owners still holds quota; "" where that can't be seen now."""
    found = (*(one.owner for one in payload.doomed), *(one.owner for one in payload.runs))
    owners = {owner for owner in found if owner}
    names = {*(one.name for one in payload.doomed), *payload.requests}
    try:
        tpu = await course.tools.tpu()
        nodes, requests = await asyncio.gather(tpu.list_nodes(), tpu.list_requests())
    except TpudashError:
        return ""
    held = still_holding(nodes.nodes, requests.requests, owners, names)
    return f"still holding quota: {held}" if held else ""


async def _remove_latecomers(course: Course, remover: Remover, runs: tuple[DoomedRun, ...]) -> int:
    """Delete what was being made of the same runs when the plan was, and count it."""
    if not runs:
        return 0

    async def ask() -> NodeListing:
        return await (await course.tools.tpu()).list_nodes()

    async def ask_queue() -> RequestListing:
        return await (await course.tools.tpu()).list_requests()

    meant, count = {(one.name, one.owner) for one in runs}, 0
    pause = course.tools.pause()
    while True:
        listing = await course.definite(ask, "the nodes")
        for node in listing.nodes if listing is not None else ():
            if (node.run, node.owner) in meant:
                await remover.remove_node(doomed_of(node))
                count += 1
        queue = await course.definite(ask_queue, "the queued resources")
        for request in queue.requests if queue is not None else ():
            if (request.run, request.owner) in meant:
                await remover.remove_request(request.name)
                count += 1
        if not _may_still_appear(course, {one.name for one in runs}):
            return count
        course.say("a creation was not answered; waiting to see that nothing comes of it")
        await pause.wait()


def _may_still_appear(course: Course, runs: set[str]) -> bool:
    """Whether a CreateNode of one of the runs was not answered a moment ago."""
    settle = timedelta(seconds=course.tools.pace.settle_s)
    return any(
        one.asked is not None and course.tools.clock.now() - one.asked < settle
        for one in course.tools.journal.operations()
        if one.run in runs and one.kind in {OperationKind.LAUNCH, OperationKind.RESUME}
    )


async def _note_deleted(course: Course, name: str, url: str) -> str:
    """Write into `run.json` that the run was deleted; what keeps that from working is told."""
    files = RunFiles(course)
    try:
        spec = (await files.read(url)).spec or _spec_from_journal(course, url)
        if spec is not None and spec.deleted is None:
            await files.write(replace(spec, deleted=course.tools.clock.now()))
    except TpudashError as error:
        if leaves_doubt(error):
            raise
        return f"run.json of {name} could not be written: {error}"
    return f"checkpoints of {name} are kept in {url}/checkpoints"


def _spec_from_journal(course: Course, url: str) -> RunSpec | None:
    operations = course.tools.journal.find(course.operation_id)
    project = operations.project if operations else ""
    specs = course.tools.journal.known_specs(project)
    return next((spec for spec in specs if spec.run_url == url), None)
