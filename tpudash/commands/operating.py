"""Carries out launch, resume and delete from the command line, and makes the room for a screen."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import click

from tpudash.commands.acting import (
    ActFailedError,
    ActFlags,
    confirm,
    exit_code_of,
    print_plan,
    result_line,
    say,
)
from tpudash.commands.facts import read_facts
from tpudash.commands.items import operation_item, plan_item
from tpudash.commands.output import Answer, Item, SourceError, print_json
from tpudash.commands.running import run_async
from tpudash.commands.session import Session, open_session
from tpudash.config.paths import ensure_writable
from tpudash.cost.estimate import hourly_rate
from tpudash.domain.node import NodeState
from tpudash.domain.operation import OperationKind, OperationState
from tpudash.errors import ExitCode, NotFoundError, TpudashError
from tpudash.operations.journal import Journal
from tpudash.operations.owner import label_value
from tpudash.operations.payload import DeletePayload, LaunchPayload, ResumePayload
from tpudash.operations.service import Operations, OperationsOptions
from tpudash.operations.several import SeveralProjects
from tpudash.store.changes import OperationChanged

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tpudash.clock import Clock
    from tpudash.commands.screen import ScreenParts
    from tpudash.commands.state import CliState
    from tpudash.config.settings import Settings
    from tpudash.domain.node import Node, Scheduling
    from tpudash.domain.operation import OperationProgress, Plan
    from tpudash.domain.request import QueuedResource
    from tpudash.gateways.protocols import Cloud
    from tpudash.operations.course import Connecting
    from tpudash.operations.desk import Rate

    MakePlan = Callable[[Operations | SeveralProjects], Awaitable[Plan]]
    Report = Callable[[OperationProgress], None]

ACCEPTED_STEP: Final = 2
"""Steps of a launch or resume that are done once CreateNode was accepted."""
LOOK_EVERY_S: Final = 0.4


class OneProject:
    """A connector that gives one project alone, the first if none is named."""

    def __init__(self, connector: Connecting, project: str | None) -> None:
        self._connector = connector
        self._project = project

    async def cloud(self) -> Cloud:
        """Return the gateways to the project."""
        return (await self._connector.cloud()).of(self._project)


def operations_for_screen(parts: ScreenParts) -> Operations | SeveralProjects:
    """Return the operations room of a console; its progress goes to the screen's store."""

    def report(progress: OperationProgress) -> None:
        parts.store.apply(OperationChanged(progress))

    def rate(kind: str, zone: str, scheduling: Scheduling) -> float | None:
        return hourly_rate(kind, zone, scheduling, parts.prices)

    journal = _journal(parts.state, parts.clock)
    return _rooms(parts.state.settings, parts.link, journal, rate, report)


def operations_of_command(session: Session, report: Report) -> Operations | SeveralProjects:
    """Return the operations room of one command; `report` hears of its progress."""

    def rate(kind: str, zone: str, scheduling: Scheduling) -> float | None:
        return hourly_rate(kind, zone, scheduling, session.prices)

    journal = _journal(session.state, session.clock)
    return _rooms(session.settings, session.connection, journal, rate, report)


def _journal(state: CliState, clock: Clock) -> Journal:
    is_local = state.settings.endpoint is not None
    return Journal(state.paths.state_dir, clock, is_local=is_local)


def _rooms(
    settings: Settings, connector: Connecting, journal: Journal, rate: Rate, report: Report
) -> Operations | SeveralProjects:
    """Return the operations room, over those of each project where several are named."""

    def room(project: str | None) -> Operations:
        return Operations(
            OneProject(connector, project),
            journal,
            rate=rate,
            report=report,
            owner=owner_of(settings),
            options=_options(settings),
        )

    if len(settings.projects) < 2:
        return room(None)
    return SeveralProjects({project: room(project) for project in settings.projects})


def operate(
    state: CliState, flags: ActFlags, make_plan: MakePlan, names: Sequence[str]
) -> ExitCode:
    """Plan, confirm, apply, and with `--wait` follow to the end; returns the exit code.

    Raises:
        TpudashError: It could not be planned, was not confirmed, or failed.
    """
    ensure_writable(state.paths.state_dir, "state directory")
    return run_async(_operate(state, flags, make_plan, names))


def owner_of(settings: Settings) -> str | None:
    """Return whose runs are launched here, as a label value; None leaves it to the login name."""
    return label_value(settings.owner) if settings.owner else None


def _options(settings: Settings) -> OperationsOptions:
    return OperationsOptions(buckets=(settings.bucket,) if settings.bucket else ())


async def _operate(
    state: CliState, flags: ActFlags, make_plan: MakePlan, names: Sequence[str]
) -> ExitCode:
    async with open_session(state, read_only=False) as session:
        act = _Act(session, flags, names)
        try:
            return await act.run(make_plan)
        finally:
            await act.operations.aclose()


