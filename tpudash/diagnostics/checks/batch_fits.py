"""Whether the global batch size suits the cores of the node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.domain.accelerator import load_catalog
from tpudash.domain.run import RunState
from tpudash.store.snapshot import RUNS
from tpudash.store.training_curve import number_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.accelerator import AcceleratorType
    from tpudash.domain.finding import Finding
    from tpudash.domain.run import Run

ABOUT: Final = About(
    "batch-fits",
    "Batch size fits the cores",
    Scope.RUN,
    why="The global batch is split over the cores, and the matrix units work on 128 rows at once.",
    rank=50,
    source=RUNS,
    group=Group.SLOW,
)
FLAG: Final = "--batch_size"
ROWS: Final = 128
OVER: Final = frozenset({RunState.FINISHED, RunState.DELETED})
PADDED: Final = frozenset({"v2", "v3"})
"""Generations whose guides ask for a global batch that is a multiple of 128."""


def check(evidence: Evidence) -> Finding:
    """Fail for a batch that can't be split evenly, warn of one that wastes rows."""
    run = evidence.run
    if run is None or run.serves or run.state in OVER:
        return ABOUT.not_applicable(evidence, "nothing is to be trained")
    kind = load_catalog().find(run.spec.accelerator_type) if run.spec else None
    if kind is None:
        return ABOUT.unknown(evidence, "its accelerator type is not known here")
    batch = _batch_size(run, evidence)
    if batch is None:
        return ABOUT.unknown(
            evidence, f"its command has no {FLAG}, and its start is not among the log entries read"
        )
    return _judge(batch, kind, evidence)


def _judge(batch: int, kind: AcceleratorType, evidence: Evidence) -> Finding:
    if batch <= 0 or batch % kind.cores:
        return ABOUT.failed(
            evidence,
            f"a global batch of {batch:,} can't be split evenly over the {kind.cores:,} cores of "
            f"{kind.name}",
            advice=f"Use a multiple of {kind.cores:,}, best {_best(batch, kind):,}.",
        )
    each = f"{batch:,} over {kind.cores:,} cores is {batch // kind.cores:,} each"
    if kind.generation.name in PADDED and batch % ROWS:
        return ABOUT.warned(
            evidence,
            f"{each}; on {kind.generation.name} the global batch should be a multiple of {ROWS}",
            advice=f"Use {_best(batch, kind):,}: rows that are missing are padded and computed "
            "all the same.",
        )
    return ABOUT.passed(evidence, each)


def _best(batch: int, kind: AcceleratorType) -> int:
    """Return the next multiple of 128 that the cores divide, not below the batch."""
    unit = ROWS
    while unit % kind.cores:
        unit += ROWS
    return unit * max(1, -(-batch // unit))


def _batch_size(run: Run, evidence: Evidence) -> int | None:
    """Return the batch size that the trainer says it uses, else that of its command."""
    attempt = evidence.attempt
    started = evidence.newest_event("start", attempt.attempt if attempt else None)
    arguments = started.get("arguments") if started else None
    if isinstance(arguments, dict):
        said = number_in(arguments, "batch_size")
        if said is not None:
            return int(said)
    return _flag(run.spec.recipe.command) if run.spec else None


def _flag(command: Sequence[str]) -> int | None:
    """Return the value of the last `--batch_size N` or `--batch_size=N`."""
    found = None
    for place, word in enumerate(command):
        name, _, value = word.partition("=")
        if name == FLAG:
            text = value or (command[place + 1] if place + 1 < len(command) else "")
            found = int(text) if text.isascii() and text.isdigit() else None
    return found
