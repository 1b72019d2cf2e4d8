"""The trainer's process: settings, those of TensorFlow, then the job."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from trainer.config import Config, cores, parse
from trainer.devices import prepare_environment, tpu_name
from trainer.lean_import import import_tensorflow
from trainer.process import run_process, take_lock
from trainer.versions import Installed, preflight

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainer.events import EventWriter
    from trainer.faults import ExitCode
    from trainer.stopping import StopRequest


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trainer and return its exit code."""
    return run_process(sys.argv[1:] if arguments is None else list(arguments), parse, _run)


def _run(config: Config, events: EventWriter, stop: StopRequest) -> ExitCode:
    name = tpu_name(config, os.environ)
    installed, warnings = preflight(needs_tpu=name is not None)
    _tell_start(config, events, installed, name)
    for warning in warnings:
        events.emit("warning", warning, severity="WARNING")
    take_lock(config, events, stop)
    prepare_environment(name, os.environ)
    events.emit("stage", f"importing TensorFlow {installed.tensorflow}", stage="import")
    import_tensorflow()
    from trainer.job import Job
    from trainer.tensorflow_engine import make_engine

    return Job(config, events, stop, lambda: make_engine(config, events, name)).execute()


def _tell_start(
    config: Config, events: EventWriter, installed: Installed, name: str | None
) -> None:
    kind = "CPU" if name is None else "TPU"
    count = config.cpu_replicas if name is None else cores(config.accelerator_type)
    events.emit(
        "start",
        f"training {config.run} on {kind}, attempt {config.attempt}",
        versions={
            "python": sys.version.split()[0],
            installed.wheel: installed.tensorflow,
            "keras": installed.keras,
            "numpy": installed.numpy,
            "libtpu": installed.libtpu,
        },
        arguments=config.arguments(),
        device={"kind": kind, "count": count},
        pid=os.getpid(),
    )
