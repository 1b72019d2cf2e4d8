"""What a model takes and gives, in terms of NumPy: names, types and shapes of its tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_SIGNATURE = "serving_default"
Arrays = dict[str, "np.ndarray[Any, Any]"]


@dataclass(frozen=True)
class Tensor:
    """One input or output.

    Attributes:
        dtype: NumPy's type; `object` for strings of bytes.
        shape: its dimensions, None for those that may be any; None if even their number may.
        type_name: the name of the type in TensorFlow's enum, such as `DT_UINT8`.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...] | None
    type_name: str = ""

    @property
    def has_free_rows(self) -> bool:
        """Whether its first dimension may be any, so that requests can be put together."""
        return bool(self.shape) and self.shape is not None and self.shape[0] is None

    @property
    def row_shape(self) -> tuple[int | None, ...] | None:
        """The shape of one row, or None where that may be any."""
        return self.shape[1:] if self.shape else None

    def describe(self) -> str:
        """Return type and shape as text, such as `uint8 [n, 28, 28, 1]`."""
        kind = "string" if self.dtype == np.object_ else self.dtype.name
        if self.shape is None:
            return f"{kind} of any shape"
        dims = ("n" if dim is None else str(dim) for dim in self.shape)
        return f"{kind} [{', '.join(dims)}]"


@dataclass(frozen=True)
class Signature:
    """One function of a model."""

    name: str
    inputs: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]

    @property
    def batches(self) -> bool:
        """Whether rows of several requests may go through it together."""
        tensors = (*self.inputs.values(), *self.outputs.values())
        return all(tensor.has_free_rows for tensor in tensors)

    def difference(self, other: Signature) -> str:
        """Return how another signature breaks clients of this one, or ""."""
        for what, mine, theirs in (
            ("input", self.inputs, other.inputs),
            ("output", self.outputs, other.outputs),
        ):
            for name in sorted({*mine, *theirs}):
                before, after = mine.get(name), theirs.get(name)
                if before != after:
                    old = before.describe() if before else "nothing"
                    new = after.describe() if after else "nothing"
                    return f"{what} {name} of {self.name} is {new} instead of {old}"
        return ""


def difference(old: Mapping[str, Signature], new: Mapping[str, Signature]) -> str:
    """Return how a model breaks clients of the one that it is to replace, or ""."""
    for name, signature in old.items():
        if name not in new:
            return f"it has no signature {name}"
        found = signature.difference(new[name])
        if found:
            return found
    return ""
