"""What is served now: the model, its queue, and whether requests are answered."""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING, Any

from trainer.serve.bodies import BodyReader
from trainer.serve.numbers import RequestError

if TYPE_CHECKING:
    from trainer.serve.batcher import Batcher
    from trainer.serve.meters import Meters
    from trainer.serve.servable import Servable
    from trainer.serve.signatures import Arrays, Tensor

_MOST_TRACEBACKS = 20


class ModelHost:
    """Holds the model that is served; another one takes its place between two calls.

    Attributes:
        draining: set when the process is about to end.
        in_flight: requests that are not answered yet.
    """

    def __init__(self, name: str, meters: Meters) -> None:
        self.name = name
        self.meters = meters
        self.draining = False
        self.in_flight = 0
        self._batcher: Batcher | None = None
        self._current: _Current | None = None
        self._tracebacks = 0

    @property
    def batcher(self) -> Batcher:
        """The queue.

        Raises:
            RequestError: there is none yet.
        """
        if self._batcher is None:
            raise RequestError(503, "the model is still loading", 1)
        return self._batcher

    @property
    def state(self) -> str:
        """`loading`, `ready`, `draining` or `dead`."""
        if self.draining:
            return "draining"
        if self._current is None or self._batcher is None:
            return "loading"
        return "ready" if self._batcher.alive else "dead"

    @property
    def alive(self) -> bool:
        """Whether the model's thread runs, or is still to begin."""
        return self._batcher is None or self._batcher.alive

    @property
    def version(self) -> int | None:
        """The version that is served, or None before there is one."""
        return self._current.servable.export.version if self._current else None

    def open(self, batcher: Batcher) -> None:
        """Begin to answer."""
        self._batcher = batcher

    def take_up(self, servable: Servable) -> None:
        """Serve this model from the next call on; may come from another thread."""
        self._current = _Current(servable)

    def call(self, name: str, arrays: Arrays) -> Arrays:
        """Run a signature of whatever is current."""
        if self._current is None:
            raise RequestError(503, "the model is still loading", 1)
        return self._current.servable.call(name, arrays)

    def servable_for(self, name: str, version: int | None) -> _Current:
        """Return the current model if it is the one that is asked for.

        Raises:
            RequestError: it is another one, or there is none yet.
        """
        self.check_name(name, version)
        if self._current is None:
            raise RequestError(503, "the model is still loading", 1)
        return self._current

    def check_name(self, name: str, version: int | None) -> None:
        """Raise a RequestError unless this model is meant."""
        wanted = "Latest" if version is None else "Specific"
        right_version = version is None or self._current is None or version == self.version
        if name == self.name and right_version:
            return
        asked = name if version is None else f"{name}, {version}"
        raise RequestError(
            404,
            f"Servable not found for request: {wanted}({asked}); {self.name} is served"
            + (f" in version {self.version}" if self.version is not None else ""),
        )

    def version_status(self) -> dict[str, Any]:
        """Return the status in the shape of TensorFlow Serving."""
        states = {"loading": "LOADING", "ready": "AVAILABLE", "draining": "UNLOADING"}
        version = {
            "version": str(self.version if self.version is not None else 0),
            "state": states.get(self.state, "END"),
            "status": {"error_code": "OK", "error_message": ""},
        }
        return {"model_version_status": [version]}

    def metadata(self) -> dict[str, Any]:
        """Return the signatures in the shape of TensorFlow Serving."""
        if self._current is None:
            raise RequestError(503, "the model is still loading", 1)
        signatures = {
            name: {
                "inputs": {key: _about(tensor) for key, tensor in signature.inputs.items()},
                "outputs": {key: _about(tensor) for key, tensor in signature.outputs.items()},
                "method_name": "tensorflow/serving/predict",
            }
            for name, signature in self._current.servable.signatures.items()
        }
        spec = {"name": self.name, "signature_name": "", "version": str(self.version)}
        return {
            "model_spec": spec,
            "metadata": {"signature_def": {"signature_def": signatures}},
        }

    def refresh_gauges(self) -> None:
        """Set the gauges that nobody counts up and down."""
        self.meters.in_flight.set(self.in_flight)
        self.meters.queue_depth.set(self._batcher.queued_rows if self._batcher else 0)
        self.meters.ready.set(1 if self.state == "ready" else 0)
        self.meters.version.set(self.version or 0)

    def tell_defect(self, error: Exception) -> None:
        """Put the traceback of a defect on stderr, a bounded number of times."""
        self._tracebacks += 1
        if self._tracebacks <= _MOST_TRACEBACKS:
            traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)


class _Current:
    """A model and the reader of its bodies, which change together."""

    def __init__(self, servable: Servable) -> None:
        self.servable = servable
        self.reader = BodyReader(servable.signatures)


def _about(tensor: Tensor) -> dict[str, Any]:
    dims = [{"size": str(-1 if dim is None else dim), "name": ""} for dim in tensor.shape or ()]
    return {
        "dtype": tensor.type_name,
        "tensor_shape": {"dim": dims, "unknown_rank": tensor.shape is None},
        "name": tensor.name,
    }
