"""Makes the node of an attempt, once: in the first candidate zone that has capacity.

An attempt's node is known by its name, its labels and its spec. Whatever happened before, the cloud
is asked first, so that a node that is there already is taken up and never made a second time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tpudash.domain.failure import ErrorClass, Failure, RetryPolicy
from tpudash.domain.node import SPEC_METADATA_KEY, Node, NodeState
from tpudash.domain.operation import OperationKind
from tpudash.domain.resource_name import node_name
from tpudash.domain.run import RecordError, RunSpec, decode_spec
from tpudash.domain.run_state import age_text
from tpudash.errors import (
    CapacityError,
    NotFoundError,
    OperationFailedError,
    OutcomeUnknownError,
    TpudashError,
    UnreachableError,
)
from tpudash.operations.calls import labels_of, template_of
from tpudash.operations.refusals import class_of, is_passing, leaves_doubt, refused
from tpudash.operations.run_files import is_same_run

if TYPE_CHECKING:
    from tpudash.gateways.protocols import CloudOperation
    from tpudash.operations.course import Course
    from tpudash.operations.run_files import RunFiles


class _ZoneRefusedError(CapacityError):
    """A zone has no capacity; another one may."""


class NodeMaker:
    """Makes one attempt's node and follows it until it is READY."""

    def __init__(self, course: Course, files: RunFiles, startup_script: str) -> None:
        self._course = course
        self._files = files
        self._script = startup_script

    async def make(self, spec: RunSpec) -> RunSpec:
        """Make the node, and return the spec with the zone that it got.

        Raises:
            CapacityError: No candidate zone had capacity.
            OutcomeUnknownError: CreateNode was not answered and no node has shown itself.
            TpudashError: The cloud refused, or the node went away while it was made.
        """
        refusals: list[str] = []
        last: TpudashError | None = None
        for zone in await self._zones(spec):
            there = replace(spec, zone=zone)
            try:
                await self._make_in(there)
            except _ZoneRefusedError as error:
                refusals.append(f"{zone}: {error.detail}")
                self._course.say(f"{error.title}; {error.detail}")
                last = error
            except TpudashError as error:
                if not leaves_doubt(error):
                    await self._note_failure(there, error)
                raise
            else:
                return there
        exhausted = _no_capacity(spec, refusals, last)
        await self._note_failure(spec, exhausted)
        raise exhausted

    async def _zones(self, spec: RunSpec) -> tuple[str, ...]:
        """Return the candidate zones, that of a node which is there already before all others."""
        if len(spec.zones) == 1:
            return spec.zones
        there = []
        for zone in spec.zones:
            node = await self._course.node(node_name(spec.project, zone, spec.node_id))
            if node is not None and is_own(node, spec) and not node.is_dead:
                there.append(zone)
        return tuple(dict.fromkeys((*there, *spec.zones)))

    async def _make_in(self, spec: RunSpec) -> None:
        name = node_name(spec.project, spec.zone, spec.node_id)
        found = await self._course.node(name)
        if found is not None:
            self._adopt(found, spec)
            await self._until_ready(name, spec, await self._accepted(name))
            return
        await self._check_still_wanted(spec)
        await self._files.write(spec)
        # From here on there may be a node, whatever happens to this process.
        self._course.intend(f"creating {spec.node_id} in {spec.zone}", node=name)
        self._course.say(f"asking for {spec.accelerator_type} in {spec.zone}")
        operation = await self._create(name, spec)
        self._course.say(f"{spec.node_id} is being made in {spec.zone}", done=2)
        await self._until_ready(name, spec, operation)

    def _adopt(self, node: Node, spec: RunSpec) -> None:
        if not is_own(node, spec):
            raise name_taken(node, self._course)
        self._course.say(f"{node.node_id} is there already ({node.state}); taking it up", done=2)

    async def _accepted(self, name: str) -> CloudOperation | None:
        """Return the cloud's operation that makes a node, where this one saved its name before."""
        known = self._course.tools.journal.find(self._course.operation_id)
        accepted = known.accepted.get(name) if known is not None else None
        return None if accepted is None else await self._course.operation(accepted)

    async def _check_still_wanted(self, spec: RunSpec) -> None:
        """See that nobody asked for the run's end while this was under way."""
        operations = self._course.tools.journal.operations()
        known = [one.operation_id for one in operations]
        later = known.index(self._course.operation_id) if self._course.operation_id in known else 0
        ended = any(
            one.kind is OperationKind.DELETE
            for one in operations[later:]
            if (one.run, one.project) == (spec.run, spec.project)
        )
        found = (await self._files.read(spec.run_url)).spec
        is_deleted = found is not None and found.attempt == spec.attempt and found.deleted
        if ended or is_deleted:
            raise refused(f"run {spec.run} was deleted meanwhile; no node is made", ErrorClass.GONE)

    async def _create(self, name: str, spec: RunSpec) -> CloudOperation | None:
        """Call CreateNode until it is accepted or refused; None when the node is there."""
        tools = self._course.tools
        template = template_of(spec, self._script)
        pause = tools.pause()
        for _ in range(tools.pace.retries):
            try:
                tpu = await tools.tpu()
                operation = await tpu.create_node(spec.zone, spec.node_id, template)
            except OutcomeUnknownError as error:
                return await self._settled(name, spec, error)
            except TpudashError as error:
                if class_of(error) is ErrorClass.NAME_TAKEN:
                    node = await self._course.node(name)
                    if node is not None:
                        self._adopt(node, spec)
                        return None
                elif not _may_repeat(error):
                    raise _judged(error, spec) from error
                self._course.say(f"{error.title}; asking again")
                last = error
            else:
                self._course.intend(
                    f"{spec.node_id} is being created", node=name, cloud_operation=operation.name
                )
                return operation
            await pause.wait()
        raise last

    async def _settled(
        self, name: str, spec: RunSpec, error: OutcomeUnknownError
    ) -> CloudOperation | None:
        """Find out whether an unanswered CreateNode made its node; never by making another."""
        pause = self._course.tools.pause()
        self._course.say("CreateNode was not answered; looking whether the node is there")
        while True:
            node = await self._course.node(name)
            if node is not None:
                self._adopt(node, spec)
                return None
            if pause.waited_s > self._course.tools.pace.settle_s:
                raise OutcomeUnknownError(
                    f"it is not known whether {spec.node_id} will be made",
                    detail=f"{error.title}; the cloud lists no such node "
                    f"{age_text_of(pause.waited_s)} later",
                    hint="do the same again in a while: it takes the node up if it is there",
                    failure=error.failure,
                ) from error
            await pause.wait()

    async def _until_ready(
        self, name: str, spec: RunSpec, operation: CloudOperation | None
    ) -> None:
        pause, absent = self._course.tools.pause(), self._course.tools.pause()
        while True:
            if operation is not None and not operation.done:
                operation = await self._course.operation(operation.name)
            if operation is not None and operation.done and operation.error is not None:
                await self._rolled_back(name, spec, operation)
                return
            node = await self._course.node(name)
            if node is not None:
                absent.reset()
                if self._is_ready(node, spec):
                    return
            elif operation is None or operation.done:
                raise _went_away(spec)
            elif absent.waited_s > self._course.tools.pace.give_up_s:
                # While its operation runs, why a node is not there is for the operation to tell.
                raise _went_away(spec)
            state = "not listed yet" if node is None else node.state
            self._course.say(f"{spec.node_id} in {spec.zone} is {state}")
            await pause.wait()

    def _is_ready(self, node: Node, spec: RunSpec) -> bool:
        if node.is_dead:
            failure = Failure(
                ErrorClass.PREEMPTED_IN_CREATE,
                f"{node.node_id} is {node.state}",
                f"tpudash resume {spec.run} makes another one",
                RetryPolicy.NEVER,
            )
            raise OperationFailedError(
                f"{node.node_id} was taken away while it was made",
                detail=failure.evidence,
                hint=failure.advice,
                failure=failure,
            )
        return node.state == NodeState.READY

    async def _rolled_back(self, name: str, spec: RunSpec, operation: CloudOperation) -> None:
        """Follow a failed creation until its node is gone, and raise why it failed.

        Returns without raising when the node is READY all the same.
        """
        status = operation.error
        assert status is not None  # noqa: S101  the caller saw it
        failure = self._course.tools.classify(status)
        self._course.say(f"no node in {spec.zone}: {failure.evidence}")
        pause = self._course.tools.pause()
        while (node := await self._course.node(name)) is not None:
            if node.state == NodeState.READY:
                return
            if not is_own(node, spec):
                break
            if node.is_dead or pause.waited_s > self._course.tools.pace.settle_s:
                raise OperationFailedError(
                    f"{spec.node_id} could not be made and is still listed as {node.state}",
                    detail=failure.evidence,
                    hint=f"tpudash resume {spec.run} deletes what is left and makes another one",
                    failure=failure,
                )
            await pause.wait()
        kind = _ZoneRefusedError if failure.retry is RetryPolicy.NEXT_ZONE else OperationFailedError
        raise kind(
            f"{spec.zone} could not provide {spec.accelerator_type}",
            detail=failure.evidence,
            hint=failure.advice,
            failure=failure,
        )

    async def _note_failure(self, spec: RunSpec, error: TpudashError) -> None:
        """Write into `run.json` why there is no node, where there is none."""
        if await self._course.node(node_name(spec.project, spec.zone, spec.node_id)) is not None:
            return
        told = {"class": str(class_of(error)), "detail": str(error), "hint": error.hint}
        try:
            found = (await self._files.read(spec.run_url)).spec
            if found is not None and (found.deleted or not is_same_run(found, spec)):
                return
            await self._files.write(replace(spec, failure=told))
        except TpudashError as second:
            self._course.say(f"could not note the failure in run.json: {second.title}")


