"""Pixels of any usual form as uint8 [height, width, channels]."""

from __future__ import annotations

from typing import Any

import numpy as np

from trainer.faults import no_input

_SHAPES = "images of shape [n, height, width] or [n, height, width, 1 to 4] are needed"


def in_four_dimensions(what: str, array: Any) -> Any:
    """Return images as [n, height, width, channels], still of their own type.

    Raises:
        TrainerError: their shape is none of images.
    """
    if array.ndim == 2:
        side = round(array.shape[1] ** 0.5)
        if side and side * side == array.shape[1]:
            return array.reshape(-1, side, side, 1)
    if array.ndim == 3:
        array = array[..., np.newaxis]
    if array.ndim != 4 or array.shape[-1] not in (1, 2, 3, 4):
        raise no_input(f"{what}: images of shape {list(array.shape)}", _SHAPES)
    return array


def scale_of(what: str, array: Any) -> float:
    """Return what the pixels must be multiplied by to lie in 0 to 255.

    Args:
        what: named if they cannot be.
        array: pixels; booleans, numbers of 0 to 255, fractions of 0 to 1, or 16 bits.

    Raises:
        TrainerError: they are no pixels.
    """
    if array.dtype == np.uint8:
        return 1.0
    if array.dtype == np.bool_:
        return 255.0
    if array.dtype.kind not in "iuf":
        raise no_input(f"{what}: pixels of type {array.dtype}", "use numbers of 0 to 255")
    low, high = _range(what, array)
    if low >= 0 and array.dtype.kind == "f" and high <= 1:
        return 255.0
    if array.dtype == np.uint16 and high > 255:
        return 255.0 / 65535.0
    if low < 0 or high > 255:
        raise no_input(f"{what}: pixels from {low:g} to {high:g}", "use 0 to 255, or 0 to 1")
    return 1.0


def as_bytes(what: str, array: Any, scale: float) -> Any:
    """Return pixels as uint8.

    Raises:
        TrainerError: some are outside of what the scale is for.
    """
    if array.dtype == np.uint8:
        return array
    low, high = _range(what, array)
    if low < 0 or high * scale > 255.5:
        raise no_input(
            f"{what}: pixels from {low:g} to {high:g} where others are in 0 to {255 / scale:g}",
            "use 0 to 255 for all, or 0 to 1 for all",
        )
    return np.rint(array * np.float32(scale)).astype(np.uint8)


def _range(what: str, array: Any) -> tuple[float, float]:
    if not array.size:
        return 0.0, 0.0
    low, high = float(array.min()), float(array.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise no_input(f"{what}: pixels that are not finite", "use 0 to 255")
    return low, high


def without_alpha(pixels: Any) -> Any:
    """Return an image without its alpha channel, as it looks on white paper."""
    if pixels.shape[-1] not in (2, 4):
        return pixels
    share = pixels[..., -1:].astype(np.float32) / 255.0
    colours = pixels[..., :-1].astype(np.float32)
    return np.rint(colours * share + 255.0 * (1.0 - share)).astype(np.uint8)
