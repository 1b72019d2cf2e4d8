"""The line of what follows from the figures: idle, input-bound, stragglers, pace, share of peak."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpudash.cost.estimate import hourly_rate
from tpudash.store.derived import INPUT_BOUND, idle, last_busy, pace, stragglers
from tpudash.tui.widgets.span_view import Span, Spans
from tpudash.wording.format import age, dollars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tpudash.domain.node import Node
    from tpudash.store.utilization import NodeUtilization
    from tpudash.tui.pane import ViewContext
    from tpudash.tui.widgets.utilization_pane_curves import CurveBook

MUCH_BELOW: float = 0.8
NEWEST: int = 20


def derived_line(
    context: ViewContext, node: Node, found: NodeUtilization, curves: CurveBook
) -> Spans:
    """Return one row about a node and the run on it; empty where nothing follows."""
    parts = [*_idle(context, node, found, curves), *_slow_workers(found)]
    if node.run:
        parts += [*_input(curves, node.run), *_pace(context, node, curves)]
    spans: list[Span] = []
    for part in parts:
        spans += [Span("  ", "")] if spans else []
        spans.append(part)
    return tuple(spans)


def _idle(
    context: ViewContext, node: Node, utilization: NodeUtilization, curves: CurveBook
) -> list[Span]:
    newest = curves.newest(node.run) if node.run else None
    moments = (newest.time if newest else None, last_busy(utilization))
    worked = [moment for moment in moments if moment is not None]
    now = context.now()
    rate = hourly_rate(node.accelerator_type, node.zone, node.scheduling, context.prices)
    times = context.snapshot.times.get(node.name)
    found = idle(node, times, max(worked, default=None), rate, now)
    if found is None:
        return []
    wasted = "" if found.wasted_usd is None else f", {dollars(found.wasted_usd)} wasted"
    return [Span(f"idle {age(found.since, now, step=60)}{wasted}", "chart-bad", bold=True)]


def _slow_workers(found: NodeUtilization) -> list[Span]:
    slow = sorted(stragglers(found).items(), key=lambda one: one[1])
    if not slow:
        return []
    words = ", ".join(f"{worker} at {share:.0%}" for worker, share in slow[:3])
    more = f" and {len(slow) - 3} more" if len(slow) > 3 else ""
    return [Span(f"slow workers: {words} of the others{more}", "chart-warn")]


def _input(curves: CurveBook, run: str) -> list[Span]:
    waits = _values(curves.samples(run, "input_wait_fraction"))[-NEWEST:]
    if not waits:
        return []
    share = sum(waits) / len(waits)
    is_bound = share >= INPUT_BOUND
    words = f"input-bound: waits {share:.0%}" if is_bound else f"input wait {share:.0%}"
    return [Span(words, "chart-warn" if is_bound else "muted")]


def _pace(context: ViewContext, node: Node, curves: CurveBook) -> list[Span]:
    run = node.run or ""
    rates = _values(curves.samples(run, "examples_per_second"))
    found = pace(rates, curves.flops(run), node.accelerator_type)
    if found is None:
        return []
    share = found.share_of_best
    spans = [Span(f"pace {share:.0%} of its best", "chart-warn" if share < MUCH_BELOW else "muted")]
    if found.model_flops_utilization is not None:
        connection = context.snapshot.connection
        where = " (emulated)" if connection is not None and connection.is_emulator else ""
        spans.append(
            Span(
                f"MFU {found.model_flops_utilization:.2%} of {node.accelerator_type}{where}",
                "muted",
            )
        )
    return spans


def _values(samples: Sequence[tuple[float, float]]) -> list[float]:
    return [value for _, value in samples]