def is_own(node: Node, spec: RunSpec) -> bool:
    """Whether a node was made for this very attempt: by its labels and by its spec."""
    if any(node.labels.get(key) != value for key, value in labels_of(spec).items()):
        return False
    try:
        found = decode_spec(node.metadata.get(SPEC_METADATA_KEY, ""))
    except RecordError:
        return False
    return (found.run_url, found.created) == (spec.run_url, spec.created)


def name_taken(node: Node, course: Course) -> TpudashError:
    """Return the refusal to use a node that somebody made for another purpose."""
    return taken_error(node, age_text_of_node(node, course))


def taken_error(node: Node, age: str) -> TpudashError:
    """Return the error that says whose a node is that has the name we want."""
    owner = node.owner or "somebody (it has no owner label)"
    return refused(
        f"the name {node.node_id} is taken in {node.zone}",
        ErrorClass.NAME_TAKEN,
        detail=f"it belongs to {owner}, is {node.state} and was made {age}",
        hint="choose another name",
    )


def age_text_of_node(node: Node, course: Course) -> str:
    """Return how long ago a node was made, in words."""
    if node.create_time is None:
        return "at an unknown time"
    return f"{age_text(course.tools.clock.now() - node.create_time)} ago"


def age_text_of(seconds: float) -> str:
    """Return a number of seconds in words."""
    return f"{seconds:.0f} s"


