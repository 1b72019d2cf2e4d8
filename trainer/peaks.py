"""Peak speed of TPU chips, to tell how much of it a model uses (MFU)."""

from __future__ import annotations

import re

_CHIP_TFLOPS = {
    "v2": 46.0,
    "v3": 123.0,
    "v4": 275.0,
    "v5litepod": 197.0,
    "v5p": 459.0,
    "v6e": 918.0,
}
"""bfloat16 TFLOP/s of a chip, from Google's pages of each TPU version (v2: from JAX's tables)."""
_COUNTED_IN_CORES = {"v2", "v3", "v4", "v5p"}


def peak_flops(accelerator_type: str) -> float | None:
    """Return the peak of all chips of a type such as v2-8, in FLOP/s; None if it is not known."""
    match = re.fullmatch(r"(v\d+[a-z]*)-(\d+)", accelerator_type)
    if match is None or match.group(1) not in _CHIP_TFLOPS:
        return None
    generation, number = match.group(1), int(match.group(2))
    chips = max(1, number // 2) if generation in _COUNTED_IN_CORES else number
    return chips * _CHIP_TFLOPS[generation] * 1e12
