"""Work that goes on beside the training, one piece at a time."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


class Background(Generic[Result]):
    """Runs pieces of work in a thread, and keeps results until they are collected."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: threading.Thread | None = None
        self._results: deque[Result] = deque()
        self._failure: Exception | None = None

    def start(self, work: Callable[[], Result]) -> None:
        """Begin a piece of work, once the one before it is done."""
        self.wait()

        def run() -> None:
            try:
                result = work()
            except Exception as error:  # noqa: BLE001 - raised again by who collects
                self._failure = error
            else:
                self._results.append(result)

        self._thread = threading.Thread(target=run, name=self._name, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait for the end of the work that goes on."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def collect(self) -> list[Result]:
        """Return the results since the last call; raises what made a piece of work fail."""
        done: list[Result] = []
        while self._results:
            done.append(self._results.popleft())
        # What was done before the failure is told first.
        if not done and self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        return done
