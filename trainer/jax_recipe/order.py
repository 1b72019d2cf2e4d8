"""Orders of examples as pure functions of seed and epoch, in NumPy.

Philox's raw numbers never change between NumPy's versions, unlike the permutations made of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def epoch_order(seed: int, epoch: int, count: int) -> Any:
    """Return the permutation of `count` examples of an epoch, int64 [count]."""
    keys = np.random.Philox(key=[seed, epoch]).random_raw(count)
    return np.argsort(keys, kind="stable")
