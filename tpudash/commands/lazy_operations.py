"""The operations room of a screen, imported when it is first asked for: after the first frame."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tpudash.commands.screen import ScreenParts
    from tpudash.domain.operation import (
        LaunchChoices,
        LaunchRequest,
        OperationProgress,
        Plan,
        SupervisionWish,
    )
    from tpudash.operations.service import Operations
    from tpudash.operations.several import SeveralProjects


class LazyOperations:
    """`OperationsPort` that makes the real one when it is needed."""

    def __init__(self, parts: ScreenParts) -> None:
        self._parts = parts

    @cached_property
    def _room(self) -> Operations | SeveralProjects:
        from tpudash.commands.operating import operations_for_screen

        return operations_for_screen(self._parts)

    async def launch_choices(self, zone: str) -> LaunchChoices:
        """List the accelerator types and runtime versions that a zone offers."""
        return await self._room.launch_choices(zone)

    async def plan_launch(self, request: LaunchRequest) -> Plan:
        """Check the request against the cloud and return the plan; changes nothing."""
        return await self._room.plan_launch(request)

    async def plan_resume(self, run: str) -> Plan:
        """Return the plan to continue a run on a new node; changes nothing."""
        return await self._room.plan_resume(run)

    async def plan_delete(self, targets: Sequence[str]) -> Plan:
        """Return the plan to delete runs (by name) or nodes (by full name); changes nothing."""
        return await self._room.plan_delete(targets)

    def start(self, plan: Plan) -> OperationProgress:
        """Carry out a confirmed plan in the background; progress goes to the store."""
        return self._room.start(plan)

    async def plan_supervise(self, run: str, wish: SupervisionWish) -> Plan:
        """Return the plan to have a run resumed by itself; changes nothing."""
        return await self._room.plan_supervise(run, wish)

    async def plan_stand_down(self, run: str) -> Plan:
        """Return the plan to end the supervision of a run; changes nothing."""
        return await self._room.plan_stand_down(run)

    async def reconcile(self) -> None:
        """End what was left behind and has come to its end since."""
        await self._room.reconcile()

    def left_behind(self, project: str) -> Sequence[OperationProgress]:
        """Return what the journal holds as begun and not ended, and nobody here follows."""
        return self._room.left_behind(project)

    def follow(self, operation_id: str) -> OperationProgress:
        """Take up an operation that was left behind; progress goes to the store."""
        return self._room.follow(operation_id)
