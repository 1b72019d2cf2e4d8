"""Acts: from a key to a plan, a dialog and an operation. Only made where there is a port to ask."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tpudash.errors import NotAllowedError, TpudashError
from tpudash.store.changes import ControlChanged, OperationChanged
from tpudash.tui.action import Offer
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import timedelta

    from tpudash.domain.budget import BudgetPort
    from tpudash.domain.control import Control, ControlPort
    from tpudash.domain.node import Node
    from tpudash.domain.operation import (
        EmulatorPort,
        LaunchChoices,
        LaunchRequest,
        OperationProgress,
        OperationsPort,
        Plan,
        SupervisionPort,
    )
    from tpudash.domain.shell import ShellPort
    from tpudash.tui.hints import KeyHints
    from tpudash.tui.pane import HostApp, Subject
    from tpudash.tui.settings import LaunchDefaults

logger = logging.getLogger(__name__)

PREEMPTION_NOTICE_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorPorts:
    """What an operator's console may ask beside the operations room; each may be missing."""

    emulator: EmulatorPort | None = None
    shell: ShellPort | None = None
    supervision: SupervisionPort | None = None
    control: ControlPort | None = None
    budgets: BudgetPort | None = None

    def offers(self, *, is_emulator: bool) -> frozenset[Offer]:
        """Return what is at hand."""
        found = {
            Offer.PREEMPTION: self.emulator is not None and is_emulator,
            Offer.SHELL: self.shell is not None,
            Offer.SUPERVISION: self.supervision is not None,
            Offer.CONTROL: self.control is not None,
            Offer.BUDGETS: self.budgets is not None,
        }
        return frozenset(offer for offer, is_there in found.items() if is_there)


def control_words(control: Control | None, hints: KeyHints) -> str:
    """Return why a console without control may change nothing; "" where it may."""
    if control is None or control.is_ours:
        return ""
    return f"{holder_words(control)}. {hints.fill('{take-control} takes it over.')}"


def holder_words(control: Control) -> str:
    """Return who has control, since when and where."""
    holder = control.holder
    if holder is None:
        return "Another console has control"
    place = f" on {holder.host} {holder.place}".rstrip()
    words = f"{holder.owner} has control since {holder.since:%H:%M} UTC{place}"
    return safe_text(words, 160)


class GuardedOperations:
    """The operations room behind the last gate: nothing begins without control of the project."""

    def __init__(
        self, operations: OperationsPort, control: ControlPort | None, hints: KeyHints
    ) -> None:
        self._operations = operations
        self._control = control
        self._hints = hints

    def check_control(self) -> None:
        """See that this console may change something now.

        Raises:
            NotAllowedError: Another console has control.
        """
        words = control_words(self._control.check() if self._control else None, self._hints)
        if words:
            raise NotAllowedError("nothing was begun: another console has control", hint=words)

    async def launch_choices(self, zone: str) -> LaunchChoices:
        """List the accelerator types and runtime versions that a zone offers."""
        return await self._operations.launch_choices(zone)

    async def plan_launch(self, request: LaunchRequest) -> Plan:
        """Return the plan of a launch."""
        return await self._operations.plan_launch(request)

    async def plan_resume(self, run: str) -> Plan:
        """Return the plan of a resume."""
        return await self._operations.plan_resume(run)

    async def plan_delete(self, targets: Sequence[str]) -> Plan:
        """Return the plan of a deletion."""
        return await self._operations.plan_delete(targets)

    async def reconcile(self) -> None:
        """End what was left behind and has come to its end since."""
        await self._operations.reconcile()

    def left_behind(self, project: str) -> Sequence[OperationProgress]:
        """Return what others began and did not end."""
        return self._operations.left_behind(project)

    def start(self, plan: Plan) -> OperationProgress:
        """Carry out a confirmed plan.

        Raises:
            NotAllowedError: Another console has control.
        """
        self.check_control()
        return self._operations.start(plan)

    def follow(self, operation_id: str) -> OperationProgress:
        """Take up an operation.

        Raises:
            NotAllowedError: Another console has control.
        """
        self.check_control()
        return self._operations.follow(operation_id)


