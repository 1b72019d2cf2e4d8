"""Acts: from a key to a plan, a dialog and an operation. Only made where there is a port to ask."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from tpudash.errors import TpudashError
from tpudash.tui.pane import SubjectKind
from tpudash.tui.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tpudash.domain.operation import EmulatorPort, OperationsPort, Plan
    from tpudash.tui.pane import HostApp, Subject
    from tpudash.tui.settings import LaunchDefaults

logger = logging.getLogger(__name__)

PREEMPTION_NOTICE_S: Final = 10.0


class Acts:
    """What an operator can do to the cloud from the screen.

    Args:
        emulator: Control of a local emulator, or None.
    """

    def __init__(
        self,
        host: HostApp,
        operations: OperationsPort,
        emulator: EmulatorPort | None,
        defaults: LaunchDefaults,
    ) -> None:
        self._host = host
        self._operations = operations
        self._emulator = emulator
        self._defaults = defaults

    def launch(self) -> None:
        """Open the launch form."""
        from tpudash.tui.screens.launch import LaunchScreen

        self._host.push_screen(LaunchScreen(self._host, self._operations, self._defaults))

    def resume(self, run: str) -> None:
        """Plan to continue a run on a new node."""
        self._show(f"Resume {run}", partial(self._operations.plan_resume, run))

    def delete(self, subjects: tuple[Subject, ...]) -> None:
        """Plan to delete runs (by name) and nodes (by full name)."""
        targets = [_target(subject) for subject in subjects]
        names = ", ".join(subject.short_name for subject in subjects[:3])
        more = f" and {len(subjects) - 3} more" if len(subjects) > 3 else ""
        self._show(f"Delete {names}{more}", partial(self._operations.plan_delete, targets))

    def _show(self, title: str, make_plan: Callable[[], Awaitable[Plan]]) -> None:
        from tpudash.tui.screens.plan import PlanDialog

        self._host.push_screen(PlanDialog(self._host, self._operations, title, make_plan))

    def preempt(self, node: str) -> None:
        """Take a node of the emulator away, with a notice."""
        if self._emulator is not None:
            self._host.run_worker(
                self._preempt(self._emulator, node), name="preempt", exit_on_error=False
            )

    async def _preempt(self, emulator: EmulatorPort, node: str) -> None:
        short = safe_text(node.rsplit("/", 1)[-1], 80)
        notice = f"{PREEMPTION_NOTICE_S:.0f} seconds"
        self._host.notify(f"{short} is preempted with a notice of {notice}.", markup=False)
        try:
            await emulator.preempt(node, PREEMPTION_NOTICE_S)
        except TpudashError as error:
            words = " ".join(part for part in (f"{error}.", error.hint) if part)
            self._host.notify(safe_text(words, 400), severity="error", markup=False, timeout=10)
        except Exception as error:
            logger.exception("preempting %s failed", short)
            words = f"{short} was not preempted: {error}"
            self._host.notify(safe_text(words, 400), severity="error", markup=False, timeout=10)


def _target(subject: Subject) -> str:
    """Return what `plan_delete` takes: a run's name or a node's full name."""
    if subject.kind is SubjectKind.REQUEST and subject.run is not None:
        return subject.run
    return subject.name
