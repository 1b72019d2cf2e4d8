"""Deletes nodes and queued requests, and follows each until the cloud says that it is gone.

Only NOT_FOUND is gone. A node that took the name of the one that was meant is left alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tpudash.domain.failure import ErrorClass
from tpudash.domain.node import TRANSIENT_STATES, Node, NodeState
from tpudash.domain.request import FINISHED_REQUEST_STATES, QueuedResource, RequestState
from tpudash.domain.resource_name import is_same_resource
from tpudash.errors import NotFoundError, OperationFailedError, OutcomeUnknownError, TpudashError
from tpudash.operations.payload import Doomed
from tpudash.operations.refusals import is_passing, refused

if TYPE_CHECKING:
    from tpudash.gateways.protocols import CloudOperation
    from tpudash.operations.course import Course, Pause

_DELETABLE: Final = FINISHED_REQUEST_STATES | {
    RequestState.ACCEPTED,
    RequestState.WAITING_FOR_RESOURCES,
}
"""States in which a request may be deleted without force (proto, DeleteQueuedResourceRequest)."""


def doomed_of(node: Node) -> Doomed:
    """Return how to know a node again that is to be deleted."""
    requests = (node.queued_resource,) if node.queued_resource else ()
    return Doomed(
        name=node.name,
        create_time=node.create_time,
        run=node.run,
        owner=node.owner,
        requests=requests,
    )


class Remover:
    """Deletes what it is told to and nothing else. Each step may be repeated without harm."""

    def __init__(self, course: Course) -> None:
        self._course = course

    async def remove_node(self, doomed: Doomed) -> None:
        """Delete one node and return when it is gone for sure.

        Raises:
            RefusedError: Another node has the name by now.
            TpudashError: The cloud refuses, or does not answer for very long.
        """
        pause, unheard = self._course.tools.pause(), self._course.tools.pause()
        label = doomed.name.rsplit("/", 1)[-1]
        asked: CloudOperation | None = None
        while (node := await self._course.node(doomed.name)) is not None:
            _check_same(node, doomed)
            has_failed = False
            if asked is not None:
                asked = await self._still_running(asked, label)
                has_failed = asked is None
            if asked is None and (has_failed or node.state != NodeState.DELETING):
                asked = await self._ask_to_delete(node, unheard)
            waited = f" for {pause.waited_s // 60:.0f} min" if pause.waited_s > 60 else ""
            self._course.say(f"waiting until {label} is gone ({node.state}{waited})")
            await pause.wait()
        self._course.say(f"{label} is gone")

    async def _ask_to_delete(self, node: Node, unheard: Pause) -> CloudOperation | None:
        """Call DeleteNode; None when it has to be looked at again first.

        `unheard` counts the time since it was last accepted.
        """
        self._course.intend(f"deleting {node.node_id}", node=node.name)
        try:
            operation = await (await self._course.tools.tpu()).delete_node(node.name)
        except NotFoundError:
            return None
        except TpudashError as error:
            passes = is_passing(error) or isinstance(error, OutcomeUnknownError)
            if not passes and node.state not in TRANSIENT_STATES:
                raise
            if passes and unheard.waited_s > self._course.tools.pace.give_up_s:
                raise
            self._course.say(f"{node.node_id} can't be deleted yet: {error}")
            return None
        unheard.reset()
        self._course.intend(
            f"{node.node_id} is being deleted", node=node.name, cloud_operation=operation.name
        )
        return operation

    async def _still_running(self, asked: CloudOperation, label: str) -> CloudOperation | None:
        """Return the operation while it runs; None when it is over and the node still there."""
        try:
            operation = asked if asked.done else await self._course.operation(asked.name)
        except OutcomeUnknownError as unseen:
            # The node itself tells when it is gone.
            self._course.say(f"{unseen.title}; following {label} alone")
            return replace(asked, done=True)
        if operation is None or operation.error is None:
            return operation
        failure = self._course.tools.classify(operation.error)
        error = OperationFailedError(
            f"{label} could not be deleted",
            detail=failure.evidence,
            hint=failure.advice,
            failure=failure,
        )
        if is_passing(error):
            return None
        raise error

    async def remove_request(self, name: str) -> None:
        """Delete one queued resource, its nodes first, and return when it is gone for sure."""
        pause, unheard = self._course.tools.pause(), self._course.tools.pause()
        label = name.rsplit("/", 1)[-1]
        while (request := await self._course.request(name)) is not None:
            if request.state in _DELETABLE:
                await self._ask_to_delete_request(request, unheard)
            else:
                unheard.reset()
                if request.state == RequestState.ACTIVE:
                    await self._remove_nodes_of(request)
            self._course.say(f"waiting until request {label} is gone ({request.state})")
            await pause.wait()
        self._course.say(f"request {label} is gone")

    async def _remove_nodes_of(self, request: QueuedResource) -> None:
        for name in request.node_names:
            node = await self._course.node(name)
            made_by = node.queued_resource if node is not None else None
            if node is not None and made_by and is_same_resource(made_by, request.name):
                await self.remove_node(doomed_of(node))

    async def _ask_to_delete_request(self, request: QueuedResource, unheard: Pause) -> None:
        self._course.intend(f"deleting request {request.request_id}", request=request.name)
        try:
            await (await self._course.tools.tpu()).delete_request(request.name)
        except NotFoundError:
            return
        except TpudashError as error:
            # Its state may have moved on between the look and the call.
            now = await self._course.request(request.name)
            moved = now is None or now.state != request.state
            passes = is_passing(error) or isinstance(error, OutcomeUnknownError)
            if not (moved or passes) or unheard.waited_s > self._course.tools.pace.give_up_s:
                raise


def _check_same(node: Node, doomed: Doomed) -> None:
    same_labels = (node.run, node.owner) == (doomed.run, doomed.owner)
    times = {node.create_time, doomed.create_time} - {None}
    if same_labels and len(times) < 2:
        return
    raise refused(
        f"another node is called {node.node_id} now; it is left alone",
        ErrorClass.NAME_TAKEN,
        detail=f"owner {node.owner or 'unknown'}, run {node.run or 'none'}, {node.state}",
        hint="plan the deletion anew to see what is there",
    )
