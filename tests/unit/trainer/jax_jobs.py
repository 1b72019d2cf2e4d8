"""Runs the real training job of the JAX recipe in this process."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tests.unit.trainer.jobs import Events, events_in, stop_after_save
from trainer.events import EventWriter
from trainer.jax_recipe.main import parse_for_jax
from trainer.jax_recipe.workers import Workers
from trainer.stopping import StopRequest

if TYPE_CHECKING:
    from pathlib import Path

    from trainer.faults import ExitCode


def run_jax_job(
    model_dir: Path, *arguments: str, steps: int = 6, every: int = 2, stop_at: int = 10**9
) -> tuple[ExitCode, Events]:
    """Run the job and return its exit code and its events by kind; see `run_job`."""
    from trainer.jax_recipe.engine import make_engine
    from trainer.job import Job

    config = parse_for_jax(
        f"--model_dir {model_dir} --batch_size 16 --tpu none --checkpoint_every {every} "
        f"--steps {steps}".split()
        + list(arguments)
    )
    model_dir.mkdir(exist_ok=True, parents=True)
    path = model_dir.parent / f"{model_dir.name}.events"
    path.unlink(missing_ok=True)
    null = os.open(os.devnull, os.O_WRONLY)
    stop = StopRequest()
    events = EventWriter(run="r", attempt=1, stdout=null, file=path)

    def make() -> Any:
        engine = make_engine(config, Workers(), tpu=False, tell=events.emit)
        return stop_after_save(engine, stop_at, stop)

    try:
        code = Job(config, events, stop, make).execute()
    finally:
        os.close(null)
        found = events_in(path)
    return code, found
