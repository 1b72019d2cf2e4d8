"""TensorFlow as a job's engine: device, data, state and checkpoints, set up and put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from trainer import devices
from trainer.best_weights import BestWeights
from trainer.checkpoint_files import CheckpointFolder
from trainer.checkpoints import Checkpoints
from trainer.config import Config, batch_advice
from trainer.config_checks import check_division
from trainer.data import loading
from trainer.data.faults import input_failure
from trainer.engine import Alone
from trainer.export import export_model
from trainer.loop import TrainingLoop
from trainer.model import flops_per_example, signature, weights_sha256
from trainer.model_specs import model_spec
from trainer.resuming import SCHEMA, data_name
from trainer.schedule import Schedule
from trainer.schedule_shape import ScheduleShape
from trainer.summaries import Summaries
from trainer.tracing import TensorFlowTracer
from trainer.training_state import TrainingState

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.data.evaluation import EvaluationData
    from trainer.data.loading import TrainingData
    from trainer.events import EventWriter
    from trainer.measures import Call, Measured


class TensorFlowEngine:
    """TensorFlow set up for one job; see `trainer.engine.Engine`.

    Args:
        config: the settings.
        state: what is trained.
        checkpoints: the run's checkpoints.
        training: data to train on.
        evaluation: held-out data.
        target: last step of the run.
        warn: told what is worth knowing but no failure.
    """

    peers = Alone()

    def __init__(
        self,
        config: Config,
        state: TrainingState,
        checkpoints: Checkpoints,
        training: TrainingData,
        evaluation: EvaluationData,
        target: int,
        warn: Callable[[str], None],
    ) -> None:
        self._config = config
        self._state = state
        self._checkpoints = checkpoints
        self._training = training
        self._evaluation = evaluation
        self._loop = make_loop(config, state)
        self._best = BestWeights(state.model, config.model_dir, warn)
        self.target = target
        self.tracer = TensorFlowTracer()
        self.steps_per_epoch = training.steps_per_epoch
        self.evaluation_examples = evaluation.examples
        self.restore = checkpoints.restore
        self.save = checkpoints.save
        self.saved = checkpoints.saved
        self.save_best = self._best.save
        self.restore_best = self._best.restore
        self.take_measures = self._loop.take_measures
        self.learning_rate = state.schedule.at
        self.weights_are_finite = state.weights_are_finite

    @property
    def last_saved(self) -> int | None:
        """Step of the newest checkpoint, None while there is none."""
        return self._checkpoints.last_saved

    def start(self, step: int) -> None:
        """Take the data from a step on and trace the training step."""
        self._loop.start(self._training, step, self.target)

    def run(self, steps: int) -> Call:
        """Run steps in one device call.

        Raises:
            TrainerError: the input failed.
        """
        try:
            return self._loop.run(steps)
        except tf.errors.OpError as error:
            failure = input_failure(error, self._training.files)
            if failure is None:
                raise
            raise failure from error

    def evaluate(self, cancelled: Callable[[], bool]) -> Measured | None:
        """Return loss and accuracy over the held-out data; None if cancelled."""
        replicas = self._state.device.count
        size = max(replicas, min(256, self._config.batch_size) // replicas * replicas)
        return self._loop.evaluate(self._evaluation.batches(size), cancelled)

    def input_facts(self) -> dict[str, Any]:
        """Return how the input is read, for whoever looks why training is slow."""
        return loading.input_facts(self._training)

    def flops_per_example(self) -> int:
        """Return the floating-point operations of training on one example."""
        return flops_per_example(self._state.model)

    def weights_sha256(self) -> str:
        """Return the SHA-256 over all weights."""
        return weights_sha256(self._state.model)

    def export(self, step: int) -> str:
        """Write a SavedModel and return its path. Raises `TrainerError`."""
        return export_model(self._state.model, self._config.model_dir, step)

    def curves(self) -> Summaries:
        """Return the writer of training curves."""
        return Summaries(self._config.model_dir)


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


def make_engine(config: Config, events: EventWriter, tpu_name: str | None) -> TensorFlowEngine:
    """Connect the device, read the data, build the model, and look at the run's folder.

    Raises:
        TrainerError: the device, the data or the folder cannot be used.
    """

    def warn(message: str) -> None:
        events.emit("warning", message, severity="WARNING")

    device = set_up_device(config, events, tpu_name)
    for advice in batch_advice(config.batch_size, config.accelerator_type):
        warn(advice)
    events.emit("stage", "reading the data", stage="data")
    folder = CheckpointFolder(config.model_dir)
    folder.prepare()
    training, evaluation = loading.load(config, hosts=device.hosts, warn=warn)
    target = config.steps or config.num_epochs * training.steps_per_epoch
    compute = _compute_type(config, device, folder)
    state = make_state(config, device, target, compute)
    checkpoints = _checkpoints(config, folder, state, training, warn)
    return TensorFlowEngine(config, state, checkpoints, training, evaluation, target, warn)


def make_state(
    config: Config, device: devices.Device, target: int, compute_type: str
) -> TrainingState:
    """Return freshly initialised weights and optimizer."""
    return TrainingState(
        device,
        model_spec(config.model, config.image_size, config.classes),
        Schedule(ScheduleShape.of(config, target)),
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
        variables=state.variables(),
        step=state.step,
        description=_description(config, state, training),
        warn=warn,
    )


def _description(config: Config, state: TrainingState, training: TrainingData) -> dict[str, Any]:
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
        "data": data_name(config, training.examples),
        "data_digest": training.digest,
        "versions": {"tensorflow": tf.__version__, "keras": keras.__version__},
    }


def keras_compute_type() -> str:
    """Return the type that models compute in now: float32 or bfloat16."""
    return str(keras.mixed_precision.dtype_policy().compute_dtype)
