"""Long-running operations of the Cloud TPU API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.longrunning import operations_pb2

from tpudash.emulator.errors import not_found
from tpudash.emulator.messages import Message, OperationMetadata

if TYPE_CHECKING:
    from tpudash.clock import Clock
    from tpudash.emulator.identifiers import Identifiers
    from tpudash.emulator.world.state_file import StateFile

_KIND = "operation"
_KEPT = 2_000


class Operations:
    """The table of operations; each change is written to the state file."""

    def __init__(self, clock: Clock, identifiers: Identifiers, state: StateFile) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._state = state
        self._table: dict[str, Message] = {}
        for name, value, _ in state.load(_KIND):
            self._table[name] = operations_pb2.Operation.FromString(value)

    def begin(self, parent: str, verb: str, target: str) -> Message:
        """Start an operation on a resource and return it, not done yet."""
        name = f"{parent}/operations/{self._identifiers.operation_id()}"
        operation = operations_pb2.Operation(name=name)
        metadata = OperationMetadata(target=target, verb=verb, api_version="v2")
        metadata.create_time.FromDatetime(self._clock.now())
        operation.metadata.Pack(metadata)
        self._table[name] = operation
        self._save(operation)
        self._drop_oldest()
        return operation

    def succeed(self, operation: Message, response: Message) -> None:
        """End an operation with its result."""
        operation.response.Pack(response)
        self._end(operation)

    def fail(self, operation: Message, status: Any) -> None:
        """End an operation with a google.rpc.Status."""
        operation.error.CopyFrom(status)
        self._end(operation)

    def _end(self, operation: Message) -> None:
        operation.done = True
        metadata = self.metadata(operation)
        metadata.end_time.FromDatetime(self._clock.now())
        operation.metadata.Pack(metadata)
        self._save(operation)

    @staticmethod
    def metadata(operation: Message) -> Message:
        """Return the unpacked OperationMetadata."""
        metadata = OperationMetadata()
        operation.metadata.Unpack(metadata)
        return metadata

    def get(self, name: str) -> Message:
        """Return an operation.

        Raises:
            ApiError: NOT_FOUND.
        """
        try:
            return self._table[name]
        except KeyError:
            raise not_found(name) from None

    def under(self, parent: str) -> list[Message]:
        """Return the operations of a location, oldest first."""
        project_prefix = parent.removesuffix("-") if parent.endswith("/-") else f"{parent}/"
        return [item for name, item in self._table.items() if name.startswith(project_prefix)]

    def unfinished(self, target: str) -> Message | None:
        """Return the newest running operation on a resource, if any."""
        for operation in reversed(self._table.values()):
            if not operation.done and self.metadata(operation).target == target:
                return operation
        return None

    def all_unfinished(self) -> list[Message]:
        """Return every running operation."""
        return [operation for operation in self._table.values() if not operation.done]

    def mark(self, operation: Message, version: str) -> None:
        """Note by which version of the API an operation was begun."""
        metadata = self.metadata(operation)
        metadata.api_version = version
        operation.metadata.Pack(metadata)
        self._save(operation)

    def request_cancel(self, name: str) -> None:
        """Note that someone wants the operation cancelled; it is best effort and runs on."""
        operation = self.get(name)
        if operation.done:
            return
        metadata = self.metadata(operation)
        metadata.cancel_requested = True
        operation.metadata.Pack(metadata)
        self._save(operation)

    def delete(self, name: str) -> None:
        """Forget an operation."""
        self.get(name)
        del self._table[name]
        self._state.remove(_KIND, name)

    def _save(self, operation: Message) -> None:
        self._state.put(_KIND, operation.name, operation.SerializeToString())

    def _drop_oldest(self) -> None:
        excess = len(self._table) - _KEPT
        if excess <= _KEPT // 10:
            return
        finished = [name for name, item in self._table.items() if item.done]
        for name in finished[:excess]:
            self.delete(name)