class Acts:
    """What an operator can do to the cloud from the screen."""

    def __init__(
        self,
        host: HostApp,
        operations: OperationsPort,
        ports: OperatorPorts,
        defaults: LaunchDefaults,
    ) -> None:
        self._host = host
        self._operations = GuardedOperations(operations, ports.control, host.hints)
        self.ports = ports
        self._defaults = defaults

    def launch(self) -> None:
        """Open the launch form."""
        from tpudash.tui.screens.launch import LaunchScreen

        self._host.push_screen(LaunchScreen(self._host, self._operations, self._defaults))

    def resume(self, run: str) -> None:
        """Plan to continue a run on a new node."""
        self._show(f"Resume {run}", partial(self._operations.plan_resume, run))

    def delete(self, subjects: tuple[Subject, ...]) -> None:
        """Plan to delete runs (by name), nodes and requests (by full name)."""
        targets = [subject.name for subject in subjects]
        names = ", ".join(subject.short_name for subject in subjects[:3])
        more = f" and {len(subjects) - 3} more" if len(subjects) > 3 else ""
        self._show(f"Delete {names}{more}", partial(self._operations.plan_delete, targets))

    def show_budgets(self) -> None:
        """Show the budgets that cover the project."""
        from tpudash.tui.screens.budgets import BudgetsScreen

        port = self.ports.budgets
        if port is not None:
            self._host.push_screen(BudgetsScreen(self._host, port, self._operations))

    def clean_up(self, idle_for: timedelta) -> None:
        """Show what could be given back, and what has been idle for so long."""
        from tpudash.tui.screens.cleanup import CleanupScreen

        self._host.push_screen(CleanupScreen(self._host, self._operations, idle_for))

    def supervise(self, run: str) -> None:
        """Plan to switch the supervision of a run on or off."""
        port = self.ports.supervision
        if port is not None:
            on = not port.is_supervised(run)
            title = f"Supervise {run}" if on else f"Supervise {run} no longer"
            self._show(title, partial(port.plan_supervise, run, on=on))

    def _show(self, title: str, make_plan: Callable[[], Awaitable[Plan]]) -> None:
        from tpudash.tui.screens.plan import PlanDialog

        self._host.push_screen(PlanDialog(self._host, self._operations, title, make_plan))

    def follow(self) -> None:
        """Ask whether to take up what other sessions left behind."""
        from tpudash.tui.screens.confirm import ConfirmDialog

        info = self._host.context.store.snapshot.connection
        found = self._operations.left_behind(info.project) if info else ()
        loose = [one for one in found if one.state == "INTERRUPTED"]
        if not loose:
            self._say("No operation was left behind.")
            return
        lines = tuple(
            f"{one.kind} {one.run or ', '.join(one.nodes)}: {one.message}" for one in loose
        )
        note = "They go on from where they stand, as they were confirmed when they began."
        dialog = ConfirmDialog(self._host, "Follow to their end?", (*lines, note), yes="Follow")
        self._host.push_screen(dialog, lambda yes: self._follow(loose) if yes else None)

    def _follow(self, operations: Sequence[OperationProgress]) -> None:
        for one in operations:
            try:
                progress = self._operations.follow(one.operation_id)
            except TpudashError as error:
                self._complain(error)
            else:
                self._host.context.store.apply(OperationChanged(progress))

    def take_control(self) -> None:
        """Ask whether to take control away from whoever has it."""
        from tpudash.tui.screens.confirm import ConfirmDialog

        control = self._host.context.store.snapshot.control
        if control is None or control.is_ours:
            self._say("This console has control already.")
            return
        lines = (
            f"{holder_words(control)}.",
            "Their console goes on showing everything, and can change nothing from then on.",
        )
        key = self._host.hints.key_or("take-control", "y")
        dialog = ConfirmDialog(self._host, "Take control?", lines, yes="Take control", yes_key=key)
        self._host.push_screen(dialog, lambda yes: self._take_control() if yes else None)

    def _take_control(self) -> None:
        if self.ports.control is not None:
            control = self.ports.control.take()
            self._host.context.store.apply(ControlChanged(control))
            if control.problem:
                self._complain(NotAllowedError("control was not taken", detail=control.problem))

    def preempt(self, node: str) -> None:
        """Take a node of the emulator away, with a notice."""
        emulator = self.ports.emulator
        if emulator is None:
            return
        short = safe_text(node.rsplit("/", 1)[-1], 80)
        self._say(f"{short} is preempted with a notice of {PREEMPTION_NOTICE_S:.0f} seconds.")
        self._run(emulator.preempt(node, PREEMPTION_NOTICE_S), f"{short} was not preempted")

    def shell(self, node: Node) -> None:
        """Open a shell on a node's worker, asking which one where there are several."""
        from tpudash.tui.screens.worker import WorkerDialog

        if len(node.workers) < 2:
            self.open_shell(node, 0)
            return

        def chosen(worker: int | None) -> None:
            if worker is not None:
                self.open_shell(node, worker)

        self._host.push_screen(WorkerDialog(self._host, node), chosen)

    def open_shell(self, node: Node, worker: int) -> None:
        """Open a shell on one worker."""
        port = self.ports.shell
        if port is not None:
            name = safe_text(node.node_id, 80)
            self._run(self._shell(port, node, worker), f"no shell on worker {worker} of {name}")

    async def _shell(self, port: ShellPort, node: Node, worker: int) -> None:
        from tpudash.tui.takeover import run_in_terminal

        command = await port.shell(node, worker)
        name = f"worker {worker} of {safe_text(node.node_id, 80)}"
        greeting = f"tpudash: {name}. Leave this shell (exit, ctrl-d) to come back."
        status = await run_in_terminal(self._host, command, greeting)
        if status:
            self._say(f"The shell on {name} ended with status {status}.", severity="warning")

    def _run(self, work: Awaitable[Any], what_failed: str) -> None:
        async def guarded() -> None:
            try:
                await work
            except TpudashError as error:
                self._complain(error)
            except Exception as error:
                logger.exception("%s", what_failed)
                self._say(f"{what_failed}: {error}", severity="error")

        self._host.run_worker(guarded(), name=what_failed, exit_on_error=False)

    def _complain(self, error: TpudashError) -> None:
        words = " ".join(part for part in (f"{error}.", error.hint) if part)
        self._say(words, severity="error")

    def _say(self, words: str, severity: Any = "information") -> None:
        timeout = 10.0 if severity == "error" else None
        self._host.notify(safe_text(words, 400), severity=severity, markup=False, timeout=timeout)
