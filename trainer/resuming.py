"""What is found of an earlier life, and whether this one goes on as it would have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trainer.faults import ExitCode, TrainerError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.config import Config

KEPT = 3
SCHEMA = 1
COMPARED = (
    "seed",
    "batch_size",
    "data",
    "data_digest",
    "precision",
    "learning_rate",
    "schedule",
    "clip_norm",
    "devices",
)
"""What a run must keep to end with the same weights as if it had never been interrupted."""


@dataclass(frozen=True)
class Restored:
    """Where the training begins.

    Attributes:
        step: steps done; 0 means from scratch.
        path: the checkpoint, None from scratch.
        quarantined: names of what was set aside.
        problems: what was wrong with each of them.
        extra: further state that was saved with the checkpoint, as JSON values.
    """

    step: int
    path: str | None
    quarantined: tuple[str, ...]
    problems: tuple[str, ...]
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Saved:
    """A checkpoint that was written.

    Attributes:
        seconds: from the beginning of the save until all of it was written.
        held_s: how long the training waited for it.
    """

    step: int
    path: str
    seconds: float
    bytes: int
    held_s: float


def check_model(step: int, found: Mapping[str, Any], mine: Mapping[str, Any]) -> None:
    """Check by its description that a checkpoint is of this model.

    Raises:
        TrainerError: its weights have other shapes.
    """
    if found.get("model") != mine["model"]:
        own, other = mine.get("model_name"), found.get("model_name", "unnamed")
        names = f"{other}, this is {own}"
        if own == other:
            names = f"{own} of another --image_size or --classes"
        raise other_model(step, f"its weights have other shapes ({names})")


def differences(step: int, found: Mapping[str, Any], mine: Mapping[str, Any]) -> list[str]:
    """Return what makes a resumed run end otherwise than one that was never interrupted."""
    return [
        f"{name} was {found.get(name)} in ckpt-{step} and is {mine[name]} now: the "
        "result will differ from a run that was never interrupted"
        for name in COMPARED
        if name in mine and found.get(name, mine[name]) != mine[name]
    ]


def other_model(step: int, detail: str) -> TrainerError:
    """Return the failure of a checkpoint that this model cannot take up."""
    return TrainerError(
        ExitCode.DEFECT,
        "BAD_REQUEST",
        f"ckpt-{step} belongs to another model: {detail}",
        "use the --model_dir of this model, or start a new run",
    )


def data_name(config: Config, examples: int) -> str:
    """Return what the description of a checkpoint says of its data."""
    if config.embedded:
        return "embedded"
    return f"{config.synthetic} synthetic" if config.synthetic else f"{examples} examples"
