"""Sets up what a training job works with: device, data, state, checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from trainer import devices
from trainer.checkpoint_files import CheckpointFolder
from trainer.checkpoints import SCHEMA, Checkpoints
from trainer.config import Config, batch_advice
from trainer.config_checks import check_division
from trainer.data import loading
from trainer.loop import TrainingLoop
from trainer.model import signature
from trainer.model_specs import model_spec
from trainer.schedule import make_schedule
from trainer.training_state import TrainingState

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.data.evaluation import EvaluationData
    from trainer.data.loading import TrainingData
    from trainer.events import EventWriter


@dataclass(frozen=True)
class Parts:
    """What a job works with.

    Attributes:
        state: what is trained.
        loop: runs the steps.
        checkpoints: the run's checkpoints.
        training: data to train on.
        evaluation: held-out data.
        target: last step of the run.
    """

    state: TrainingState
    loop: TrainingLoop
    checkpoints: Checkpoints
    training: TrainingData
    evaluation: EvaluationData
    target: int

    def evaluation_batch(self, batch_size: int) -> int:
        """Return the size of held-out batches: moderate, and whole for each replica."""
        replicas = self.state.device.count
        return max(replicas, min(256, batch_size) // replicas * replicas)


def set_up_device(config: Config, events: EventWriter, tpu_name: str | None) -> devices.Device:
    """Connect the device and check that the batch suits it.

    Raises:
        TrainerError: there is no such device, or the batch cannot be split over it.
    """
    if tpu_name:
        events.emit("stage", f"connecting the TPU {tpu_name}", stage="tpu_init")
    device = devices.set_up(config, tpu_name)
    check_division(config, device.count)
    return device


def make_parts(config: Config, events: EventWriter, device: devices.Device) -> Parts:
    """Read the data, build the model, and look at the run's folder.

    Raises:
        TrainerError: the data or the folder cannot be used.
    """

    def warn(message: str) -> None:
        events.emit("warning", message, severity="WARNING")

    for advice in batch_advice(config.batch_size, config.accelerator_type):
        warn(advice)
    events.emit("stage", "reading the data", stage="data")
    folder = CheckpointFolder(config.model_dir)
    folder.prepare()
    training, evaluation = loading.load(config, hosts=device.hosts, warn=warn)
    target = config.steps or config.num_epochs * training.steps_per_epoch
    compute = _compute_type(config, device, folder)
    state = make_state(config, device, target, compute)
    return Parts(
        state,
        make_loop(config, state),
        _checkpoints(config, folder, state, training, warn),
        training,
        evaluation,
        target,
    )


def make_state(
    config: Config, device: devices.Device, target: int, compute_type: str
) -> TrainingState:
    """Return freshly initialised weights and optimizer."""
    return TrainingState(
        device,
        model_spec(config.model, config.image_size, config.classes),
        make_schedule(config, target),
        compute_type=compute_type,
        seed=config.seed,
    )


def make_loop(config: Config, state: TrainingState) -> TrainingLoop:
    """Return the loop that trains a state."""
    return TrainingLoop(
        state,
        batch_size=config.batch_size,
        accumulate=config.accumulate,
        clip_norm=config.clip_norm,
    )


def _compute_type(config: Config, device: devices.Device, folder: CheckpointFolder) -> str:
    """Choose the compute type; `auto` keeps to the one the run began with, if it is fast."""
    chosen = devices.compute_type(config, device)
    newest = folder.scan().indices[:1]
    before = (folder.description(newest[0]) or {}).get("precision") if newest else None
    if config.precision == "auto" and before == "float32":
        return "float32"
    return chosen


def _checkpoints(
    config: Config,
    folder: CheckpointFolder,
    state: TrainingState,
    training: TrainingData,
    warn: Callable[[str], None],
) -> Checkpoints:
    return Checkpoints(
        folder,
        objects={"model": state.model, "optimizer": state.optimizer},
        step=state.step,
        description=_description(config, state, training),
        warn=warn,
    )


def _description(config: Config, state: TrainingState, training: TrainingData) -> dict[str, Any]:
    data = f"{training.examples} examples"
    if config.embedded:
        data = "embedded"
    elif config.synthetic:
        data = f"{config.synthetic} synthetic"
    return {
        "schema": SCHEMA,
        "keras_flavour": "keras3",
        "model": signature(state.model),
        "model_name": config.model,
        "precision": keras_compute_type(),
        "seed": config.seed,
        "batch_size": config.batch_size,
        "learning_rate": config.learning_rate,
        "schedule": state.schedule.description(),
        "clip_norm": config.clip_norm,
        "data": data,
        "versions": {"tensorflow": tf.__version__, "keras": keras.__version__},
    }


def keras_compute_type() -> str:
    """Return the type that models compute in now: float32 or bfloat16."""
    return str(keras.mixed_precision.dtype_policy().compute_dtype)
