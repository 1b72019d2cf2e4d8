"""A loaded model. The only part of the server that runs TensorFlow."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import types_pb2 as _TYPES  # noqa: N812 - a table of names

from trainer.faults import TrainerError, classify, one_line
from trainer.serve.exports import no_model
from trainer.serve.signatures import DEFAULT_SIGNATURE, Arrays, Signature, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trainer.serve.exports import Export

_HIDDEN = "__"
"""Signatures of TensorFlow's own, such as `__saved_model_init_op`."""


class InputError(Exception):
    """The model refuses what it was given; the text says why, in one line."""


class Servable:
    """One version of a model in memory, ready to be called from any one thread at a time.

    Args:
        export: where it is.
        device: TensorFlow's name of the device, such as `/device:TPU:0`, or "" for the CPU.
        sizes: numbers of rows that batches are filled up to, ascending; empty for any.
        max_batch: most rows in one call.

    Raises:
        TrainerError: it is damaged or has nothing to serve.
    """

    def __init__(
        self, export: Export, *, device: str, sizes: tuple[int, ...], max_batch: int
    ) -> None:
        began = time.monotonic()
        self.export = export
        self._device = device
        self._sizes = sizes
        self._max_batch = max_batch
        self._functions, self.signatures, self._loaded = _load(export, device)
        self._types = {
            name: {
                key: _TYPES.DataType.Value(tensor.type_name) for key, tensor in one.inputs.items()
            }
            for name, one in self.signatures.items()
        }
        self.load_s = time.monotonic() - began

    def warm_up(self, tell: Callable[[str], None]) -> None:
        """Call each signature once for each size, so that no request waits for that."""
        for name, signature in self.signatures.items():
            try:
                for rows in self._sizes or padded_sizes(self._max_batch):
                    self.call(name, _zeros(signature, rows))
                    if not signature.batches:
                        break
            except InputError as error:
                tell(f"{name} could not be tried with zeros: {error}")

    def call(self, name: str, arrays: Arrays) -> Arrays:
        """Run one signature.

        Args:
            name: of the signature.
            arrays: its inputs; with rows in front if the signature batches.

        Raises:
            InputError: the model refuses the values.
        """
        signature = self.signatures[name]
        if not signature.batches:
            return self._run(name, arrays)
        rows = len(next(iter(arrays.values())))
        if rows <= self._max_batch:
            return self._padded(name, arrays, rows)
        parts = []
        for start in range(0, rows, self._max_batch):
            part = {key: array[start : start + self._max_batch] for key, array in arrays.items()}
            parts.append(self._padded(name, part, len(next(iter(part.values())))))
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}

    def _padded(self, name: str, arrays: Arrays, rows: int) -> Arrays:
        size = next((size for size in self._sizes if size >= rows), rows)
        if size == rows:
            return self._run(name, arrays)
        filled = {key: _fill(array, size) for key, array in arrays.items()}
        return {key: array[:rows] for key, array in self._run(name, filled).items()}

    def _run(self, name: str, arrays: Arrays) -> Arrays:
        types = self._types[name]
        try:
            with tf.device(self._device or "/device:CPU:0"):
                given = {key: tf.constant(array, dtype=types[key]) for key, array in arrays.items()}
                outputs = self._functions[name](**given)
                return {key: np.asarray(value.numpy()) for key, value in outputs.items()}
        except (tf.errors.InvalidArgumentError, ValueError, TypeError) as error:
            raise InputError(one_line(str(error), 300)) from error


def _load(
    export: Export, device: str
) -> tuple[dict[str, Callable[..., Any]], dict[str, Signature], Any]:
    try:
        with tf.device(device or "/device:CPU:0"):
            loaded = tf.saved_model.load(export.path)
        functions = {
            name: tf.function(function, jit_compile=True) if device else function
            for name, function in getattr(loaded, "signatures", {}).items()
            if not name.startswith(_HIDDEN)
        }
        found = {name: _signature(name, loaded.signatures[name]) for name in functions}
    except Exception as error:
        raise _unreadable(export, error) from error
    if not found:
        raise no_model(
            f"{export.path} has no signature that could be served",
            "export it with signatures: model.export(DIR) in Keras",
        )
    first = dict(sorted(found.items(), key=lambda item: item[0] != DEFAULT_SIGNATURE))
    return functions, first, loaded


def _unreadable(export: Export, error: Exception) -> TrainerError:
    known = classify(str(error))
    fault = no_model(
        f"the model in {export.path} cannot be loaded: {type(error).__name__}: {error}",
        known.hint if known else "the files are damaged or of a newer TensorFlow: export it again",
    )
    fault.error_class = known.error_class if known else fault.error_class
    return fault


def _signature(name: str, function: Any) -> Signature:
    inputs: Mapping[str, Any] = function.structured_input_signature[1]
    outputs: Mapping[str, Any] = function.structured_outputs
    return Signature(
        name,
        {key: _tensor(key, spec) for key, spec in sorted(inputs.items())},
        {key: _tensor(key, spec) for key, spec in sorted(outputs.items())},
    )


def _tensor(name: str, spec: Any) -> Tensor:
    shape = None if spec.shape.rank is None else tuple(spec.shape.as_list())
    number = np.dtype(spec.dtype.as_numpy_dtype)
    return Tensor(name, number, shape, _TYPES.DataType.Name(spec.dtype.as_datatype_enum))


def padded_sizes(most: int) -> tuple[int, ...]:
    """Return the numbers of rows that batches are filled up to: powers of two, then the most."""
    sizes = [1]
    while sizes[-1] < most:
        sizes.append(min(2 * sizes[-1], most))
    return tuple(sizes)


def _fill(array: np.ndarray[Any, Any], rows: int) -> np.ndarray[Any, Any]:
    """Repeat the first row at the end: zeros might be values that the model refuses."""
    missing = np.repeat(array[:1], rows - len(array), axis=0)
    return np.concatenate([array, missing])


def _zeros(signature: Signature, rows: int) -> Arrays:
    arrays: Arrays = {}
    for tensor in signature.inputs.values():
        shape = [1 if dim is None else dim for dim in tensor.shape or ()]
        if signature.batches:
            shape[0] = rows
        empty: Any = b"" if tensor.dtype == np.object_ else 0
        arrays[tensor.name] = np.full(shape, empty, dtype=tensor.dtype)
    return arrays
