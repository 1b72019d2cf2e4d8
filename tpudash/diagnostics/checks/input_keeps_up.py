"""Whether the input pipeline keeps the device busy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.domain.run import RunState
from tpudash.store.snapshot import LOGS
from tpudash.store.training_curve import training_curve

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "input-keeps-up",
    "Input keeps up",
    Scope.RUN,
    why="While a step waits for its data, chips that are paid for do nothing.",
    rank=45,
    source=LOGS,
    group=Group.SLOW,
)
MUCH: Final = 0.2
MOST: Final = 0.5


def check(evidence: Evidence) -> Finding:
    """Warn when much of the time goes into waiting for input, fail when most of it does."""
    run = evidence.run
    if run is None or run.state is not RunState.TRAINING:
        return ABOUT.not_applicable(evidence, "nothing trains")
    curve = training_curve(evidence.logs, run.name)
    waiting = curve.mean("input_wait_fraction")
    if waiting is None:
        return ABOUT.unknown(evidence, "no step event tells how long it waited for input")
    text = f"{waiting:.0%} of the time is spent waiting for input"
    if waiting < MUCH:
        return ABOUT.passed(evidence, text)
    judged = ABOUT.failed if waiting >= MOST else ABOUT.warned
    return judged(
        evidence,
        text,
        advice="Add prefetch(AUTOTUNE), map(num_parallel_calls=AUTOTUNE) and cache() where it "
        "fits in memory, parse whole batches, keep large data in TFRecord files, and keep the "
        "bucket in the node's region.",
    )
