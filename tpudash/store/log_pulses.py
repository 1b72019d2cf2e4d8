"""The heartbeat of each worker: when it was heard last, its last step, how much it said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tpudash.domain.log import Severity
from tpudash.store.log_lines import RANK_MASK, RANKS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpudash.domain.log import LogEntry
    from tpudash.store.log_lines import LogSource

MOST_PULSES: Final = 8_192
_ERROR: Final = RANKS[Severity.ERROR]


@dataclass(slots=True, eq=False)
class Pulse:
    """What was heard of one worker.

    Attributes:
        last_micros: The time of its newest line, in microseconds since the epoch.
        step: The step that it named last, or None.
        step_micros: When it did, or 0.
        last_text: The beginning of its newest line.
    """

    node_id: str
    worker_id: str
    run: str | None
    attempt: int | None
    last_micros: int = 0
    lines: int = 0
    errors: int = 0
    step: int | None = None
    step_micros: int = 0
    last_text: str = ""


class LogPulses:
    """Keeps a pulse for each worker, of at most so many."""

    def __init__(self) -> None:
        self._pulses: dict[tuple[str, str], Pulse] = {}
        self._of_source: list[Pulse] = []

    def __iter__(self) -> Iterator[Pulse]:
        return iter(self._pulses.values())

    def add_source(self, source: LogSource) -> None:
        """Hear of a new source; they come in the order of their numbers."""
        key = (source.node_id, source.worker_id)
        pulse = self._pulses.get(key)
        if pulse is None:
            pulse = Pulse(source.node_id, source.worker_id, source.run, source.attempt)
            if len(self._pulses) < MOST_PULSES:
                self._pulses[key] = pulse
        pulse.run, pulse.attempt = source.run or pulse.run, source.attempt or pulse.attempt
        self._of_source.append(pulse)

    def beat(self, source: int, micros: int, text: str, mark: int) -> None:
        """Note a line."""
        pulse = self._of_source[source]
        pulse.lines += 1
        if mark & RANK_MASK >= _ERROR:
            pulse.errors += 1
        if micros >= pulse.last_micros:
            pulse.last_micros = micros
            pulse.last_text = text if len(text) <= 200 else text[:200]

    def note_step(self, source: int, micros: int, entry: LogEntry) -> None:
        """Note the step that an event names."""
        step = entry.payload.get("step") if entry.payload else None
        pulse = self._of_source[source]
        if isinstance(step, int) and not isinstance(step, bool) and micros >= pulse.step_micros:
            pulse.step, pulse.step_micros = step, micros
