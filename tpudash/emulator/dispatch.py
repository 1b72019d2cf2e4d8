"""One call of a service's table, whatever transport it came over: counted, faulted, answered."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from google.rpc import code_pb2

from tpudash.emulator.errors import ApiError, make_status

if TYPE_CHECKING:
    from tpudash.emulator.counters import CallCounters
    from tpudash.emulator.faults import Faults
    from tpudash.emulator.rpc import Call, Method

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """Carries calls out for every face, so that all see the same faults and counters."""

    faults: Faults
    counters: CallCounters

    async def unary(self, method: Method, request: Any, call: Call) -> Any:
        """Answer one call.

        Raises:
            Exception: An ApiError for a refusal; anything else is a defect. `status_of` turns
                both into a status.
        """
        name = call.method
        self.counters.count(name, mutating=method.mutating)
        await self.faults.before(name, request)
        response = await method.function(request, call)  # type: ignore[misc]
        self.faults.after(name, request)
        return self.faults.shape(name, request, response)


def status_of(error: Exception, method: str) -> Any:
    """Return the google.rpc.Status that the caller of a method is told; a defect is logged."""
    if isinstance(error, ApiError):
        return error.status
    _log.error("defect while answering %s", method, exc_info=error)
    return make_status(code_pb2.INTERNAL, f"Internal error encountered in {method}.")