class _Act:
    """One act of the command line."""

    def __init__(self, session: Session, flags: ActFlags, names: Sequence[str]) -> None:
        self._session = session
        self._flags = flags
        self._names = names
        self._told = ""
        self._progress: OperationProgress | None = None
        self._moved = asyncio.Event()
        self.operations = operations_of_command(session, self._hear)

    def _hear(self, progress: OperationProgress) -> None:
        self._progress = progress
        self._moved.set()
        is_left = progress.state == OperationState.INTERRUPTED
        if progress.message and progress.message != self._told and not is_left:
            self._told = progress.message
            say(progress.message)

    async def run(self, make_plan: MakePlan) -> ExitCode:
        """Plan, confirm, apply and follow."""
        plan = await make_plan(self.operations)
        if self._flags.dry_run:
            print_plan(plan, self._answer([self._item_of_plan(plan)]), self._flags)
            return ExitCode.DONE
        confirm(plan, self._flags)
        begun = self.operations.start(plan)
        try:
            progress = await self._followed(plan, begun)
        except asyncio.CancelledError:
            self._say_how_to_follow(plan)
            raise
        return await self._told_result(progress)

    async def _followed(self, plan: Plan, begun: OperationProgress) -> OperationProgress:
        """Return the progress at which the command may end."""
        if self._flags.wait:
            return await self.operations.wait(begun.operation_id)
        while True:
            progress = self._progress or begun
            if progress.state != OperationState.RUNNING or await self._is_asked(plan, progress):
                return progress
            self._moved.clear()
            try:
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._moved.wait()
            except TimeoutError:
                continue

    async def _is_asked(self, plan: Plan, progress: OperationProgress) -> bool:
        """Whether everything was asked for, so that the cloud goes on without us."""
        payload = plan.payload
        if isinstance(payload, LaunchPayload | ResumePayload):
            # Nobody else would ask in the next zone when this one turns out to be full.
            is_only_zone = len(payload.spec.zones) == 1 or payload.spec.placement.queued
            return is_only_zone and progress.steps_done >= ACCEPTED_STEP
        if plan.kind is not OperationKind.DELETE:
            return progress.steps_done >= ACCEPTED_STEP
        requests = payload.requests if isinstance(payload, DeletePayload) else ()
        tpu = self._session.cloud.tpu
        asked = [await _is_ending(tpu.get_node, name) for name in plan.nodes]
        asked += [await _is_ending(tpu.get_request, name) for name in requests]
        return bool(asked) and all(asked)

    def _say_how_to_follow(self, plan: Plan) -> None:
        name = plan.run or (self._names[0] if self._names else "")
        follow = {
            OperationKind.LAUNCH: f"tpudash logs {name} --follow",
            OperationKind.RESUME: f"tpudash resume {name} --wait, or tpudash logs {name} --follow",
            OperationKind.DELETE: f"tpudash delete {name} --wait",
            OperationKind.STAND_DOWN: "tpudash runs",
        }
        say(f"nothing was undone; the cloud goes on with it. Follow: {follow[plan.kind]}")

    async def _told_result(self, progress: OperationProgress) -> ExitCode:
        """Print how it ended, as far as it did."""
        items, errors = await self._items(progress)
        code = exit_code_of(progress)
        if self._flags.as_json:
            print_json(self._answer(items, errors))
        elif code is ExitCode.DONE:
            click.echo("\n".join(result_line(item) for item in items))
        if code is not ExitCode.DONE:
            raise ActFailedError(progress)
        return code

    async def _items(self, progress: OperationProgress) -> tuple[list[Item], list[SourceError]]:
        """Return an item for each name: the run as it is now, and the operation."""
        operation = operation_item(progress)
        only = self._names[0] if len(self._names) == 1 and "/" not in self._names[0] else None
        known: dict[str, Item] = {}
        errors: list[SourceError] = []
        try:
            facts = await read_facts(self._session, runs=True, only=only)
        except TpudashError as error:
            errors = [SourceError.of("nodes", error)]
        else:
            known = {item["name"]: item for item in facts.run_items()}
            errors = facts.errors
        items = [
            {**known.get(name, {"name": name}), "operation": operation} for name in self._names
        ]
        return items, errors

    def _item_of_plan(self, plan: Plan) -> Item:
        name = plan.run or (self._names[0] if self._names else None)
        return {"name": name, "operation": None, "plan": plan_item(plan)}

    def _answer(self, items: list[Item], errors: Sequence[SourceError] = ()) -> Answer:
        return Answer(self._session.clock.now(), self._session.source, items, errors=errors)


async def _is_ending(look: Callable[[str], Awaitable[Node | QueuedResource]], name: str) -> bool:
    """Whether a thing is gone or being deleted; not where that can't be seen now."""
    try:
        return (await look(name)).state == NodeState.DELETING
    except NotFoundError:
        return True
    except TpudashError:
        return False
