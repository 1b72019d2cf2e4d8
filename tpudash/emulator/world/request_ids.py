"""What was asked for under a `request_id`, so that asking again does it once.

Source: google/cloud/tpu/v2/cloud_tpu.proto, `CreateQueuedResourceRequest.request_id`, and
https://google.aip.dev/155.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tpudash.emulator.errors import ApiError, invalid_field

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tpudash.clock import Clock
    from tpudash.emulator.messages import Message
    from tpudash.emulator.world.operations import Operations
    from tpudash.emulator.world.state_file import StateFile

_KIND = "request-id"
_KEPT = timedelta(hours=1)
_MOST = 10_000


@dataclass(frozen=True, slots=True)
class _Asked:
    """One request that bore an id."""

    operation: str
    content: str
    """Digest of the request, which may not be another one under the same id."""

    at: datetime


class RequestIds:
    """Remembers the operation of each `request_id` for an hour, over restarts too."""

    def __init__(self, clock: Clock, operations: Operations, state: StateFile) -> None:
        self._clock = clock
        self._operations = operations
        self._state = state
        self._table: dict[str, _Asked] = {}
        for key, value, _ in state.load(_KIND):
            fields = json.loads(value)
            at = datetime.fromtimestamp(fields["at"], UTC)
            self._table[key] = _Asked(fields["operation"], fields["content"], at)

    async def once(self, method: str, request: Any, begin: Callable[[], Awaitable[Message]]) -> Any:
        """Return the operation that a request began, or begin it.

        Args:
            method: The RPC; ids of different RPCs are apart.
            request: Its message; without a `request_id` it is begun whenever it comes.
            begin: Begins it.

        Raises:
            ApiError: It is refused, or the id stands for another request.
        """
        wanted = getattr(request, "request_id", "")
        if not wanted:
            return await begin()
        key = f"{method} {wanted}"
        content = hashlib.sha256(request.SerializeToString(deterministic=True)).hexdigest()
        asked = self._table.get(key)
        if asked is not None and self._clock.now() - asked.at < _KEPT:
            if asked.content != content:
                raise invalid_field("request_id", "was used for another request")
            try:
                return self._operations.get(asked.operation)
            except ApiError:
                pass  # the operation is forgotten, and with it what it was begun for
        operation = await begin()
        self._remember(key, _Asked(operation.name, content, self._clock.now()))
        return operation

    def _remember(self, key: str, asked: _Asked) -> None:
        self._table.pop(key, None)
        self._table[key] = asked
        fields = {
            "operation": asked.operation,
            "content": asked.content,
            "at": asked.at.timestamp(),
        }
        self._state.put(_KIND, key, json.dumps(fields).encode())
        while len(self._table) > _MOST:
            oldest = next(iter(self._table))
            del self._table[oldest]
            self._state.remove(_KIND, oldest)
