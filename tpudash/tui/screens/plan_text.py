"""A plan, an error and an operation's progress in words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tpudash.domain.operation import OperationProgress, OperationState, Plan
from tpudash.tui.looks import look_of
from tpudash.tui.screens.overlay import DIALOG, Paragraphs
from tpudash.wording import format as fmt

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from rich.text import Text

    from tpudash.errors import TpudashError
    from tpudash.tui.pane import HostApp

LONGEST_VALUE = 300


def plan_text(plan: Plan, host: HostApp) -> Text:
    """Return warnings, effects, cost and the exact calls of a plan."""
    page = Paragraphs(host, DIALOG)
    for warning in plan.warnings:
        page.styled(f"{host.mark_of('STALLED')} {warning}", "chart-warn", bold=True, indent=1)
    page.heading("What it does")
    for effect in plan.effects:
        page.line(f"- {effect}", indent=1)
    if plan.nodes:
        page.line(f"- Nodes: {', '.join(name.rsplit('/', 1)[-1] for name in plan.nodes)}", indent=1)
    page.line(f"- {_cost(plan)}", indent=1)
    page.heading(f"The calls, exactly and in this order ({len(plan.steps)})")
    for at, step in enumerate(plan.steps, 1):
        page.line(f"{at}. {step.call}", "bold", indent=1)
        page.line(step.target, indent=4)
        if step.note:
            page.styled(step.note, "muted", indent=4)
        if step.request:
            page.lines(request_text(step.request), host.style_of("muted"), indent=4)
    return page.text


def _cost(plan: Plan) -> str:
    if plan.cost_per_hour_usd is None:
        return "Cost afterwards: the price is not known."
    return f"Cost afterwards: {fmt.dollars(plan.cost_per_hour_usd)} an hour (estimate)."


def request_text(request: Mapping[str, Any]) -> str:
    """Return a request as indented JSON, with long values cut."""
    return json.dumps(_shortened(request), indent=2, ensure_ascii=False, default=str)


def _shortened(value: Any) -> Any:
    if isinstance(value, str) and len(value) > LONGEST_VALUE:
        return f"{value[:LONGEST_VALUE]}… ({len(value)} characters)"
    if isinstance(value, dict):
        return {str(key): _shortened(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_shortened(one) for one in value]
    return value


def error_text(error: TpudashError, host: HostApp) -> Text:
    """Return title, detail and hint of an error."""
    page = Paragraphs(host, DIALOG)
    page.styled(f"{host.mark_of('FAILED')} {error.title}", "chart-bad", bold=True, indent=1)
    if error.detail:
        page.lines(error.detail, indent=3)
    if error.hint:
        page.heading("What you can do")
        page.lines(error.hint, indent=1)
    return page.text


def progress_text(progress: OperationProgress, host: HostApp, now: datetime) -> Text:
    """Return how far an operation got, and why it failed if it did."""
    page = Paragraphs(host, DIALOG)
    _add_progress(page, progress, host, now)
    return page.text


def operations_text(
    operations: Mapping[str, OperationProgress], host: HostApp, now: datetime
) -> Text:
    """Return all operations, the newest first."""
    page = Paragraphs(host)
    if not operations:
        page.line("Nothing was launched, resumed or deleted from here so far.", indent=1)
    for one in sorted(operations.values(), key=lambda one: one.started, reverse=True):
        page.heading(f"{one.kind} {one.run or ', '.join(one.nodes)}")
        _add_progress(page, one, host, now)
    return page.text


def _add_progress(
    page: Paragraphs, progress: OperationProgress, host: HostApp, now: datetime
) -> None:
    look = look_of(progress.state)
    steps = (
        f"  step {progress.steps_done} of {progress.steps_total}" if progress.steps_total else ""
    )
    age = fmt.age(progress.started, now if _is_running(progress) else progress.updated)
    page.styled(
        f"{host.mark_of(look)} {progress.state}{steps}  {age}", look.variable, bold=True, indent=1
    )
    page.lines(progress.message, indent=3)
    if progress.nodes:
        page.field("nodes", ", ".join(name.rsplit("/", 1)[-1] for name in progress.nodes))
    page.field("operation", progress.operation_id)
    failure = progress.failure
    if failure is None:
        return
    page.field("class", failure.error_class, "bold")
    page.field("evidence", failure.evidence)
    if failure.eid:
        page.field("error id", failure.eid)
    page.field("what to do", failure.advice)


def _is_running(progress: OperationProgress) -> bool:
    return progress.state is OperationState.RUNNING
