"""Runs the HTTP server on its socket, from the first probe to the last answer."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import uvicorn

from trainer.config import bad_argument
from trainer.faults import ExitCode, TrainerError
from trainer.serve.app import Application
from trainer.serve.batcher import Batcher, Limits
from trainer.stopping import SAME_NOTICE_S, watch_stdin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trainer.events import EventWriter
    from trainer.serve.host import ModelHost
    from trainer.serve.reloading import Reloader
    from trainer.serve.settings import Settings
    from trainer.stopping import StopRequest

_KEEP_ALIVE_S = 75
_BACKLOG = 2048
_POLL_S = 0.02
_CLOSING_S = 5.0


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens, so that a port in use is told before anything is loaded.

    Who connects before the server runs is answered once it does.

    Raises:
        TrainerError: the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(_BACKLOG)
    except OSError as error:
        bound.close()
        taken = error.errno == errno.EADDRINUSE
        hint = "another program listens there: choose another --port" if taken else "check --host"
        raise bad_argument(f"cannot listen on {host}:{port}: {error.strerror}", hint) from error
    return bound


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to us: the listener stays open while the drain goes on."""
        yield


class Server:
    """The process's event loop: HTTP, the queue, and the way to the end.

    Args:
        settings: of the server.
        host: what is served.
        events: where it tells what it does.
        stop: set by whoever wants the process to end.
    """

    def __init__(
        self, settings: Settings, host: ModelHost, events: EventWriter, stop: StopRequest
    ) -> None:
        self._settings = settings
        self._host = host
        self._events = events
        self._stop = stop
        self._fault: TrainerError | None = None
        self._asked = asyncio.Event()
        self._first_signal: float | None = None

    async def run(
        self, bound: socket.socket, start: Callable[[], Reloader], window_s: float
    ) -> None:
        """Serve until asked to stop and drained.

        Args:
            bound: the socket.
            start: loads the first model; runs in a thread of its own, may raise TrainerError.
            window_s: how long a call of the model waits for more requests.

        Raises:
            TrainerError: the first model cannot be served.
        """
        loop = asyncio.get_running_loop()
        self._watch_for_the_end(loop)
        application = Application(
            self._host,
            max_body_bytes=self._settings.max_body_bytes,
            body_timeout_s=self._settings.timeout_seconds,
        )
        uvicorn_server = _Uvicorn(_config(application))
        serving = asyncio.ensure_future(uvicorn_server.serve(sockets=[bound]))
        loading = threading.Thread(
            target=self._load, args=(loop, start, window_s), name="load", daemon=True
        )
        loading.start()
        reports = asyncio.ensure_future(self._report())
        await asyncio.wait(
            (serving, asyncio.ensure_future(self._asked.wait())),
            return_when=asyncio.FIRST_COMPLETED,
        )
        if self._fault is None:
            await self._drain()
        reports.cancel()
        uvicorn_server.should_exit = True
        with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
            await asyncio.wait_for(serving, timeout=_CLOSING_S)
        if self._fault is not None:
            raise self._fault

    def _watch_for_the_end(self, loop: asyncio.AbstractEventLoop) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, number)
        # A request may also come from stdin, in another thread.
        self._stop.leave_at_once = lambda _: loop.call_soon_threadsafe(self._asked.set)
        if self._settings.stop_on_stdin_eof:
            watch_stdin(self._stop)

    def _on_signal(self, number: int) -> None:
        name = signal.Signals(number).name
        now = time.monotonic()
        if self._first_signal is not None and now - self._first_signal >= SAME_NOTICE_S:
            os.write(2, f"trainer.serve: second {name}, ending at once\n".encode())
            os._exit(128 + number)
        self._first_signal = self._first_signal or now
        self._stop.ask(name)

    def _load(
        self, loop: asyncio.AbstractEventLoop, start: Callable[[], Reloader], window_s: float
    ) -> None:
        try:
            reloader = start()
        except TrainerError as fault:
            loop.call_soon_threadsafe(self._give_up, fault)
            return
        except Exception as error:  # noqa: BLE001 - the edge of the thread: told, then ended
            text = f"{type(error).__name__}: {error}"
            defect = TrainerError(ExitCode.DEFECT, "UNCLASSIFIED", text, "see the log")
            loop.call_soon_threadsafe(self._give_up, defect)
            return
        loop.call_soon_threadsafe(self._open, window_s)
        if self._settings.look_every_s:
            reloader.watch(self._settings.look_every_s)

    def _give_up(self, fault: TrainerError) -> None:
        self._fault = fault
        self._asked.set()

    def _open(self, window_s: float) -> None:
        from trainer.serve.servable import InputError

        settings = self._settings
        limits = Limits(settings.max_batch, window_s, settings.max_queue, settings.timeout_seconds)
        self._host.open(Batcher(self._host.call, limits, self._host.meters, InputError))
        self._events.emit(
            "ready",
            f"answering at /v1/models/{self._host.name}:predict",
            model=self._host.name,
            version=self._host.version,
        )
        self._tell_figures()

    async def _drain(self) -> None:
        """Answer on until nothing is in flight, and at least so long that others notice."""
        host, settings = self._host, self._settings
        began = time.monotonic()
        host.draining = True
        self._events.emit(
            "drain",
            f"stopping: {self._stop.reason}; {host.in_flight} requests in flight",
            reason=self._stop.reason,
            in_flight=host.in_flight,
        )
        limit = settings.drain_seconds + settings.timeout_seconds + 1.0
        while (age := time.monotonic() - began) < limit:
            if age >= settings.drain_seconds and not host.in_flight:
                break
            await asyncio.sleep(_POLL_S)
        self._tell_figures()

    async def _report(self) -> None:
        interval = self._settings.report_seconds
        while interval:
            await asyncio.sleep(interval)
            if self._host.state != "loading":
                self._tell_figures()

    def _tell_figures(self) -> None:
        host = self._host
        figures: dict[str, Any] = host.meters.take_window()
        p99 = figures["latency_p99_s"]
        latency = "" if p99 is None else f", p99 {p99 * 1000:.1f} ms"
        errors = sum(figures["errors_per_second"].values())
        trouble = f", {errors:.1f} errors/s" if errors else ""
        self._events.emit(
            "serve",
            f"{host.state}: {figures['requests_per_second']:.1f} requests/s{latency}{trouble}",
            model=host.name,
            version=host.version,
            ready=host.state == "ready",
            state=host.state,
            queue_depth=host.batcher.queued_rows if host.version is not None else 0,
            in_flight=host.in_flight,
            **figures,
        )


def _config(application: Application) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        loop="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        # It would write a line for whatever a port scanner sends.
        log_level="error",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        ws="none",
        timeout_keep_alive=_KEEP_ALIVE_S,
        backlog=_BACKLOG,
    )
