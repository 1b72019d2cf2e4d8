"""What an operator's console has beside operations: control, shells, what was left behind.

Watch mode never imports this, and what it needs is imported after the first frame.
"""

from __future__ import annotations

import asyncio
import logging
import shlex
import shutil
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tpudash.commands.screen_budgets import ScreenBudgets
from tpudash.domain.control import Control
from tpudash.domain.operation import OperationKind, OperationState, SupervisionWish
from tpudash.domain.shell import ShellCommand
from tpudash.errors import ConfigurationError, TpudashError
from tpudash.store.changes import ControlChanged, OperationChanged
from tpudash.tui.acts import OperatorPorts

if TYPE_CHECKING:
    from tpudash.commands.lazy_operations import LazyOperations
    from tpudash.commands.screen import ScreenParts
    from tpudash.domain.node import Node
    from tpudash.domain.operation import OperationsPort, Plan
    from tpudash.operations.control import ControlLock
    from tpudash.store.snapshot import ConnectionInfo

logger = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 2.0
WAIT_FOR_CONNECTION_S: Final = 0.2
TAKEN_UP_BY_ITSELF: Final = timedelta(minutes=30)
"""What a dropped session was doing so lately is gone on with; older operations wait to be asked."""


class LazyEmulator:
    """Control of the emulator at an endpoint; nothing is imported or opened until it is used."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint

    async def preempt(self, node: str, notice_s: float) -> None:
        """Take a node away as Google would, with that many seconds of notice."""
        from tpudash.gateways.emulator_control import EmulatorControl

        async with EmulatorControl(self._endpoint) as control:
            await control.preempt(node, notice_s, wait=False)


class ScreenShell:
    """Shells on workers: the command that the user set, or else the connection's own way."""

    def __init__(self, parts: ScreenParts) -> None:
        self._parts = parts

    async def shell(self, node: Node, worker: int) -> ShellCommand:
        """Return what opens a shell on a worker.

        Raises:
            TpudashError: There is no way onto it, or the command that was set can't be used.
        """
        template = self._parts.state.settings.shell_command
        if template:
            return configured_shell(template, node, worker)
        shells = (await self._parts.link.cloud()).shells
        if shells is None:
            raise ConfigurationError(
                "this endpoint offers no shells",
                hint="set shell_command to what opens a shell on a worker",
            )
        return await shells.shell(node, worker)


def configured_shell(template: str, node: Node, worker: int) -> ShellCommand:
    """Return the user's own command, with the names in braces filled in.

    Raises:
        ConfigurationError: It names something unknown, or its program is not there.
    """
    address = next((one for one in node.workers if one.index == worker), None)
    names = {
        "node": node.node_id,
        "project": node.project,
        "zone": node.zone,
        "worker": str(worker),
        "internal_ip": address.ip_address if address else "",
        "external_ip": (address.external_ip or "") if address else "",
    }
    try:
        # Split first, so that what the cloud says can never become another argument.
        arguments = tuple(part.format_map(names) for part in shlex.split(template))
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        raise ConfigurationError(
            "shell_command can't be used",
            detail=f"{template!r}: {error}",
            hint=f"names that it may use: {', '.join(f'{{{name}}}' for name in names)}",
        ) from error
    if not arguments or shutil.which(arguments[0]) is None:
        raise ConfigurationError(
            "shell_command can't be used", detail=f"there is no program {arguments[:1]}"
        )
    return ShellCommand(arguments)


