"""Looks for a newer export, and lets it take the place of the one that is served."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from trainer.faults import TrainerError, one_line
from trainer.serve.exports import Export, find_exports, no_model
from trainer.serve.signatures import difference

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.events import EventWriter
    from trainer.serve.host import ModelHost
    from trainer.serve.servable import Servable


class Reloader:
    """Loads the first export, then each newer one; what cannot be served never replaces anything.

    Args:
        folder: where the exports are.
        load: reads an export into memory.
        host: what serves it.
        events: where it tells what happens.
    """

    def __init__(
        self,
        folder: str,
        load: Callable[[Export], Servable],
        host: ModelHost,
        events: EventWriter,
    ) -> None:
        self._folder = folder
        self._load = load
        self._host = host
        self._events = events
        self._current: Servable | None = None
        self._refused: set[Export] = set()
        self._trouble = ""
        self._wake = threading.Event()
        self._stopped = False

    def load_first(self) -> None:
        """Load the newest export that can be loaded, and warm it up.

        Raises:
            TrainerError: there is none that could be served.
        """
        first: TrainerError | None = None
        for export in find_exports(self._folder):
            self._events.emit("stage", f"loading {export.path}", stage="load")
            try:
                servable = self._load(export)
            except TrainerError as fault:
                first = first or fault
                self._refuse(export, fault)
                continue
            self._events.emit("stage", "warming up", stage="warm_up")
            self._take_up(servable)
            return
        if first is not None:
            raise first

    def watch(self, interval_s: float) -> None:
        """Look for a newer export each `interval_s` seconds, until `stop`; blocks."""
        while not self._stopped:
            self._wake.wait(interval_s)
            self._wake.clear()
            if not self._stopped:
                self.look()

    def stop(self) -> None:
        """Stop looking."""
        self._stopped = True
        self._wake.set()

    def look(self) -> bool:
        """Take up a newer export if there is one. Returns whether it did."""
        try:
            found = find_exports(self._folder)
        except TrainerError as fault:
            self._tell_trouble(fault)
            return False
        self._trouble = ""
        newer = (each for each in found if each not in self._refused and self._is_newer(each))
        return any(self._try(export) for export in newer)

    def _try(self, export: Export) -> bool:
        try:
            servable = self._load(export)
            self._check_fits(servable)
            self._take_up(servable)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it, the old one serves on
            self._refuse(export, error)
            return False
        return True

    def _is_newer(self, export: Export) -> bool:
        """Whether an export is of a later version, or the same one written anew."""
        known = self._current.export if self._current else export
        return export.version > known.version or (
            export.version == known.version and export.stamp != known.stamp
        )

    def _check_fits(self, servable: Servable) -> None:
        found = difference(self._current.signatures, servable.signatures) if self._current else ""
        if found:
            raise no_model(
                f"it is another model: {found}", "serve it from another folder under another name"
            )

    def _take_up(self, servable: Servable) -> None:
        began = time.monotonic()
        servable.warm_up(self._warn)
        before = self._host.version
        self._current = servable
        self._host.take_up(servable)
        export = servable.export
        self._events.emit(
            "model",
            f"serving version {export.version} of {self._host.name}"
            + (f" instead of {before}" if before is not None else ""),
            model=self._host.name,
            version=export.version,
            path=export.path,
            previous=before,
            load_s=round(servable.load_s, 3),
            warm_up_s=round(time.monotonic() - began, 3),
            signatures={name: _shapes(servable, name) for name in servable.signatures},
        )

    def _refuse(self, export: Export, error: Exception) -> None:
        self._refused.add(export)
        self._host.meters.reload_failures.inc()
        detail = error.detail if isinstance(error, TrainerError) else f"{error!r}"
        hint = error.hint if isinstance(error, TrainerError) else "export it again"
        self._warn(
            f"version {export.version} is not taken up: {detail} ({hint})"
            + (f"; version {self._host.version} serves on" if self._current else "")
        )

    def _tell_trouble(self, fault: TrainerError) -> None:
        if fault.detail != self._trouble:
            self._trouble = fault.detail
            self._warn(f"no newer export can be looked for: {fault.detail}")

    def _warn(self, text: str) -> None:
        self._events.emit("warning", one_line(text), severity="WARNING")


def _shapes(servable: Servable, name: str) -> dict[str, dict[str, str]]:
    signature = servable.signatures[name]
    return {
        "inputs": {key: tensor.describe() for key, tensor in signature.inputs.items()},
        "outputs": {key: tensor.describe() for key, tensor in signature.outputs.items()},
    }
