"""What is known of models that are served: the newest figures of each, and those before."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from tpudash.domain.serving import ServingFigures, ServingKind, ServingLimits
from tpudash.store.training_curve import number_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tpudash.domain.log import LogEntry

MAX_TARGETS: Final = 100
MAX_POINTS: Final = 1_000
_MOST_CODES: Final = 10
_LONGEST_WORD: Final = 60


class ServingBook:
    """The newest figures of each target, in the order in which they were first heard of.

    Attributes:
        limits: From where on a model is served badly.
    """

    def __init__(self) -> None:
        self.limits = ServingLimits()
        self._found: dict[str, deque[ServingFigures]] = {}

    def add(self, figures: Iterable[ServingFigures]) -> frozenset[str]:
        """Take figures in, in any order; returns the keys of the targets that have new ones."""
        changed = set()
        for one in figures:
            known = self._found.get(one.key)
            if known is None:
                if len(self._found) >= MAX_TARGETS:
                    self._found.pop(next(iter(self._found)))
                known = self._found[one.key] = deque(maxlen=MAX_POINTS)
            if known and one.time <= known[-1].time:
                continue
            known.append(one)
            changed.add(one.key)
        return frozenset(changed)

    def latest(self) -> tuple[ServingFigures, ...]:
        """Return the newest figures of each target."""
        return tuple(known[-1] for known in self._found.values())

    def of(self, kind: ServingKind, name: str) -> tuple[ServingFigures, ...]:
        """Return the figures of one target, oldest first."""
        return tuple(self._found.get(f"{kind}:{name}", ()))


def served_in(entries: Iterable[LogEntry]) -> Iterator[ServingFigures]:
    """Yield the figures in the `serve` events of runs; what is not a number is left out."""
    found = [entry for entry in entries if entry.run and entry.event == "serve"]
    for entry in sorted(found, key=lambda one: one.timestamp):
        yield _figures(entry)


def _figures(entry: LogEntry) -> ServingFigures:
    payload = entry.payload or {}
    ready = payload.get("ready")
    rate = number_in(payload, "requests_per_second")
    errors = _errors(payload.get("errors_per_second"))
    return ServingFigures(
        ServingKind.RUN,
        entry.run or "",
        entry.timestamp,
        is_ready=ready if isinstance(ready, bool) else None,
        state=_word(payload, "state"),
        model=_word(payload, "model"),
        version=_word(payload, "version"),
        requests_per_second=rate,
        latency_p50_s=number_in(payload, "latency_p50_s"),
        latency_p99_s=number_in(payload, "latency_p99_s"),
        errors_per_second=errors,
        error_share=number_in(payload, "error_fraction"),
        batch_size=number_in(payload, "batch_size_mean"),
        queue_depth=number_in(payload, "queue_depth"),
        in_flight=number_in(payload, "in_flight"),
    )


def _word(payload: Mapping[str, Any], key: str) -> str:
    value = payload.get(key)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)[:_LONGEST_WORD] if isinstance(value, str | int) else ""


def _errors(told: Any) -> dict[str, float]:
    if not isinstance(told, dict):
        return {}
    codes = [str(code)[:8] for code in list(told)[:_MOST_CODES]]
    numbers = ((code, number_in(told, code)) for code in codes)
    return {code: value for code, value in numbers if value}
