"""Whether the input is read ahead, in parallel, and kept in memory where it fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.checks.input_keeps_up import MUCH
from tpudash.domain.run import RunState
from tpudash.store.snapshot import LOGS
from tpudash.store.training_curve import training_curve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "input-pipeline",
    "Input is read ahead",
    Scope.RUN,
    why="Without prefetch, parallel map and cache the host prepares a batch only when it is due.",
    rank=47,
    source=LOGS,
    group=Group.SLOW,
)
WANTED: Final = {
    "prefetch": "prefetch(AUTOTUNE)",
    "parallel_map": "map(num_parallel_calls=AUTOTUNE)",
    "cached": "cache() or data in memory",
}
"""What the trainer says of its input, and how it is had in tf.data."""


def check(evidence: Evidence) -> Finding:
    """Warn of what is missing where steps wait for their input, or nobody knows whether they do."""
    run = evidence.run
    if run is None or run.state not in {RunState.TRAINING, RunState.STALLED}:
        return ABOUT.not_applicable(evidence, "nothing trains")
    told = _told(evidence)
    if told is None:
        return ABOUT.unknown(
            evidence,
            "its trainer does not say how it reads its input",
            advice="Look in its code for prefetch, parallel map and cache.",
        )
    missing = [name for name in WANTED if told.get(name) is False]
    waiting = training_curve(evidence.logs, run.name).mean("input_wait_fraction")
    text = f"reads {told.get('source') or 'its data'}"
    if not missing:
        return ABOUT.passed(evidence, f"{text} with prefetch, parallel map and cache")
    text = f"{text} without {', '.join(name.replace('_', ' ') for name in missing)}"
    if waiting is not None and waiting < MUCH:
        return ABOUT.passed(evidence, f"{text}; only {waiting:.0%} of the time is spent waiting")
    # Large data can't be cached, which alone is no fault as long as nobody sees it wait.
    if waiting is None and missing == ["cached"]:
        return ABOUT.passed(evidence, text)
    share = "" if waiting is None else f"; {waiting:.0%} of the time is spent waiting"
    return ABOUT.warned(
        evidence,
        f"{text}{share}",
        advice=f"Add {', '.join(WANTED[name] for name in missing)}.",
        command=f"tpudash metrics {run.name}",
    )


def _told(evidence: Evidence) -> Mapping[str, Any] | None:
    """Return what a stage of the newest attempt says of its input, or None."""
    number = evidence.attempt.attempt if evidence.attempt else None
    for entry in reversed(evidence.logs):
        payload = entry.payload or {}
        is_own = number is None or entry.attempt in {None, number}
        if is_own and entry.event in {"stage", "start"} and isinstance(payload.get("input"), dict):
            found: Mapping[str, Any] = payload["input"]
            return found
    return None
