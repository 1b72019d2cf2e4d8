"""`tpudash supervise`: a run is resumed by itself until it is finished or a limit is met."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from tpudash.commands.acting import (
    ActFailedError,
    ActFlags,
    acting_options,
    check_can_confirm,
    confirm,
    exit_code_of,
    print_plan,
    say,
)
from tpudash.commands.items import failure_item, plan_item
from tpudash.commands.numbers import AboveZero
from tpudash.commands.output import Answer, json_text, timestamp
from tpudash.commands.resume import changes_of
from tpudash.commands.running import run_async
from tpudash.commands.state import CliState, pass_state
from tpudash.errors import ExitCode
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from tpudash.commands.session import Session
    from tpudash.domain.operation import OperationProgress, SupervisionWish


@click.command()
@click.argument("run")
@click.option(
    "--max-attempts",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    metavar="N",
    help="How often it may try to make a node, those without capacity counted.",
)
@click.option(
    "--max-cost",
    type=AboveZero(),
    metavar="USD",
    help="The most that the whole run may cost; its nodes are deleted then.",
)
@click.option(
    "--zone", "zones", multiple=True, metavar="ZONE", help="Candidate zones from now on, in order."
)
@click.option("--queued/--no-queued", default=None, help="Ask by queued resources, or not.")
@click.option("--valid-until-duration", metavar="TIME", help="How long each may queue, as 6h.")
@click.option(
    "--resume-stalled", is_flag=True, help="Delete and replace a live node that does nothing."
)
@click.option("--off", is_flag=True, help="End the supervision of RUN, wherever it goes on.")
@acting_options
@pass_state
def supervise(
    state: CliState, /, run: str, zones: tuple[str, ...], off: bool, **options: Any
) -> int:
    """Resume RUN by itself whenever its node is preempted or vanishes, until it is finished.

    It needs no terminal and says in one line each what changes; with --json as one object a line.
    Stock-outs go to the next zone and wait longer each time; quotas and missing permissions end
    it. Begun again after a crash, it goes on where it was, its tries counted.
    """
    from tpudash.commands.operating import operate
    from tpudash.commands.target import check_name
    from tpudash.config.paths import ensure_writable
    from tpudash.domain.operation import SupervisionWish

    flags = ActFlags(*(options[name] for name in ("dry_run", "yes", "wait", "as_json")))
    check_can_confirm(flags)
    check_name(run)
    if off:
        return operate(state, flags, lambda room: room.plan_stand_down(run), [run])
    wish = SupervisionWish(
        max_attempts=options["max_attempts"],
        max_cost_usd=options["max_cost"],
        resume_stalled=options["resume_stalled"],
        changes=changes_of(zones, options),
    )
    ensure_writable(state.paths.state_dir, "state directory")
    return run_async(_supervise(state, flags, run, wish))


async def _supervise(state: CliState, flags: ActFlags, run: str, wish: SupervisionWish) -> ExitCode:
    from tpudash.commands.operating import operations_of_command
    from tpudash.commands.session import open_session

    async with open_session(state, read_only=False) as session:
        lines = _Lines(session, run, wish, as_json=flags.as_json)
        operations = operations_of_command(session, lines.hear)
        try:
            plan = await operations.plan_supervise(run, wish)
            if flags.dry_run:
                item = {"name": run, "operation": None, "plan": plan_item(plan)}
                answer = Answer(session.clock.now(), session.source, [item])
                print_plan(plan, answer, flags)
                return ExitCode.DONE
            confirm(plan, flags)
            begun = operations.start(plan)
            try:
                progress = await operations.wait(begun.operation_id)
            except asyncio.CancelledError:
                say(f"{run} goes on and is not supervised now; to go on: tpudash supervise {run}")
                raise
        finally:
            await operations.aclose()
    code = exit_code_of(progress)
    if code is not ExitCode.DONE:
        raise ActFailedError(progress)
    return code


class _Lines:
    """Says what changes, a line each, on stdout."""

    def __init__(self, session: Session, run: str, wish: SupervisionWish, *, as_json: bool) -> None:
        self._session = session
        self._run = run
        self._wish = wish
        self._as_json = as_json
        self._told: tuple[object, ...] = ()
        self._tries = 0

    def hear(self, progress: OperationProgress) -> None:
        """Say how far an operation got, where that is news."""
        news = (progress.operation_id, progress.state, progress.phase, progress.message)
        if not progress.message or news == self._told:
            return
        self._told = news
        if progress.kind == "supervise":
            self._tries = progress.steps_done
        if self._as_json:
            click.echo(json_text(self._item(progress)))
        else:
            when = f"{progress.updated:%H:%M:%S}"
            what = progress.phase or str(progress.kind)
            click.echo(safe_text(f"{when} {self._run} {what}: {progress.message}"))

    def _item(self, progress: OperationProgress) -> dict[str, Any]:
        return {
            "ts": timestamp(progress.updated),
            "run": self._run,
            "kind": str(progress.kind),
            "phase": progress.phase or None,
            "state": str(progress.state),
            "message": progress.message,
            "operation_id": progress.operation_id,
            "tries": self._tries,
            "tries_left": max(0, self._wish.max_attempts - self._tries),
            "max_cost_usd": self._wish.max_cost_usd,
            "failure": failure_item(progress.failure),
        }
