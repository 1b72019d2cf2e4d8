"""What launch, resume and delete share: plan, confirm, apply, follow; and what each exit means."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from tpudash.commands.output import Answer, Item, print_json
from tpudash.commands.state import connection_options, json_option
from tpudash.domain.failure import ErrorClass
from tpudash.domain.operation import OperationState
from tpudash.errors import ExitCode, TpudashError, UsageError
from tpudash.wording.format import dollars
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tpudash.domain.operation import OperationProgress, Plan

CommandT = TypeVar("CommandT", bound="Callable[..., Any]")

_EXIT_CODES: Final = {
    ErrorClass.STOCKOUT: ExitCode.NO_CAPACITY,
    ErrorClass.QUOTA: ExitCode.NO_CAPACITY,
    ErrorClass.RATE_LIMIT: ExitCode.NO_CAPACITY,
    ErrorClass.RESERVATION: ExitCode.NO_CAPACITY,
    ErrorClass.PERMISSION: ExitCode.NOT_ALLOWED,
    ErrorClass.API_OFF: ExitCode.NOT_ALLOWED,
    ErrorClass.BILLING: ExitCode.NOT_ALLOWED,
    ErrorClass.AUTH_EXPIRED: ExitCode.NOT_ALLOWED,
    ErrorClass.GONE: ExitCode.NOT_FOUND,
    ErrorClass.UNKNOWN_OUTCOME: ExitCode.OUTCOME_UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class ActFlags:
    """How an act is to be carried out."""

    dry_run: bool
    yes: bool
    wait: bool
    as_json: bool


class ActFailedError(TpudashError):
    """An operation that was begun did not succeed; its class decides the exit code."""

    def __init__(self, progress: OperationProgress) -> None:
        failure = progress.failure
        super().__init__(
            progress.message or f"{progress.kind} failed",
            detail=failure.evidence if failure else "",
            hint=failure.advice if failure else "",
        )
        self.exit_code = exit_code_of(progress)  # type: ignore[misc]


def exit_code_of(progress: OperationProgress) -> ExitCode:
    """Return the exit code that an operation's end means."""
    failure = progress.failure
    if progress.state == OperationState.UNKNOWN:
        # Whoever signs in again and repeats the command finds out; asking alone would not do.
        is_signed_out = failure is not None and failure.error_class is ErrorClass.AUTH_EXPIRED
        return ExitCode.NOT_ALLOWED if is_signed_out else ExitCode.OUTCOME_UNKNOWN
    if progress.state == OperationState.INTERRUPTED:
        return ExitCode.INTERRUPTED
    if progress.state != OperationState.FAILED:
        return ExitCode.DONE
    return _EXIT_CODES.get(failure.error_class, ExitCode.FAILED) if failure else ExitCode.FAILED


def acting_options(command: CommandT) -> CommandT:
    """Add the options of every command that changes the cloud."""
    options = (
        click.option("--dry-run", is_flag=True, help="Print the plan and change nothing."),
        click.option("-y", "--yes", is_flag=True, help="Do not ask."),
        click.option("--wait", is_flag=True, help="Return when it has come to its end."),
    )
    for option in reversed(options):
        command = option(command)
    return json_option(connection_options(command))


def check_can_confirm(flags: ActFlags) -> None:
    """See that somebody can be asked, before anything else is done.

    Raises:
        UsageError: There is nobody to ask, and `--yes` was not given.
    """
    if flags.yes or flags.dry_run or (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    raise UsageError(
        "this changes the cloud, and there is no terminal to ask on",
        hint="give --yes to go ahead, or --dry-run to see what would be done",
    )


def plan_lines(plan: Plan) -> list[str]:
    """Return a plan as lines: what it means, what it costs, and every call."""
    lines = [safe_text(plan.title)]
    lines += [f"  - {safe_text(effect)}" for effect in plan.effects]
    lines += [f"  ! {safe_text(warning)}" for warning in plan.warnings]
    if plan.cost_per_hour_usd is not None:
        lines.append(f"  $ {dollars(plan.cost_per_hour_usd)} per hour afterwards (estimate)")
    lines.append("calls:")
    for number, step in enumerate(plan.steps, start=1):
        note = f"  ({safe_text(step.note)})" if step.note else ""
        lines.append(f"  {number}. {safe_text(step.call)} {safe_text(step.target)}{note}")
    return lines


def confirm(plan: Plan, flags: ActFlags) -> None:
    """Ask, unless `--yes` was given; what destroys wants its name typed.

    Raises:
        UsageError: The answer was not yes.
    """
    if flags.yes:
        return
    click.echo("\n".join(plan_lines(plan)), err=True)
    with _interruptible():
        agreed = _is_agreed(plan)
    if not agreed:
        raise UsageError("not confirmed; nothing was done")


def _is_agreed(plan: Plan) -> bool:
    if plan.confirm_word is None:
        return click.confirm("go ahead?", default=False, err=True)
    question = f"type {plan.confirm_word} to go ahead"
    typed: str = click.prompt(question, default="", show_default=False, err=True)
    return typed.strip() == plan.confirm_word


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end a question at once: the event loop's own handler waits for the loop."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def print_plan(plan: Plan, answer: Answer, flags: ActFlags) -> None:
    """Print what would be done."""
    if flags.as_json:
        print_json(answer)
        return
    click.echo("\n".join(plan_lines(plan)))
    click.echo("dry run: nothing was done", err=True)


def say(text: str) -> None:
    """Say on stderr what an operation is doing; stdout is for the answer."""
    click.echo(safe_text(text), err=True)


def result_line(item: Item) -> str:
    """Return the outcome as one line, for people."""
    operation = item["operation"]
    state = f", run is {item['state']}" if item.get("state") else ""
    return f"{operation['kind']} {item['name']}: {operation['message']}{state}"


class SplitCommand(click.Command):
    """A command whose words after `--` are for somebody else, and are kept apart."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what stands before `--`, and keep what stands after it in `ctx.meta`."""
        if "--" in args:
            at = args.index("--")
            ctx.meta["tpudash.after_dashes"] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)


def words_after_dashes(ctx: click.Context) -> tuple[str, ...]:
    """Return what stood after `--`."""
    words: tuple[str, ...] = ctx.meta.get("tpudash.after_dashes", ())
    return words
