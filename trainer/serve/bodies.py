"""Bodies of the REST API of TensorFlow Serving: JSON to arrays and back.

After https://www.tensorflow.org/tfx/serving/api_rest: `instances` is the row format, `inputs` the
column format; `{"b64": ...}` stands for bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from trainer.faults import one_line
from trainer.serve.numbers import NumbersOnly, RequestError, to_array
from trainer.serve.signatures import DEFAULT_SIGNATURE, Arrays, Signature, Tensor

if TYPE_CHECKING:
    from collections.abc import Mapping

_KNOWN_KEYS = frozenset({"signature_name", "instances", "inputs"})
_OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS


@dataclass(frozen=True)
class Ask:
    """What a request asks of the model.

    Attributes:
        rows: number of instances; 1 where the signature does not batch.
        by_rows: whether the answer lists one prediction for each instance.
    """

    signature: Signature
    arrays: Arrays
    rows: int
    by_rows: bool


class BodyReader:
    """Reads the bodies of requests to one model.

    Args:
        signatures: those of the model, by name.
    """

    def __init__(self, signatures: Mapping[str, Signature]) -> None:
        self._signatures = signatures
        self._default = self._signatures.get(DEFAULT_SIGNATURE) or (
            next(iter(signatures.values())) if len(signatures) == 1 else None
        )
        self._quick = _quick_reader(self._default)

    def read(self, body: bytes) -> Ask:
        """Return what a body asks for.

        Raises:
            RequestError: it is malformed, or does not fit the model.
        """
        if self._quick is not None and self._default is not None:
            array = self._quick.read(body)
            if array is not None:
                name = next(iter(self._default.inputs))
                return Ask(self._default, {name: array}, len(array), by_rows=True)
        return self._read_any(body)

    def _read_any(self, body: bytes) -> Ask:
        try:
            loaded = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise RequestError(400, f"JSON Parse error: {one_line(str(error), 200)}") from error
        if not isinstance(loaded, dict):
            raise RequestError(400, "the body is not a JSON object")
        strange = next((key for key in loaded if key not in _KNOWN_KEYS), None)
        if strange is not None:
            raise RequestError(
                400, f"unknown key {strange[:60]!r}; known are instances, inputs, signature_name"
            )
        signature = self._signature(loaded.get("signature_name"))
        if "instances" in loaded and "inputs" in loaded:
            raise RequestError(400, "expected 'instances' or 'inputs', not both")
        if "instances" in loaded:
            return _by_rows(signature, loaded["instances"])
        if "inputs" in loaded:
            return _by_columns(signature, loaded["inputs"])
        raise RequestError(400, "neither 'instances' nor 'inputs' is given")

    def _signature(self, name: Any) -> Signature:
        if name is None:
            if self._default is None:
                raise RequestError(400, f"give signature_name, one of {self._names()}")
            return self._default
        found = self._signatures.get(name) if isinstance(name, str) else None
        if found is None:
            given = one_line(str(name), 60)
            raise RequestError(400, f"no signature {given!r}; the model has {self._names()}")
        return found

    def _names(self) -> str:
        return ", ".join(sorted(self._signatures))


def _quick_reader(signature: Signature | None) -> NumbersOnly | None:
    if signature is None or not signature.batches or len(signature.inputs) != 1:
        return None
    (tensor,) = signature.inputs.values()
    row = tensor.row_shape
    if row is None or tensor.dtype.kind not in "uif" or any(not dim for dim in row):
        return None
    return NumbersOnly(tuple(dim for dim in row if dim), tensor.dtype)


def _by_rows(signature: Signature, instances: Any) -> Ask:
    if not isinstance(instances, list):
        raise RequestError(400, "'instances' is not a list")
    if not instances:
        raise RequestError(400, "'instances' is empty")
    named = isinstance(instances[0], dict) and set(instances[0]) != {"b64"}
    arrays = {
        name: to_array(_column(instances, name, signature, named=named), tensor)
        for name, tensor in signature.inputs.items()
    }
    return Ask(signature, arrays, len(instances) if signature.batches else 1, by_rows=True)


def _column(instances: list[Any], name: str, signature: Signature, *, named: bool) -> list[Any]:
    """Return the values of one input in all instances."""
    inputs = signature.inputs
    if not named:
        if len(inputs) > 1:
            raise RequestError(
                400, f"each instance must be an object with the inputs {', '.join(inputs)}"
            )
        return instances
    for instance in instances:
        if not isinstance(instance, dict) or instance.keys() != inputs.keys():
            raise RequestError(
                400, f"each instance must be an object with exactly the inputs {', '.join(inputs)}"
            )
    return [instance[name] for instance in instances]


def _by_columns(signature: Signature, inputs: Any) -> Ask:
    tensors = signature.inputs
    if not isinstance(inputs, dict) or set(inputs) == {"b64"}:
        if len(tensors) != 1:
            raise RequestError(400, f"'inputs' must be an object with {', '.join(tensors)}")
        inputs = {next(iter(tensors)): inputs}
    if inputs.keys() != tensors.keys():
        raise RequestError(400, f"'inputs' must be an object with exactly {', '.join(tensors)}")
    arrays = {name: to_array(inputs[name], tensor) for name, tensor in tensors.items()}
    if not signature.batches:
        return Ask(signature, arrays, 1, by_rows=False)
    lengths = {len(array) for array in arrays.values()}
    if len(lengths) != 1:
        raise RequestError(400, "the inputs have different numbers of rows")
    rows = lengths.pop()
    if rows == 0:
        raise RequestError(400, "'inputs' is empty")
    return Ask(signature, arrays, rows, by_rows=False)


def answer(ask: Ask, outputs: Arrays) -> bytes:
    """Return the body of an answer. What JSON cannot say (NaN, infinity) becomes null.

    Raises:
        RequestError: the outputs have no rows, but were asked for by rows.
    """
    shown = {
        name: _shown(array, ask.signature.outputs.get(name)) for name, array in outputs.items()
    }
    single = next(iter(shown.values())) if len(shown) == 1 else None
    if not ask.by_rows:
        return orjson.dumps({"outputs": shown if single is None else single}, option=_OPTIONS)
    rows = len(next(iter(ask.arrays.values())))
    if any(np.ndim(array) == 0 or len(array) != rows for array in outputs.values()):
        raise RequestError(400, "the outputs do not come by rows: ask with 'inputs'")
    if single is not None:
        return orjson.dumps({"predictions": single}, option=_OPTIONS)
    names = tuple(shown)
    predictions = [dict(zip(names, row, strict=True)) for row in zip(*shown.values(), strict=True)]
    return orjson.dumps({"predictions": predictions}, option=_OPTIONS)


def _shown(array: np.ndarray[Any, Any], tensor: Tensor | None) -> Any:
    """Return an output as what orjson can write."""
    if array.dtype == np.object_:
        return _texts(
            array.tolist(), as_bytes=tensor is not None and tensor.name.endswith("_bytes")
        )
    if array.dtype.kind == "V" or array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    return np.ascontiguousarray(array) if array.ndim else array.item()


def _texts(value: Any, *, as_bytes: bool) -> Any:
    if isinstance(value, list):
        return [_texts(each, as_bytes=as_bytes) for each in value]
    data = value if isinstance(value, bytes) else str(value).encode()
    if not as_bytes:
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    import base64

    return {"b64": base64.b64encode(data).decode()}
