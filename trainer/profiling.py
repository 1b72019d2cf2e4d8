"""A trace of a few steps for TensorBoard's or XProf's profiler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from trainer.faults import one_line

if TYPE_CHECKING:
    from trainer.events import EventWriter


class TraceError(Exception):
    """The framework could not trace; the text says why."""


class Tracer(Protocol):
    """A framework's way to write a trace."""

    def start(self, folder: str) -> None:
        """Begin to trace into a folder. Raises `TraceError`."""
        ...

    def stop(self, folder: str) -> str | None:
        """End the trace and return its file, or None if there is none. Raises `TraceError`."""
        ...


class Profiler:
    """Traces the steps asked for, once.

    Args:
        wanted: first step and number of steps, or None for no trace.
        model_dir: the trace goes to `<model_dir>/profile`.
        events: told where the trace lies, or why there is none.
        tracer: writes it.
    """

    def __init__(
        self,
        wanted: tuple[int, int] | None,
        model_dir: str,
        events: EventWriter,
        tracer: Tracer,
    ) -> None:
        self._wanted = wanted
        self._tracer = tracer
        self._folder = f"{model_dir.rstrip('/')}/profile"
        self._events = events
        self._running = False

    def boundary(self, step: int) -> int | None:
        """Return the next step at which the trace begins or ends."""
        if self._wanted is None:
            return None
        first, count = self._wanted
        return next((each for each in (first, first + count) if each > step), None)

    def at(self, step: int) -> None:
        """Begin or end the trace if it is time for that; called between device calls."""
        if self._wanted is None:
            return
        first, count = self._wanted
        if self._running and step >= first + count:
            self.stop(step)
        elif not self._running and step > first:
            self._warn(f"step {first} is done already, so it is not traced")
            self._wanted = None
        elif step == first:
            self._start()

    def _start(self) -> None:
        try:
            self._tracer.start(self._folder)
        except TraceError as error:
            self._warn(f"the profiler cannot be started: {one_line(str(error), 200)}")
            self._wanted = None
            return
        self._running = True

    def stop(self, step: int) -> None:
        """End a trace that runs, and tell its file."""
        if not self._running or self._wanted is None:
            return
        first, _ = self._wanted
        self._running, self._wanted = False, None
        try:
            path = self._tracer.stop(self._folder)
        except TraceError as error:
            self._warn(f"the trace was not written: {one_line(str(error), 200)}")
            return
        if path is None:
            self._warn("the profiler wrote no trace")
            return
        self._events.emit(
            "profile",
            f"traced steps {first} to {step - 1}: {path}",
            step=step,
            first_step=first,
            steps=step - first,
            path=path,
            hint=f"look at it with: pip install tensorboard-plugin-profile; "
            f"tensorboard --logdir {self._folder}",
        )

    def _warn(self, message: str) -> None:
        self._events.emit("warning", f"--profile: {message}", severity="WARNING")
