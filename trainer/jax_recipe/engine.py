"""JAX as a job's engine: devices of all workers, data, state and checkpoints put together."""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from trainer.config import batch_advice
from trainer.config_checks import check_division
from trainer.data.share import Share
from trainer.faults import TrainerError, one_line
from trainer.jax_recipe import devices, examples, model
from trainer.jax_recipe.checkpoints import Checkpoints
from trainer.jax_recipe.export import export_model
from trainer.jax_recipe.loop import Loop, State
from trainer.jax_recipe.peers import SlicePeers, as_peer_loss
from trainer.jax_recipe.reading import Reading
from trainer.jax_recipe.schedule import rate
from trainer.jax_recipe.storage import Storage
from trainer.jax_recipe.tracing import JaxTracer
from trainer.model_specs import model_spec
from trainer.resuming import SCHEMA, Restored, Saved, data_name
from trainer.schedule_shape import ScheduleShape
from trainer.stopping import claim_signals

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.config import Config
    from trainer.data.evaluation import EvaluationData
    from trainer.engine import CurveWriter
    from trainer.jax_recipe.examples import Examples
    from trainer.jax_recipe.workers import Workers
    from trainer.measures import Call, Measured

_EVALUATION_BATCH = 256


class JaxEngine:
    """JAX set up for one job; see `trainer.engine.Engine`.

    Args:
        config: the settings.
        found: the devices.
        workers: the processes that train together.
        data: training and held-out examples.
        warn: told what is worth knowing but no failure.
    """

    def __init__(
        self,
        config: Config,
        found: devices.Devices,
        workers: Workers,
        data: tuple[Examples, EvaluationData],
        warn: Callable[[str], None],
    ) -> None:
        self._config = config
        self._devices = found
        self._warn = warn
        self._share = Share(workers.index, workers.count, found.local)
        self._training, held_out = data
        self._evaluation = examples.OwnPart(held_out, workers.index, workers.count)
        self._storage = Storage(config.model_dir)
        self._spec = model_spec(config.model, config.image_size, config.classes)
        self.peers = SlicePeers(workers)
        self.tracer = JaxTracer(self._storage, active=workers.index == 0)
        self.steps_per_epoch = self._training.count // config.batch_size
        self.target = config.steps or config.num_epochs * self.steps_per_epoch
        self.evaluation_examples = held_out.examples
        self._schedule = ScheduleShape.of(config, self.target)
        self._loop = self._make_loop()
        self.take_measures = self._loop.take_measures
        self._checkpoints = Checkpoints(self._storage, self._description(), warn)
        self._reading: Reading | None = None

    def _make_loop(self) -> Loop:
        config = self._config
        schedule = self._schedule
        parts = [optax.clip_by_global_norm(config.clip_norm)] if config.clip_norm else []
        # Keras' epsilon, so that both recipes learn alike.
        optimizer = optax.chain(*parts, optax.adam(lambda count: rate(schedule, count), eps=1e-7))
        weights = model.init_weights(self._spec, config.seed)
        state = State(weights, optimizer.init(weights))
        is_short = config.precision == "bfloat16" or (
            config.precision == "auto" and self._devices.kind == "TPU"
        )
        return Loop(
            self._devices,
            optimizer,
            devices.on_all(self._devices, state),
            batch_size=config.batch_size,
            compute_type=jnp.bfloat16 if is_short else jnp.float32,
            accumulate=config.accumulate,
        )

    def _description(self) -> dict[str, Any]:
        config, loop = self._config, self._loop
        return {
            "schema": SCHEMA,
            "model": model.signature(loop.state.weights),
            "model_name": config.model,
            "precision": loop.compute_name,
            "seed": config.seed,
            "batch_size": config.batch_size,
            "learning_rate": config.learning_rate,
            "schedule": self._schedule.description(),
            "clip_norm": config.clip_norm,
            "devices": self._devices.count,
            "data": data_name(config, self._training.count),
            "data_digest": self._training.digest,
            "versions": {name: metadata.version(name) for name in ("jax", "orbax-checkpoint")},
        }

    @property
    def last_saved(self) -> int | None:
        """Step of the newest checkpoint, None while there is none."""
        return self._checkpoints.last_saved

    def restore(self) -> Restored:
        """Take up the newest good checkpoint, which the first worker reads for all.

        Raises:
            TrainerError: checkpoints exist but none is good, or they belong to another model.
        """
        template = devices.from_here(self._loop.state)
        restored, tree = Restored(0, None, (), ()), template
        if self._share.host == 0:
            self._storage.prepare("checkpoints")
            restored, tree = self._checkpoints.restore(template)
        if self._share.hosts > 1:
            step = int(self.peers.from_first(np.array(restored.step, np.int32)))
            tree = self.peers.from_first(tree)
            # All decide by it when to stop early.
            extra = self.peers.words_from_first(restored.extra)
            restored = replace(restored, step=step, extra=extra)
            self._checkpoints.last_saved = step or None
        self._loop.state = devices.on_all(self._devices, tree)
        return restored

    def save(
        self,
        step: int,
        extra: dict[str, Any],
        *,
        wait: bool,  # noqa: ARG002 - it is always written at once
    ) -> list[Saved]:
        """Save a checkpoint on the first worker, and return it; nothing elsewhere.

        Raises:
            TrainerError: it could not be written; earlier checkpoints are unharmed.
        """
        if self._share.host:
            self._checkpoints.last_saved = step
            return []
        saved = self._checkpoints.save(step, devices.from_here(self._loop.state), extra)
        return [saved] if saved else []

    def saved(self) -> list[Saved]:
        """Return nothing: `save` has told all."""
        return []

    def start(self, step: int) -> None:
        """Take the data from a step on and compile the training step."""
        self._reading = Reading(
            self._training,
            batch_size=self._config.batch_size,
            seed=self._config.seed,
            first_step=step,
            last_step=self.target,
            share=self._share,
        )
        self._loop.compile(*self._reading.first())

    def run(self, steps: int) -> Call:
        """Run steps in one call.

        Raises:
            TrainerError: the input failed, or another worker is gone.
        """
        if self._reading is None:
            raise RuntimeError("run before start")
        try:
            return self._loop.run(self._reading, steps)
        except TrainerError:
            raise
        except Exception as error:
            lost = as_peer_loss(error) if self._share.hosts > 1 else None
            if lost is None:
                raise
            raise lost from error

    def evaluate(self, cancelled: Callable[[], bool]) -> Measured | None:
        """Return loss and accuracy over the held-out data; None if a worker was asked to stop."""
        local = self._devices.local
        size = max(local, min(_EVALUATION_BATCH, self._config.batch_size) // local * local)
        return self._loop.evaluate(self._evaluation.batches(size), self.peers, cancelled)

    def learning_rate(self, step: int) -> float:
        """Return the rate of the step after `step` steps."""
        return float(rate(self._schedule, step))

    def weights_are_finite(self) -> bool:
        """Say whether no weight is NaN or infinite."""
        weights = jax.tree.leaves(devices.from_here(self._loop.state.weights))
        return all(bool(np.isfinite(each).all()) for each in weights)

    def input_facts(self) -> dict[str, Any]:
        """Return how the input is read: arrays in memory, one batch ahead, by one thread."""
        if isinstance(self._training, examples.RecordExamples):
            return {"source": "files", "cached": False, "prefetch": True, "parallel_map": False}
        # Nothing is decoded while training runs, so nothing could be in parallel.
        return {"source": "memory", "cached": True, "prefetch": True}

    def flops_per_example(self) -> int:
        """Return the floating-point operations of training on one example."""
        return model.flops_per_example(self._spec)

    def weights_sha256(self) -> str:
        """Return the SHA-256 over all weights."""
        return model.weights_sha256(devices.from_here(self._loop.state.weights))

    def export(self, step: int) -> str | None:
        """Write the trained model on the first worker. Raises `TrainerError`."""
        if self._share.host:
            return None
        weights = devices.from_here(self._loop.state.weights)
        return export_model(self._storage, weights, self._spec, step)

    def save_best(self, step: int) -> None:
        """Keep the weights as the best so far."""
        if self._share.host == 0:
            weights = devices.from_here(self._loop.state.weights)
            self._checkpoints.save_best(step, weights)

    def restore_best(self, step: int) -> bool:
        """Put the best weights into the model; False, and a warning, if they are gone."""
        own = devices.from_here(self._loop.state.weights)
        found = self._checkpoints.read_best(step, own) if self._share.host == 0 else own
        is_there = bool(self.peers.from_first(np.array(found is not None, np.int32)))
        if not is_there:
            self._warn(f"the best weights, of step {step}, cannot be read")
            return False
        weights = devices.on_all(self._devices, self.peers.from_first(found))
        self._loop.state = State(weights, self._loop.state.optimizer)
        return True

    def curves(self) -> CurveWriter:
        """Say that there is none; the settings are checked before."""
        raise NotImplementedError


def make_engine(
    config: Config, workers: Workers, *, tpu: bool, tell: Callable[..., None]
) -> JaxEngine:
    """Join the workers, find the devices, read the data, and build the model.

    Args:
        config: the settings.
        workers: the processes that train together.
        tpu: whether to use TPU chips.
        tell: writes an event, as `EventWriter.emit` does.

    Raises:
        TrainerError: a worker, the devices, the data or the folder cannot be used.
    """
    devices.configure(config, tpu=tpu, workers=workers)
    if workers.count > 1:
        tell("stage", f"waiting for {workers.count} workers", stage="workers")
        devices.connect(workers, workers.meet())
        # JAX listens for SIGTERM itself from now on, and tells nobody.
        claim_signals()
    if tpu:
        tell("stage", "connecting the TPU", stage="tpu_init")
    found = devices.find("TPU" if tpu else "CPU")
    check_division(config, found.count, "devices")

    def warn(message: str) -> None:
        tell("warning", one_line(message), severity="WARNING")

    for advice in batch_advice(config.batch_size, config.accelerator_type):
        if workers.index == 0:
            warn(advice)
    tell("stage", "reading the data", stage="data")
    data = examples.load(config, Storage(config.model_dir))
    return JaxEngine(config, found, workers, data, warn)
