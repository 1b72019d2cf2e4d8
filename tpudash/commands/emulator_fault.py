"""`tpudash emulator fault`: put faults in force, list and clear them."""

from __future__ import annotations

import json
from typing import Any

import click

from tpudash.commands.durations import parse_duration
from tpudash.commands.emulator_steer import DURATION, steer, tell
from tpudash.commands.state import CliState, connection_options, json_option, pass_state
from tpudash.errors import UsageError


@click.command("fault")
@click.argument("kind", required=False)
@click.option("--method", help="Pattern over service/Method, Method, or an operation's verb.")
@click.option("--zone", help="Zone that is affected, or a pattern.")
@click.option("--accelerator-type", help="For stock-out and preemption-storm; also a generation.")
@click.option("--latency", "latency_s", type=DURATION, help="For latency.")
@click.option("--code", help="Status of the kinds that refuse: a name, or an HTTP status.")
@click.option("--message", help="Its text; without, what Google says.")
@click.option("--details", help="Its details: a JSON list of messages with @type.")
@click.option("--page-size", type=click.IntRange(0), help="For partial-pages; 0: an empty first.")
@click.option("--lag", "lag_s", type=DURATION, help="For stale-reads.")
@click.option("--skew", help="For clock-skew, such as 90s or -90s.")
@click.option("--rate", "rate_per_hour", type=float, help="For preemption-storm: an hour and node.")
@click.option("--notice", "notice_s", type=DURATION, help="For preemption-storm.")
@click.option("--seed", type=int, help="For preemption-storm.")
@click.option("--count", type=click.IntRange(min=1), help="How many times; without, no end.")
@click.option("--probability", type=click.FloatRange(0, 1), help="Share of calls.")
@click.option("--after", "after_s", type=DURATION, help="In force only from then on.")
@click.option("--for", "for_s", type=DURATION, help="In force for so long.")
@click.option("--every", "every_s", type=DURATION, help="In force again and again.")
@click.option("--clear", "clear_id", type=int, help="Take fault number ID out of force.")
@click.option("--clear-all", is_flag=True, help="Take all faults out of force.")
@json_option
@connection_options
@pass_state
def fault(
    state: CliState,
    /,
    *,
    kind: str | None,
    clear_id: int | None,
    clear_all: bool,
    as_json: bool,
    details: str | None,
    skew: str | None,
    **fields: Any,
) -> None:
    """Put a fault in force; without KIND, list those in force.

    KIND is latency, error, drop, lost-request, black-hole, partial-pages, unreachable-zone,
    stale-reads, clock-skew, operation-never-ends, operation-fails, stock-out, preemption-storm, or
    an HTTP status such as 429 in place of `error --code 429`.
    """
    if clear_all or clear_id is not None:
        cleared = steer(state, lambda control: control.clear_faults(clear_id))
        tell({"cleared": cleared}, f"{cleared} cleared", as_json=as_json)
        return
    if kind is None:
        faults = steer(state, lambda control: control.list_faults())
        lines = [_fault_line(rule) for rule in faults] or ["no faults in force"]
        tell({"faults": faults}, "\n".join(lines), as_json=as_json)
        return
    fields |= {"details": _details(details), "skew_s": _skew(skew)}
    wanted = {key: value for key, value in fields.items() if value is not None}
    rule = steer(state, lambda control: control.add_fault(kind, **wanted))
    tell(rule, _fault_line(rule), as_json=as_json)


def _skew(text: str | None) -> float | None:
    if text is None:
        return None
    seconds = parse_duration(text.removeprefix("-")).total_seconds()
    return -seconds if text.startswith("-") else seconds


def _details(text: str | None) -> list[Any] | None:
    if text is None:
        return None
    try:
        details = json.loads(text)
    except ValueError as error:
        raise UsageError("--details is not JSON", detail=str(error)) from error
    if not isinstance(details, list):
        raise UsageError("--details must be a JSON list")
    return details


def _fault_line(rule: dict[str, Any]) -> str:
    left = "" if rule.get("remaining") is None else f", {rule['remaining']:.0f} more times"
    return f"{rule['id']:.0f}: {rule['kind']} on {rule['method']} in zone {rule['zone']}{left}"
