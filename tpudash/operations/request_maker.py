"""Makes an attempt's node through a queued resource, once, and follows it until it is served.

The request bears the name of the node that it asks for. It may wait for hours; what follows it can
break off at any moment and is taken up again by that name.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tpudash.domain.failure import CloudStatus, ErrorClass, Failure, Origin, RetryPolicy
from tpudash.domain.request import FINISHED_REQUEST_STATES, QueuedResource, RequestState
from tpudash.domain.resource_name import node_name, request_name
from tpudash.operations import calls
from tpudash.operations.making import (
    Asking,
    ask_once,
    check_still_wanted,
    is_own,
    is_ready,
    name_taken,
    taken_away,
    went_away,
    zone_refused,
)
from tpudash.operations.remover import Remover

if TYPE_CHECKING:
    from tpudash.domain.run import RunSpec
    from tpudash.gateways.protocols import CloudOperation
    from tpudash.operations.course import Course
    from tpudash.operations.run_files import RunFiles

LONGEST_LOOK_S: Final = 20.0
"""Pause between two looks at a request that waits: that may take hours."""

_LEAVING: Final = frozenset({RequestState.SUSPENDING, RequestState.SUSPENDED})


class RequestMaker:
    """Asks for one attempt's node by a queued resource in one zone."""

    def __init__(self, course: Course, files: RunFiles, startup_script: str) -> None:
        self._course = course
        self._files = files
        self._script = startup_script

    async def make_in(self, spec: RunSpec) -> None:
        """Ask for the node and return when it is READY.

        Raises:
            ZoneRefusedError: The request failed for want of capacity; it is deleted.
            TpudashError: It was refused, taken away or deleted, or nothing is known of it.
        """
        name = request_name(spec.project, spec.zone, spec.node_id)
        node = node_name(spec.project, spec.zone, spec.node_id)
        operation: CloudOperation | None = None
        if await self._is_there(name, spec):
            operation = await self._accepted(node)
        else:
            await self._check_free(node, spec)
            await check_still_wanted(self._course, self._files, spec)
            await self._files.write(spec)
            facts = {"node": node, "request": name}
            # From here on there may be a request, whatever happens to this process.
            intent = f"asking for {spec.node_id} in {spec.zone}"
            self._course.intend(intent, **facts, creates=True)
            self._course.say(f"asking for {spec.accelerator_type} in the queue of {spec.zone}")
            operation = await self._ask(name, spec, facts)
        self._course.say(f"request {spec.node_id} is in the queue of {spec.zone}", done=2)
        await self._follow(name, node, spec, operation)

    async def _check_free(self, node: str, spec: RunSpec) -> None:
        found = await self._course.node(node)
        if found is not None and not is_own(found, spec):
            raise name_taken(found, self._course)

    async def _is_there(self, name: str, spec: RunSpec) -> bool:
        found = await self._course.request(name)
        if found is not None and not is_own(found, spec):
            raise name_taken(found, self._course)
        return found is not None

    async def _accepted(self, node: str) -> CloudOperation | None:
        accepted = self._accepted_as(node)
        return await self._course.operation(accepted) if accepted else None

    def _accepted_as(self, node: str) -> str:
        """Return the cloud's operation that this one saved the name of before, or ""."""
        known = self._course.tools.journal.find(self._course.operation_id)
        return known.accepted.get(node, "") if known is not None else ""

    async def _ask(self, name: str, spec: RunSpec, facts: dict[str, str]) -> CloudOperation | None:
        former = self._accepted_as(facts["node"])
        template = calls.request_template_of(spec, self._script, former)
        asking = Asking(
            "CreateQueuedResource",
            f"request {spec.node_id}",
            facts,
            lambda tpu: tpu.create_request(spec.zone, spec.node_id, template),
            lambda: self._is_there(name, spec),
        )
        return await ask_once(self._course, spec, asking)

    async def _follow(
        self, name: str, node: str, spec: RunSpec, operation: CloudOperation | None
    ) -> None:
        tools = self._course.tools
        patient = replace(tools.pace, longest_s=max(LONGEST_LOOK_S, tools.pace.longest_s))
        pause, absent, seen = tools.pause(patient), tools.pause(), ""
        while True:
            if operation is not None and not operation.done:
                operation = await self._course.operation(operation.name)
            if operation is not None and operation.error is not None:
                raise zone_refused(spec, tools.classify(operation.error))
            request = await self._course.request(name)
            if request is not None:
                absent.reset()
                if await self._is_served(request, node, spec):
                    return
            elif operation is None or operation.done or absent.waited_s > tools.pace.give_up_s:
                raise went_away(spec)
            state = "not listed yet" if request is None else request.state
            if state != seen:
                pause.reset()
            seen = state
            self._course.say(f"request {spec.node_id} in {spec.zone} is {state}")
            await pause.wait()

    async def _is_served(self, request: QueuedResource, node: str, spec: RunSpec) -> bool:
        """Whether the request's node is READY.

        Raises:
            TpudashError: The request will never be served.
        """
        if request.state == RequestState.FAILED:
            await self._give_back(request, spec)
        if request.state in _LEAVING:
            who = f" by {request.initiator}" if request.initiator else ""
            raise taken_away(spec, f"request {request.request_id} is {request.state}{who}")
        if request.state not in {RequestState.ACTIVE, RequestState.PROVISIONING}:
            return False
        found = await self._course.node(node)
        return found is not None and is_ready(found, spec)

    async def _give_back(self, request: QueuedResource, spec: RunSpec) -> None:
        """Delete a failed request, which would hold its quota for good, and raise why it failed."""
        failure = self._why(request, spec)
        self._course.say(f"request {request.request_id} failed: {failure.evidence}")
        await Remover(self._course).remove_request(request.name)
        raise zone_refused(spec, failure)

    def _why(self, request: QueuedResource, spec: RunSpec) -> Failure:
        words = request.failure or "the cloud gave no reason"
        valid_s = spec.placement.valid_until_s
        if valid_s is not None and request.create_time is not None:
            age = self._course.tools.clock.now() - request.create_time
            if age >= timedelta(seconds=valid_s):
                advice = "Let it wait longer with --valid-until-duration, or name more zones."
                return Failure(ErrorClass.STOCKOUT, words, advice, RetryPolicy.NEXT_ZONE)
        return self._course.tools.classify(CloudStatus("", words, (), Origin.OPERATION))


def is_finished(request: QueuedResource) -> bool:
    """Whether a request will never be served again and only holds quota."""
    return request.state in FINISHED_REQUEST_STATES