def _may_repeat(error: TpudashError) -> bool:
    """Whether a refused CreateNode may be asked for again: it surely made nothing."""
    if error.failure is not None and error.failure.retry is RetryPolicy.SAME_PLACE:
        return True
    return isinstance(error, UnreachableError) or is_passing(error)


def _judged(error: TpudashError, spec: RunSpec) -> TpudashError:
    """Return a refusal at the call as one of its zone alone, where it is that."""
    failure = error.failure
    if failure is None or failure.retry is not RetryPolicy.NEXT_ZONE:
        return error
    if failure.error_class is ErrorClass.QUOTA:
        return error
    return _ZoneRefusedError(
        f"{spec.zone} could not provide {spec.accelerator_type}",
        detail=failure.evidence,
        hint=failure.advice,
        failure=failure,
    )


def _went_away(spec: RunSpec) -> TpudashError:
    failure = Failure(
        ErrorClass.GONE,
        f"{spec.node_id} is not listed any more",
        f"tpudash resume {spec.run} makes another one",
        RetryPolicy.NEVER,
    )
    return NotFoundError(
        f"{spec.node_id} was deleted while it was made", hint=failure.advice, failure=failure
    )


def _no_capacity(spec: RunSpec, refusals: list[str], last: TpudashError | None) -> TpudashError:
    places = ", ".join(spec.zones)
    hint = (
        "try again later, or name more zones with --zone; "
        "tpudash cost and the launch form show where the type is offered"
    )
    failure = last.failure if last is not None else None
    return CapacityError(
        f"no capacity for {spec.accelerator_type} ({spec.scheduling}) in {places}",
        detail="; ".join(refusals),
        hint=failure.advice if failure and failure.advice else hint,
        failure=failure,
    )
