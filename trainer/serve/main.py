"""The server's process: settings, device, model, HTTP."""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any

from trainer.devices import prepare_environment
from trainer.events import EventWriter
from trainer.faults import ExitCode, TrainerError
from trainer.process import claim_stdout, fail, identity
from trainer.serve.settings import Settings, parse
from trainer.stopping import StopRequest
from trainer.versions import preflight, tpu_chips_present

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trainer.serve.exports import Export
    from trainer.serve.reloading import Reloader
    from trainer.serve.servable import Servable

_SWITCH_INTERVAL_S = 0.0005
"""How long a thread may keep Python to itself: the default, 5 ms, is longer than a prediction."""
_TPU_WINDOW_S = 0.002


def main(arguments: Sequence[str]) -> int:
    """Run the server and return its exit code."""
    stdout = 1
    run, attempt = identity(arguments)
    try:
        settings = parse(arguments)
        stdout = claim_stdout()
        run, attempt = settings.run, settings.attempt
        stop = StopRequest()
        events = EventWriter(
            run=run,
            attempt=attempt,
            stdout=stdout,
            # Whose events nobody reads any more may serve on; whose supervisor died may not.
            on_stdout_lost=lambda: settings.stop_on_stdin_eof and stop.ask("stdout was closed"),
        )
        _serve(settings, events, stop)
    except TrainerError as fault:
        return fail(EventWriter(run=run, attempt=attempt, stdout=stdout), fault)
    except Exception as error:  # noqa: BLE001 - the edge of the process: told, then ended
        traceback.print_exc()
        text = f"{type(error).__name__}: {error}"
        defect = TrainerError(ExitCode.DEFECT, "UNCLASSIFIED", text, "the traceback is on stderr")
        return fail(EventWriter(run=run, attempt=attempt, stdout=stdout), defect)
    # A supervisor must tell a server that had to go from work that is done.
    return int(ExitCode.PREEMPTED if settings.stop_on_stdin_eof else ExitCode.FINISHED)


def _serve(settings: Settings, events: EventWriter, stop: StopRequest) -> None:
    _check_packages()
    uses_tpu = settings.tpu == "local" or (settings.tpu == "auto" and tpu_chips_present())
    installed, warnings = preflight(needs_tpu=uses_tpu)
    for warning in warnings:
        events.emit("warning", warning, severity="WARNING")
    from trainer.serve.host import ModelHost
    from trainer.serve.meters import Meters
    from trainer.serve.server import Server, listen

    bound = listen(settings.host, settings.port)
    prepare_environment("local" if uses_tpu else None, os.environ)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    address, port = bound.getsockname()[:2]
    name = settings.model_name
    events.emit(
        "start",
        f"serving {settings.folder} as {name} on {address}:{port}",
        model=name,
        address=address,
        port=port,
        device={"kind": "TPU" if uses_tpu else "CPU", "count": 1},
        versions={"python": sys.version.split()[0], installed.wheel: installed.tensorflow},
        pid=os.getpid(),
    )
    host = ModelHost(name, Meters(name))

    def start() -> Reloader:
        events.emit("stage", f"importing TensorFlow {installed.tensorflow}", stage="import")
        from trainer.serve.reloading import Reloader

        reloader = Reloader(settings.folder, _loader(settings, uses_tpu=uses_tpu), host, events)
        reloader.load_first()
        return reloader

    async def serve() -> None:
        server = Server(settings, host, events, stop)
        await server.run(bound, start, _window_s(settings, uses_tpu=uses_tpu))

    _new_loop().run_until_complete(serve())


def _check_packages() -> None:
    try:
        import orjson  # noqa: F401
        import prometheus_client  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise TrainerError(
            ExitCode.NO_DEVICE,
            "VERSION",
            f"{error.name} is not installed in this Python",
            "pip install 'tpudash[serve]'",
        ) from error


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def _window_s(settings: Settings, *, uses_tpu: bool) -> float:
    if settings.window_ms >= 0:
        return settings.window_ms / 1000
    return _TPU_WINDOW_S if uses_tpu else 0.0


def _loader(settings: Settings, *, uses_tpu: bool) -> Callable[[Export], Servable]:
    from trainer.serve.servable import Servable, padded_sizes

    pads = settings.pad == "yes" or (settings.pad == "auto" and uses_tpu)
    options: dict[str, Any] = {
        "device": _tpu_device() if uses_tpu else "",
        "sizes": padded_sizes(settings.max_batch) if pads else (),
        "max_batch": settings.max_batch,
    }
    return lambda export: Servable(export, **options)


def _tpu_device() -> str:
    """Return the first local TPU core; a model that one core holds needs no more."""
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    devices = tf.config.list_logical_devices("TPU")
    if not devices:
        raise TrainerError(
            ExitCode.NO_DEVICE, "CONNECT", "no TPU core is visible", "check the node, or --tpu none"
        )
    return str(devices[0].name)
