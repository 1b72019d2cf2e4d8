"""Makes the node of an attempt, once: in the first candidate zone that has capacity.

An attempt's node is known by its name, its labels and its spec. Whatever happened before, the cloud
is asked first, so that a node that is there already is taken up and never made a second time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tpudash.domain.node import NodeState
from tpudash.domain.resource_name import ResourceName, node_name, request_name
from tpudash.errors import (
    CapacityError,
    OperationFailedError,
    OutcomeUnknownError,
    TpudashError,
)
from tpudash.operations.calls import template_of
from tpudash.operations.journal import scrubbed
from tpudash.operations.making import (
    Asking,
    ZoneRefusedError,
    ask_once,
    check_still_wanted,
    is_own,
    is_ready,
    name_taken,
    went_away,
    zone_refused,
)
from tpudash.operations.refusals import class_of, leaves_doubt
from tpudash.operations.request_maker import RequestMaker
from tpudash.operations.run_files import is_same_run

if TYPE_CHECKING:
    from tpudash.domain.node import Node
    from tpudash.domain.run import RunSpec
    from tpudash.gateways.protocols import CloudOperation
    from tpudash.operations.course import Course
    from tpudash.operations.run_files import RunFiles


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
            except ZoneRefusedError as error:
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
        """Return the candidate zones, where something of this attempt may be before all others."""
        if len(spec.zones) == 1:
            return spec.zones
        first = []
        known = self._course.tools.journal.find(self._course.operation_id)
        if known is not None and known.unanswered is not None:
            # What was asked for there and not answered may show itself at any moment.
            zone = ResourceName.parse(known.unanswered).location
            first += [zone] if zone in spec.zones else []
        for zone in spec.zones:
            node = await self._course.node(node_name(spec.project, zone, spec.node_id))
            if node is not None and is_own(node, spec) and not node.is_dead:
                first.append(zone)
            elif spec.placement.queued:
                name = request_name(spec.project, zone, spec.node_id)
                request = await self._course.request(name)
                if request is not None and is_own(request, spec):
                    first.append(zone)
        return tuple(dict.fromkeys((*first, *spec.zones)))

    async def _make_in(self, spec: RunSpec) -> None:
        if spec.placement.queued:
            await RequestMaker(self._course, self._files, self._script).make_in(spec)
            return
        name = node_name(spec.project, spec.zone, spec.node_id)
        found = await self._course.node(name)
        if found is not None:
            self._adopt(found, spec)
            await self._until_ready(name, spec, await self._accepted(name))
            return
        await check_still_wanted(self._course, self._files, spec)
        await self._files.write(spec)
        # From here on there may be a node, whatever happens to this process.
        self._course.intend(f"creating {spec.node_id} in {spec.zone}", node=name, creates=True)
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

    async def _create(self, name: str, spec: RunSpec) -> CloudOperation | None:
        template = template_of(spec, self._script)

        async def is_there() -> bool:
            node = await self._course.node(name)
            if node is not None:
                self._adopt(node, spec)
            return node is not None

        asking = Asking(
            "CreateNode",
            spec.node_id,
            {"node": name},
            lambda tpu: tpu.create_node(spec.zone, spec.node_id, template),
            is_there,
        )
        return await ask_once(self._course, spec, asking)

    async def _until_ready(
        self, name: str, spec: RunSpec, operation: CloudOperation | None
    ) -> None:
        pause, absent = self._course.tools.pause(), self._course.tools.pause()
        unseen: OutcomeUnknownError | None = None
        while True:
            if operation is not None and not operation.done:
                try:
                    operation = await self._course.operation(operation.name)
                except OutcomeUnknownError as error:
                    # The node itself tells whether it came up, though not why it did not.
                    self._course.say(f"{error.title}; following {spec.node_id} alone")
                    operation, unseen = None, error
            if operation is not None and operation.done and operation.error is not None:
                await self._rolled_back(name, spec, operation)
                return
            node = await self._course.node(name)
            if node is not None:
                absent.reset()
                if is_ready(node, spec):
                    return
            elif operation is None or operation.done:
                raise unseen or went_away(spec)
            elif absent.waited_s > self._course.tools.pace.give_up_s:
                # While its operation runs, why a node is not there is for the operation to tell.
                raise went_away(spec)
            state = "not listed yet" if node is None else node.state
            self._course.say(f"{spec.node_id} in {spec.zone} is {state}")
            await pause.wait()

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
        raise zone_refused(spec, failure)

    async def _note_failure(self, spec: RunSpec, error: TpudashError) -> None:
        """Write into `run.json` why there is no node, where there is none."""
        if await self._course.node(node_name(spec.project, spec.zone, spec.node_id)) is not None:
            return
        words = {"class": str(class_of(error)), "detail": str(error), "hint": error.hint}
        told = {key: scrubbed(word) for key, word in words.items()}
        try:
            found = (await self._files.read(spec.run_url)).spec
            if found is not None and (found.deleted or not is_same_run(found, spec)):
                return
            await self._files.write(replace(spec, failure=told))
        except TpudashError as second:
            self._course.say(f"could not note the failure in run.json: {second.title}")


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
