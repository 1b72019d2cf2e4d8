"""Change sets of the store, coalesced, so that the screen is told at most four times a second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tpudash.store.changes import NOTHING, ChangeSet

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.clock import Clock
    from tpudash.store.store import Store

INTERVAL_S: Final = 0.25
SETTLE_S: Final = 0.02
"""The first change after a quiet time waits this long for others of the same burst."""


class ChangeFeed:
    """Collects changes and delivers them as one.

    Args:
        deliver: Is given what changed, at most once in `INTERVAL_S`.
        later: Calls a function after some seconds, on this event loop.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        deliver: Callable[[ChangeSet], None],
        later: Callable[[float, Callable[[], None]], Any],
    ) -> None:
        self._clock = clock
        self._deliver = deliver
        self._later = later
        self._pending = NOTHING
        self._is_due = False
        self._delivered_at = -INTERVAL_S
        self._end = store.subscribe(self._collect)

    def close(self) -> None:
        """Hear of nothing any more."""
        self._end()
        self._pending = NOTHING

    def _collect(self, changes: ChangeSet) -> None:
        self._pending = self._pending.merge(changes)
        if self._is_due:
            return
        self._is_due = True
        quiet = self._clock.monotonic() - self._delivered_at
        self._later(max(SETTLE_S, INTERVAL_S - quiet), self._flush)

    def _flush(self) -> None:
        self._is_due = False
        changes, self._pending = self._pending, NOTHING
        if changes:
            self._delivered_at = self._clock.monotonic()
            self._deliver(changes)
