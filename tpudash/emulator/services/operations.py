"""`google.longrunning.Operations`, without WaitOperation: the Cloud TPU API has no such route."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from tpudash.emulator.errors import invalid_field
from tpudash.emulator.identifiers import parse_parent
from tpudash.emulator.rpc import Call, Method, Service
from tpudash.emulator.services.paging import take_page
from tpudash.emulator.services.versions import shown_in
from tpudash.emulator.world.operations import Operations

if TYPE_CHECKING:
    from tpudash.emulator.world.world import World

_Pb = operations_pb2
_FILTERS = {"": None, "done=true": True, "done:true": True, "done=false": False}


class OperationsService:
    """Answers for long-running operations."""

    def __init__(self, world: World) -> None:
        self._world = world

    def table(self) -> Service:
        """Return the service with all its methods."""
        empty = empty_pb2.Empty
        return Service(
            "google.longrunning.Operations",
            (
                Method("GetOperation", _Pb.GetOperationRequest, _Pb.Operation, self.get),
                Method(
                    "ListOperations",
                    _Pb.ListOperationsRequest,
                    _Pb.ListOperationsResponse,
                    self.list,
                ),
                Method(
                    "CancelOperation", _Pb.CancelOperationRequest, empty, self.cancel, mutating=True
                ),
                Method(
                    "DeleteOperation", _Pb.DeleteOperationRequest, empty, self.delete, mutating=True
                ),
            ),
        )

    async def get(self, request: Any, call: Call) -> Any:
        """Return an operation."""
        return self._shown(self._world.operations.get(request.name), call)

    @staticmethod
    def _shown(operation: Any, call: Call) -> Any:
        """Show an operation in the version that asks or, over gRPC, in that which began it."""
        begun = Operations.metadata(operation).api_version
        return shown_in(call.version or begun, operation)

    async def list(self, request: Any, call: Call) -> Any:
        """List the operations of a location; the filter knows `done=true` and `done=false`."""
        parse_parent(request.name)
        wanted = request.filter.replace(" ", "")
        if wanted not in _FILTERS:
            raise invalid_field("filter", "only done=true and done=false are known")
        done = _FILTERS[wanted]
        operations = [
            item
            for item in self._world.operations.under(request.name)
            if done is None or item.done is done
        ]
        operations.sort(key=lambda item: item.name)
        page, token = take_page(
            operations, request.page_size, request.page_token, default=500, maximum=1_000
        )
        shown = [self._shown(operation, call) for operation in page]
        return _Pb.ListOperationsResponse(operations=shown, next_page_token=token)

    async def cancel(self, request: Any, _: Call) -> Any:
        """Ask for the end of an operation."""
        self._world.operations.request_cancel(request.name)
        return empty_pb2.Empty()

    async def delete(self, request: Any, _: Call) -> Any:
        """Forget an operation."""
        self._world.operations.delete(request.name)
        return empty_pb2.Empty()
