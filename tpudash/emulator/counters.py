"""How often each method was called."""

from __future__ import annotations

from collections import Counter


class CallCounters:
    """Counts calls by full method name; what changes resources is counted apart.

    A call is counted when it arrives, whatever becomes of it.
    """

    def __init__(self) -> None:
        self.mutating: Counter[str] = Counter()
        self.reading: Counter[str] = Counter()

    def count(self, method: str, *, mutating: bool) -> None:
        """Add one call."""
        (self.mutating if mutating else self.reading)[method] += 1

    def reset(self) -> None:
        """Start again at zero."""
        self.mutating.clear()
        self.reading.clear()
