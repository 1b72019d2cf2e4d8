"""Operations in several projects: what is made goes to the first, what is named to where it is."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from tpudash.domain.resource_name import ResourceName
from tpudash.errors import NotFoundError, OperationFailedError, TpudashError, UsageError
from tpudash.operations.payload import Payload
from tpudash.operations.progress import project_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from tpudash.domain.operation import (
        LaunchChoices,
        LaunchRequest,
        OperationProgress,
        Plan,
        ResumeChanges,
        SupervisionWish,
    )
    from tpudash.operations.service import Operations

T = TypeVar("T")


class SeveralProjects:
    """The operations rooms of several projects as one (`OperationsPort`); they share a journal.

    Args:
        rooms: By project; new runs go to the first.
    """

    def __init__(self, rooms: Mapping[str, Operations]) -> None:
        self._rooms = dict(rooms)
        self._own = next(iter(self._rooms.values()))
        self._by_operation: dict[str, Operations] = {}

    async def launch_choices(self, zone: str) -> LaunchChoices:
        """List the accelerator types and runtime versions that a zone offers the first project."""
        return await self._own.launch_choices(zone)

    async def plan_launch(self, request: LaunchRequest) -> Plan:
        """Check the request against the first project and return the plan; changes nothing."""
        return await self._own.plan_launch(request)

    async def plan_resume(self, run: str, changes: ResumeChanges | None = None) -> Plan:
        """Return the plan to continue a run, whichever project it is in; changes nothing."""
        return await self._where_it_is(lambda room: room.plan_resume(run, changes))

    async def plan_supervise(self, run: str, wish: SupervisionWish) -> Plan:
        """Return the plan to have a run resumed by itself; changes nothing."""
        return await self._where_it_is(lambda room: room.plan_supervise(run, wish))

    async def plan_stand_down(self, run: str) -> Plan:
        """Return the plan to end the supervision of a run; changes nothing."""
        return await self._where_it_is(lambda room: room.plan_stand_down(run))

    async def plan_delete(self, targets: Sequence[str]) -> Plan:
        """Return the plan to delete things of one project; changes nothing.

        Raises:
            UsageError: They are named in full and lie in several projects.
        """
        named = {ResourceName.parse(name).project for name in targets if name.count("/") == 5}
        if len(named) > 1:
            raise UsageError(
                f"these are in {len(named)} projects: {', '.join(sorted(named))}",
                hint="delete what is in one project at a time",
            )
        project = next(iter(named), None)
        if project in self._rooms:
            return await self._rooms[project].plan_delete(targets)
        return await self._where_it_is(lambda room: room.plan_delete(targets))

    async def _where_it_is(self, plan: Callable[[Operations], Awaitable[T]]) -> T:
        """Plan in the first project that knows of the thing.

        Raises:
            TpudashError: None does, or one that might could not be asked.
        """
        absent: TpudashError | None = None
        silent: TpudashError | None = None
        for room in self._rooms.values():
            try:
                found = await plan(room)
            except NotFoundError as error:
                absent = absent or error
            except TpudashError as error:
                if room is self._own:
                    raise
                silent = silent or error
            else:
                return found
        refusal = silent or absent
        assert refusal is not None  # noqa: S101  there is at least one room
        raise refusal

    def start(self, plan: Plan) -> OperationProgress:
        """Carry out a confirmed plan in the project that it was made for."""
        payload = plan.payload
        if not isinstance(payload, Payload):
            msg = "this plan was not made here"
            raise TypeError(msg)
        room = self._room_of(project_of(payload))
        return self._noted(room, room.start(plan))

    async def reconcile(self) -> None:
        """End in the journal what has come to its end since, in each project that answers.

        Raises:
            TpudashError: No project could be asked.
        """
        rooms = self._rooms.values()
        answers = await asyncio.gather(*(one.reconcile() for one in rooms), return_exceptions=True)
        failed = [answer for answer in answers if isinstance(answer, BaseException)]
        if failed and (
            len(failed) == len(answers) or not all(isinstance(one, TpudashError) for one in failed)
        ):
            raise failed[0]

    def left_behind(self, project: str) -> Sequence[OperationProgress]:
        """Return what was begun in a project, has not ended, and is not followed here."""
        return self._room_of(project).left_behind(project)

    def follow(self, operation_id: str) -> OperationProgress:
        """Take up an operation of the journal, in the project that it was begun in."""
        begun = next(
            (one for one in self._own.unfinished() if one.operation_id == operation_id), None
        )
        room = self._by_operation.get(operation_id)
        if room is None:
            room = self._own if begun is None else self._room_of(begun.project)
        return self._noted(room, room.follow(operation_id))

    async def wait(self, operation_id: str) -> OperationProgress:
        """Return how an operation ended that was started or followed here."""
        return await self._by_operation.get(operation_id, self._own).wait(operation_id)

    async def aclose(self) -> None:
        """Stop following; what the cloud was asked for goes on."""
        for room in self._rooms.values():
            await room.aclose()

    def _noted(self, room: Operations, progress: OperationProgress) -> OperationProgress:
        self._by_operation[progress.operation_id] = room
        return progress

    def _room_of(self, project: str) -> Operations:
        if project not in self._rooms:
            raise OperationFailedError(
                f"this was begun in project {project}, which was not named here",
                hint=f"begin again with --project {project}",
            )
        return self._rooms[project]
