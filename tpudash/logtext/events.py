"""The trainer's events as compact text. Payloads come from outside and may hold anything."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

EVENT_KINDS: Final[Mapping[str, str]] = {
    "step": "step",
    "eval": "step",
    "checkpoint": "checkpoint",
    "finish": "checkpoint",
    "start": "restart",
    "restore": "restart",
    "preempt": "restart",
}
"""The theme's names for the kinds of event that are not known by their severity."""


EVENT_WORDS: Final = (
    b"step steps loss acc ex/s ms input wait checkpoint at in kib mib gib tib evaluated on "
    b"examples restored starting from scratch lost quarantined preempted finished exported to "
    b"eval_loss eval_accuracy accuracy characters lines host cpu memory disk free duty chips"
)
"""The words, in small letters, that descriptions of events hold beside what is in the events."""
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def describe_event(payload: Mapping[str, Any]) -> str:
    """Return an event as one line, or "" if it is none that is known, or lacks its figures."""
    describe = _DESCRIBERS.get(str(payload.get("event")))
    return describe(payload) if describe else ""


def figure(payload: Mapping[str, Any], key: str) -> float | None:
    """Return a finite number of a payload, or None whatever else is there."""
    value = payload.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _size(value: float) -> str:
    power = 0
    while abs(value) >= 1024 and power < len(_UNITS) - 1:
        value, power = value / 1024, power + 1
    return f"{value:.1f} {_UNITS[power]}" if power else f"{value:.0f} B"


def _word(payload: Mapping[str, Any], key: str) -> str:
    value = payload.get(key)
    return value if isinstance(value, str) else ""


def _join(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _whole(payload: Mapping[str, Any], key: str) -> str:
    value = figure(payload, key)
    return "" if value is None else f"{value:.0f}"


def _loss(payload: Mapping[str, Any]) -> str:
    value = figure(payload, "loss")
    return "" if value is None else f"loss {fixed(value)}"


def _accuracy(payload: Mapping[str, Any]) -> str:
    value = figure(payload, "accuracy")
    return "" if value is None else f"acc {value:.3f}"


def fixed(value: float) -> str:
    """Return a number in a width that stays the same from line to line: `0.4120`, `1.2e-07`."""
    if value and not 0.001 <= abs(value) < 1_000_000:
        return f"{value:.1e}"
    return f"{value:.4f}" if abs(value) < 100 else f"{value:,.0f}"


def _step(payload: Mapping[str, Any]) -> str:
    step, target = _whole(payload, "step"), _whole(payload, "target_step")
    if not step:
        return ""
    rate, seconds = figure(payload, "examples_per_second"), figure(payload, "step_time_s")
    wait = figure(payload, "input_wait_fraction")
    return _join(
        f"step {step:>{len(target)}}/{target}" if target else f"step {step}",
        _loss(payload),
        _accuracy(payload),
        "" if rate is None else f"{rate:,.0f} ex/s",
        "" if seconds is None else f"{seconds * 1000:,.0f} ms",
        "" if wait is None or wait < 0.1 else f"input wait {wait:.0%}",
    )


def _checkpoint(payload: Mapping[str, Any]) -> str:
    step = _whole(payload, "step")
    if not step:
        return ""
    seconds, size = figure(payload, "seconds"), figure(payload, "bytes")
    return _join(
        f"checkpoint at step {step}",
        "" if seconds is None else f"in {seconds:.1f} s",
        "" if size is None else f"({_size(size)})",
        _word(payload, "path"),
    )


def _evaluation(payload: Mapping[str, Any]) -> str:
    step, examples = _whole(payload, "step"), figure(payload, "examples")
    if not step:
        return ""
    return _join(
        f"evaluated at step {step}",
        _loss(payload),
        _accuracy(payload),
        "" if examples is None else f"on {examples:,.0f} examples",
    )


def _restore(payload: Mapping[str, Any]) -> str:
    step = figure(payload, "step")
    if step is None:
        return ""
    lost = figure(payload, "steps_lost")
    bad = payload.get("quarantined")
    return _join(
        f"restored step {step:.0f}" if step else "starting from scratch",
        f"{lost:.0f} steps lost" if lost else "",
        f"quarantined {', '.join(map(str, bad[:5]))}"
        if isinstance(bad, (list, tuple)) and bad
        else "",
        _word(payload, "path"),
    )


def _host(payload: Mapping[str, Any]) -> str:
    cpu, used = figure(payload, "cpu_fraction"), figure(payload, "memory_used_bytes")
    total, free = figure(payload, "memory_total_bytes"), figure(payload, "disk_free_bytes")
    found = payload.get("chips")
    chips = [chip for chip in found if isinstance(chip, dict)] if isinstance(found, list) else []
    duties = [duty for chip in chips if (duty := figure(chip, "duty_cycle_percent")) is not None]
    of_total = "" if total is None else f" of {_size(total)}"
    told = _join(
        "" if cpu is None else f"cpu {cpu:.0%}",
        "" if used is None else f"memory {_size(used)}{of_total}",
        "" if free is None else f"disk {_size(free)} free",
        f"duty {sum(duties) / len(duties):.0f}% on {len(duties)} chips" if duties else "",
    )
    return told and f"host {told}"


def _preempt(payload: Mapping[str, Any]) -> str:
    step = _whole(payload, "step")
    return _join(f"preempted at step {step}" if step else "preempted", _word(payload, "reason"))


def _error(payload: Mapping[str, Any]) -> str:
    name, detail, hint = (_word(payload, key) for key in ("class", "detail", "hint"))
    if not detail:
        return ""
    return _join(f"{name}: {detail}" if name else detail, f"→ {hint}" if hint else "")


def _finish(payload: Mapping[str, Any]) -> str:
    step = _whole(payload, "step")
    if not step:
        return ""
    metrics = payload.get("metrics")
    known = metrics if isinstance(metrics, dict) else {}
    figures = [
        f"{name} {fixed(value)}"
        for name in ("eval_loss", "eval_accuracy", "loss", "accuracy")
        if (value := figure(known, name)) is not None
    ]
    export = _word(payload, "export")
    return _join(f"finished at step {step}", *figures, f"exported to {export}" if export else "")


_DESCRIBERS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "step": _step,
    "checkpoint": _checkpoint,
    "eval": _evaluation,
    "restore": _restore,
    "preempt": _preempt,
    "host": _host,
    "error": _error,
    "finish": _finish,
}
