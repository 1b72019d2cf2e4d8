"""The checks of `python -m trainer validate` that need TensorFlow: a run in miniature."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from trainer import devices, export
from trainer.checkpoint_files import CheckpointFolder
from trainer.checkpoints import Checkpoints
from trainer.config import batch_advice
from trainer.config_checks import check_division
from trainer.data import loading
from trainer.faults import ExitCode, TrainerError, access_error
from trainer.model import weights_sha256
from trainer.tensorflow_engine import make_loop, make_state
from trainer.validation import WARNING, Outcome

if TYPE_CHECKING:
    from trainer.config import Config
    from trainer.data.loading import TrainingData
    from trainer.training_state import TrainingState

_BUDGET_S = 2.0
"""Time that a measurement may take, so that all of them stay far below a minute on a CPU."""
_FEWEST_STEPS, _MOST_STEPS = 3, 200
_MARGIN = 1.2
"""How much faster the input should be than the training."""
_TOLERANCE = 0.02
"""Between probabilities before and after the export; bfloat16 keeps two to three digits."""


class Rehearsal:
    """Does once what a run does, in a folder of its own below the model_dir.

    Each method is a check; they build on each other and are called in order.

    Args:
        config: the settings of the run.
        tpu_name: which TPU, or None for the CPU.
    """

    def __init__(self, config: Config, tpu_name: str | None) -> None:
        self._config = config
        self._tpu_name = tpu_name
        self._folder = f"{config.model_dir.rstrip('/')}/validate-{uuid.uuid4().hex[:8]}"
        self._device: Any = None
        self._data: TrainingData | None = None
        self._state: TrainingState | None = None
        self._checkpoints: Any = None
        self._input_rate = 0.0
        self._digest = ""
        self._export = ""

    def devices(self) -> Outcome:
        """See that the devices are there and the batch suits them."""
        began = time.monotonic()
        self._device = device = devices.set_up(self._config, self._tpu_name)
        check_division(self._config, device.count)
        names = [each.name for each in tf.config.list_logical_devices(device.kind)]
        advice = batch_advice(self._config.batch_size, self._config.accelerator_type)
        compute = devices.compute_type(self._config, device)
        message = f"{device.count} x {device.kind} on {device.hosts} host(s), {compute}"
        details: dict[str, Any] = {"devices": names, "compute_type": compute, "advice": advice}
        details["set_up_s"] = round(time.monotonic() - began, 3)
        return Outcome(device.count, "replicas", message, details=details)

    def input(self) -> Outcome:
        """Measure how fast batches come, with nothing else to do."""
        advice: list[str] = []
        training, evaluation = loading.load(
            self._config, hosts=self._device.hosts, warn=advice.append
        )
        self._data = training
        steps = max(training.steps_per_epoch, 1)
        done, began = 0, time.monotonic()
        first_at = now = began
        for _ in training.batches(0, 10_000 * steps):
            done += 1
            now = time.monotonic()
            if done == 1:
                first_at = now
            elif now - first_at > _BUDGET_S:
                break
        self._input_rate = (done - 1) * self._config.batch_size / max(now - first_at, 1e-9)
        message = f"{self._input_rate:,.0f} examples/s; {training.examples} to train on"
        details = {
            "examples": training.examples,
            "held_out": evaluation.examples,
            "steps_per_epoch": training.steps_per_epoch,
            "first_batch_s": round(first_at - began, 3),
        }
        verdict = WARNING if advice else "ok"
        message = "; ".join([message, *advice])
        return Outcome(self._input_rate, "examples/s", message, verdict, details)

    def step(self) -> Outcome:
        """Trace and run some steps on real data; see that the input keeps up with them."""
        config, data = self._config, self._data
        assert data is not None  # noqa: S101 - the checks run in order
        compute = devices.compute_type(config, self._device)
        target = config.steps or config.num_epochs * data.steps_per_epoch
        self._state = make_state(config, self._device, max(1, target), compute)
        loop = make_loop(config, self._state)
        began = time.monotonic()
        loop.start(data, 0, _MOST_STEPS + 1)
        first = loop.run(1)
        first_s = time.monotonic() - began
        times: list[float] = []
        begun = time.monotonic()
        while first.finite and len(times) < _MOST_STEPS:
            call = loop.run(1)
            times += call.step_times_s.tolist()
            enough = len(times) >= _FEWEST_STEPS and time.monotonic() - begun > _BUDGET_S
            if not call.finite or enough:
                first = call
                break
        measured = loop.take_measures(1 + len(times), 0.0, 0.0)
        if not first.finite:
            raise TrainerError(
                ExitCode.DEFECT,
                "UNCLASSIFIED",
                f"loss or gradient is NaN or infinite within {1 + len(times)} steps",
                "use a smaller --learning_rate, --clip_norm 1 or --warmup_steps",
            )
        return self._judged_step(first_s, times, measured.loss)

    def _judged_step(self, first_s: float, times: list[float], loss: float) -> Outcome:
        step_s = float(np.median(times))
        rate = self._config.batch_size / step_s
        details = {
            "first_step_s": round(first_s, 3),
            "examples_per_second": round(rate, 1),
            "steps": 1 + len(times),
            "loss": round(loss, 4),
        }
        message = f"{step_s * 1000:.1f} ms, {rate:,.0f} examples/s, the first {first_s:.1f} s"
        if self._input_rate >= _MARGIN * rate:
            return Outcome(step_s, "s", message, details=details)
        message += (
            f"; the input gives {self._input_rate:,.0f} examples/s, so steps will wait for it: "
            "store raw pixels or more shards, or keep the data in memory (--memory_mb)"
        )
        return Outcome(step_s, "s", message, WARNING, details)

    def checkpoint_write(self) -> Outcome:
        """Save a checkpoint to the place where the run will save."""
        state = self._state
        assert state is not None  # noqa: S101 - the checks run in order
        folder = CheckpointFolder(self._folder)
        folder.prepare()
        self._checkpoints = Checkpoints(
            folder,
            variables=state.variables(),
            step=state.step,
            description={"schema": 1},
            warn=lambda _: None,
        )
        self._checkpoints.restore()
        self._digest = weights_sha256(state.model)
        (saved,) = self._checkpoints.save(1)
        message = f"{saved.bytes / 1e6:.1f} MB in {saved.seconds * 1000:.0f} ms"
        details = {"bytes": saved.bytes, "path": self._config.model_dir}
        return Outcome(saved.seconds, "s", message, details=details)

    def checkpoint_read(self) -> Outcome:
        """Read the checkpoint back, verify it, and restore it over spoilt weights."""
        state = self._state
        assert state is not None  # noqa: S101 - the checks run in order
        folder = CheckpointFolder(self._folder)
        began = time.monotonic()
        problem = folder.damage(1)
        if problem is None:
            for weight in state.model.weights:
                weight.assign(weight.value * 0)
            self._checkpoints.reload(1)
            if weights_sha256(state.model) != self._digest:
                problem = "the restored weights differ from those that were saved"
        if problem:
            raise TrainerError(
                ExitCode.DEFECT,
                "CKPT_INCOMPLETE",
                f"a checkpoint written to {self._config.model_dir} cannot be used: {problem}",
                "check the storage; resuming there would fail",
            )
        seconds = time.monotonic() - began
        return Outcome(seconds, "s", f"verified and restored in {seconds * 1000:.0f} ms")

    def export(self) -> Outcome:
        """Export the model to the same place."""
        state = self._state
        assert state is not None  # noqa: S101 - the checks run in order
        began = time.monotonic()
        self._export = export.export_model(state.model, self._folder, 1)
        seconds = time.monotonic() - began
        return Outcome(seconds, "s", f"exported in {seconds:.1f} s")

    def prediction(self) -> Outcome:
        """Load the export and answer one request like the model itself."""
        state = self._state
        assert state is not None  # noqa: S101 - the checks run in order
        images = np.random.default_rng(1).integers(
            0, 256, (1, *state.spec.image_shape), dtype=np.uint8
        )
        signature = tf.saved_model.load(self._export).signatures["serving_default"]
        request = tf.constant(images)
        signature(images=request)
        began = time.monotonic()
        answer = signature(images=request)["probabilities"].numpy()
        seconds = time.monotonic() - began
        own = tf.nn.softmax(state.model(request, training=False)).numpy()
        difference = float(np.abs(answer - own).max())
        if not np.isfinite(answer).all() or difference > _TOLERANCE:
            raise TrainerError(
                ExitCode.DEFECT,
                "UNCLASSIFIED",
                f"the export answers otherwise than the model: off by {difference:.3g}",
                "check that both run with the same TensorFlow",
            )
        message = f"one image in {seconds * 1000:.1f} ms, equal to the model's own answer"
        return Outcome(seconds, "s", message, details={"difference": difference})

    def clean_up(self) -> None:
        """Remove what the checks wrote.

        Raises:
            TrainerError: it cannot be removed.
        """
        try:
            if tf.io.gfile.isdir(self._folder):
                tf.io.gfile.rmtree(self._folder)
        except tf.errors.OpError as error:
            raise access_error(error, f"cannot remove {self._folder}") from error
