"""The process of the JAX recipe: settings, signals, the workers of a slice, then the job."""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from trainer.config import Config, bad_argument, parse
from trainer.events import EventWriter, tell_preempted
from trainer.faults import ExitCode
from trainer.jax_recipe.versions import Installed, preflight
from trainer.jax_recipe.workers import Workers
from trainer.joblock import is_remote
from trainer.process import run_process, take_lock
from trainer.versions import tpu_chips_present

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainer.stopping import StopRequest

PROGRAM = "python -m trainer.jax_recipe"
_ALIVE_S = 10.0
_OF_FIRST_WORKER = frozenset({"checkpoint", "eval", "early_stop", "profile", "restore"})


class WorkerEvents(EventWriter):
    """Events of a worker other than the first.

    The first one tells of the training, once for all; the others say at times that they live.
    """

    def __init__(self, worker: int, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._worker = worker
        self._told = 0.0

    def emit(self, event: str, message: str, *, severity: str = "INFO", **payload: Any) -> None:
        """Write an event unless it is the first worker's to tell."""
        if event in ("step", "finish"):
            if event == "step" and time.monotonic() - self._told < _ALIVE_S:
                return
            self._told = time.monotonic()
            step = payload.get("step")
            event, severity, payload = "worker", "DEBUG", {"step": step}
            message = f"worker {self._worker} is at step {step}"
        if event in _OF_FIRST_WORKER:
            return
        super().emit(event, message, severity=severity, worker=self._worker, **payload)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trainer and return its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    return run_process(given, parse_for_jax, _run, make_events=_make_events)


def parse_for_jax(arguments: Sequence[str]) -> Config:
    """Return the settings.

    Raises:
        TrainerError: one is wrong, or only the TensorFlow recipe has it.
    """
    config = parse(arguments, PROGRAM)
    if config.model != "cnn":
        raise bad_argument(
            f"--model {config.model} exists only in the TensorFlow recipe",
            "use --model cnn, or launch with --recipe tensorflow",
        )
    if config.summaries:
        raise bad_argument(
            "--summaries are written only by the TensorFlow recipe",
            "leave it out: the step events hold the same figures",
        )
    if config.tpu not in ("auto", "none", "local"):
        raise bad_argument(
            f"--tpu {config.tpu}: JAX runs on each worker and uses the chips there",
            "use auto, local or none",
        )
    return config


def _workers(config: Config) -> Workers:
    return Workers.from_environment(os.environ, f"{config.model_dir} {config.attempt}")


def _make_events(config: Config, **arguments: Any) -> EventWriter:
    worker = _workers(config).index
    if worker == 0:
        return EventWriter(**arguments)
    return WorkerEvents(worker, **{**arguments, "file": None})


def _run(config: Config, events: EventWriter, stop: StopRequest) -> ExitCode:
    workers = _workers(config)
    tpu = config.tpu == "local" or (config.tpu == "auto" and tpu_chips_present())
    names = (config.model_dir, *config.train_files, *config.eval_files)
    installed, warnings = preflight(needs_tpu=tpu, remote=any(map(is_remote, names)))
    _tell_start(config, events, installed, workers, tpu=tpu)
    for warning in warnings:
        events.emit("warning", warning, severity="WARNING")
    if workers.index == 0:
        take_lock(config, events, stop)
    _prepare_environment(tpu=tpu)
    events.emit("stage", f"importing JAX {installed.jax}", stage="import")
    from trainer.jax_recipe.engine import make_engine
    from trainer.jax_recipe.peers import PeerLostError
    from trainer.job import Job

    # Worker 0 alone tells of lost steps: it alone knows what an earlier life had reported.
    own = config if workers.index == 0 else dataclasses.replace(config, last_step=-1)
    engine = partial(make_engine, own, workers, tpu=tpu, tell=events.emit)
    try:
        return Job(own, events, stop, engine).execute()
    except PeerLostError as lost:
        tell_preempted(events, None, lost.detail, 0.0)
        sys.stderr.write(f"trainer: {lost.detail} ({lost.hint})\n")
        return ExitCode.PREEMPTED


def _prepare_environment(*, tpu: bool) -> None:
    """Set what JAX and its libraries read at import; values that the user set are kept."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1" if tpu else "2")
    os.environ.setdefault("JAX_PLATFORMS", "tpu" if tpu else "cpu")
    # gcsfs would ask a second API, which needs a role of its own, for the kind of each bucket.
    os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")


def _tell_start(
    config: Config, events: EventWriter, installed: Installed, workers: Workers, *, tpu: bool
) -> None:
    kind = "TPU" if tpu else "CPU"
    of = f", worker {workers.index} of {workers.count}" if workers.count > 1 else ""
    events.emit(
        "start",
        f"training {config.run} with JAX on {kind}, attempt {config.attempt}{of}",
        versions={
            "python": sys.version.split()[0],
            "jax": installed.jax,
            "jaxlib": installed.jaxlib,
            "orbax-checkpoint": installed.orbax,
            "numpy": installed.numpy,
            "libtpu": installed.libtpu,
        },
        arguments=config.arguments(),
        device={"kind": kind, "count": None if tpu else config.cpu_replicas * workers.count},
        workers=workers.count,
        pid=os.getpid(),
    )
