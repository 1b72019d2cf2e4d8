"""How long to wait after failures: longer each time, never the same for two clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from random import Random

FIRST_S: Final = 1.0
LONGEST_S: Final = 60.0
SPREAD: Final = 0.2


def jittered(seconds: float, random: Random) -> float:
    """Return a duration moved by up to a fifth either way, so that clients do not fall in step."""
    return seconds * (1 + random.uniform(-SPREAD, SPREAD))


def back_off(failures: int, random: Random) -> float:
    """Return seconds to wait after that many failures in a row, with jitter."""
    exponent = min(max(failures, 1) - 1, 10)
    return jittered(min(FIRST_S * 2**exponent, LONGEST_S), random)