class ScreenControl:
    """Control of the project that the screen is connected to; free until it is."""

    def __init__(self, parts: ScreenParts) -> None:
        self._parts = parts
        self._lock: ControlLock | None = None

    def check(self) -> Control:
        """Say how things stand, and take control where nobody has it."""
        lock = self._found()
        return Control(is_ours=True) if lock is None else lock.check()

    def take(self) -> Control:
        """Take control away from whoever has it."""
        lock = self._found()
        return Control(is_ours=True) if lock is None else lock.take()

    def release(self) -> None:
        """Give control up."""
        if self._lock is not None:
            self._lock.release()

    def _found(self) -> ControlLock | None:
        info = self._parts.store.snapshot.connection
        if self._lock is None and info is not None:
            self._lock = self._made(info)
        return self._lock

    def _made(self, info: ConnectionInfo) -> ControlLock:
        from tpudash.commands.operating import owner_of
        from tpudash.operations.control import ControlLock
        from tpudash.operations.owner import default_owner

        settings, paths = self._parts.state.settings, self._parts.state.paths
        named = settings.control_dir
        folder = Path(named).expanduser() if named else paths.state_dir / "control"
        owner = owner_of(settings) or default_owner()
        return ControlLock(folder, _place_of(info), owner, self._parts.clock)

    async def keep(self) -> None:
        """Keep the store up to date with who has control, and give it up at the end."""
        try:
            while True:
                if self._found() is not None:
                    control = await asyncio.to_thread(self.check)
                    self._parts.store.apply(ControlChanged(control))
                    await self._parts.clock.sleep(LOOK_EVERY_S)
                else:
                    await self._parts.clock.sleep(WAIT_FOR_CONNECTION_S)
        finally:
            self.release()


class ScreenSupervision:
    """Supervision of runs from the console: begun here, and ended wherever it goes on."""

    def __init__(self, parts: ScreenParts, operations: LazyOperations) -> None:
        self._parts = parts
        self._operations = operations

    def is_supervised(self, run: str) -> bool:
        """Whether a run is resumed by itself now, here or by another process."""
        snapshot = self._parts.store.snapshot
        known = snapshot.runs.get(run)
        lease = known.supervision if known is not None else None
        if lease is not None and lease.is_alive(self._parts.clock.now()):
            return True
        return any(
            (one.kind, one.run, one.state) == (OperationKind.SUPERVISE, run, OperationState.RUNNING)
            for one in snapshot.operations.values()
        )

    async def plan_supervise(self, run: str, *, on: bool) -> Plan:
        """Return the plan to switch supervision of a run on or off; changes nothing."""
        if on:
            return await self._operations.plan_supervise(run, SupervisionWish())
        return await self._operations.plan_stand_down(run)


def _place_of(info: ConnectionInfo) -> str:
    return f"{info.project}@{info.endpoint}" if info.endpoint else info.project


async def take_up(parts: ScreenParts, operations: OperationsPort) -> None:
    """Show what other sessions left behind, and go on with what was dropped just now."""
    store = parts.store
    while store.snapshot.connection is None or store.snapshot.control is None:
        await parts.clock.sleep(WAIT_FOR_CONNECTION_S)
    try:
        await operations.reconcile()
    except TpudashError as error:
        logger.info("what was left behind could not be looked at: %s", error)
    now, connection = parts.clock.now(), store.snapshot.connection
    projects = connection.projects or (connection.project,)
    for one in (one for project in projects for one in operations.left_behind(project)):
        is_ours = store.snapshot.control.is_ours
        is_loose = one.state is OperationState.INTERRUPTED
        if is_loose and is_ours and now - one.updated < TAKEN_UP_BY_ITSELF:
            try:
                operations.follow(one.operation_id)
            except TpudashError as error:
                logger.info("operation %s was not taken up: %s", one.operation_id, error)
            else:
                continue
        store.apply(OperationChanged(one))


def operator_ports(parts: ScreenParts, operations: LazyOperations) -> OperatorPorts:
    """Return what the console may ask, and have it kept up to date beside the pollers."""
    control = ScreenControl(parts)
    parts.beside += [control.keep, lambda: take_up(parts, operations)]
    endpoint = parts.state.settings.endpoint
    return OperatorPorts(
        emulator=LazyEmulator(endpoint) if endpoint else None,
        shell=ScreenShell(parts),
        supervision=ScreenSupervision(parts, operations),
        control=control,
        budgets=ScreenBudgets(parts),
    )
