"""A server that speaks Google's protos and answers exactly as a test tells it, however hostile."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
from google.cloud import billing_v1, monitoring_v3, tpu_v2
from google.cloud.billing import budgets_v1
from google.cloud.location import locations_pb2
from google.cloud.logging_v2 import types as logging_types
from google.longrunning import operations_pb2
from google.protobuf import any_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from tests.emulator_fixture import node_name
from tpudash.clock import SystemClock
from tpudash.gateways.connection import Connection, ConnectionOptions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tpudash.gateways.protocols import Cloud

TPU = "/google.cloud.tpu.v2.Tpu"
LOGGING = "/google.logging.v2.LoggingServiceV2"
_OPERATION = operations_pb2.Operation

METHODS: dict[str, tuple[Any, Any]] = {
    f"{TPU}/ListNodes": (tpu_v2.ListNodesRequest, tpu_v2.ListNodesResponse),
    f"{TPU}/GetNode": (tpu_v2.GetNodeRequest, tpu_v2.Node),
    f"{TPU}/CreateNode": (tpu_v2.CreateNodeRequest, _OPERATION),
    f"{TPU}/DeleteNode": (tpu_v2.DeleteNodeRequest, _OPERATION),
    f"{TPU}/ListQueuedResources": (
        tpu_v2.ListQueuedResourcesRequest,
        tpu_v2.ListQueuedResourcesResponse,
    ),
    "/google.longrunning.Operations/GetOperation": (
        operations_pb2.GetOperationRequest,
        _OPERATION,
    ),
    "/google.cloud.location.Locations/ListLocations": (
        locations_pb2.ListLocationsRequest,
        locations_pb2.ListLocationsResponse,
    ),
    "/google.monitoring.v3.MetricService/ListTimeSeries": (
        monitoring_v3.ListTimeSeriesRequest,
        monitoring_v3.ListTimeSeriesResponse,
    ),
    f"{LOGGING}/ListLogEntries": (
        logging_types.ListLogEntriesRequest,
        logging_types.ListLogEntriesResponse,
    ),
    "/google.cloud.billing.v1.CloudCatalog/ListSkus": (
        billing_v1.ListSkusRequest,
        billing_v1.ListSkusResponse,
    ),
    "/google.cloud.billing.budgets.v1.BudgetService/ListBudgets": (
        budgets_v1.ListBudgetsRequest,
        budgets_v1.ListBudgetsResponse,
    ),
}
TAIL = f"{LOGGING}/TailLogEntries"


class FastClock(SystemClock):
    """A clock whose seconds take a fiftieth of one; its wall clock is the real one."""

    factor = 50.0

    def monotonic(self) -> float:
        return super().monotonic() * self.factor

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds / self.factor)


def raw_class(kind: Any) -> Any:
    """Return the protobuf class of a proto-plus class, or the class itself."""
    return type(kind.pb(kind())) if hasattr(kind, "pb") else kind


def refusal(code: str, message: str, *details: Any) -> Exception:
    """Return what a handler raises so that its caller gets this status."""
    status = status_pb2.Status(code=code_pb2.Code.Value(code), message=message)
    for detail in details:
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)
    return Refusal(status)


class Refusal(Exception):  # noqa: N818
    def __init__(self, status: Any) -> None:
        super().__init__(status.message)
        self.status = status


class FakeGoogle(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    """Handlers by full method name; each takes the request and returns or raises the answer."""

    def __init__(self) -> None:
        self.handlers: dict[str, Callable[[Any], Any]] = {}
        self.tail: Callable[[Any], AsyncIterator[Any]] | None = None
        self.calls: Counter[str] = Counter()
        self.requests: list[Any] = []
        self.metadata: dict[str, str] = {}
        self.hosts: list[str] = []
        self.endpoint = ""

    def on(self, method: str, handler: Callable[[Any], Any]) -> None:
        """Answer a method by a handler, which may be a coroutine function."""
        assert method in METHODS
        self.handlers[method] = handler

    def service(self, details: Any) -> Any:
        method = details.method
        if method == TAIL and self.tail is not None:
            return grpc.stream_stream_rpc_method_handler(
                self._tail,
                raw_class(logging_types.TailLogEntriesRequest).FromString,
                _serialized,
            )
        if method not in self.handlers:
            return None

        async def answer(request: Any, context: Any) -> Any:
            self.calls[method] += 1
            self.requests.append(request)
            self.metadata = dict(context.invocation_metadata())
            try:
                found = self.handlers[method](request)
                return await found if inspect.isawaitable(found) else found
            except Refusal as error:
                await context.abort_with_status(rpc_status.to_status(error.status))

        request_class = raw_class(METHODS[method][0])
        return grpc.unary_unary_rpc_method_handler(answer, request_class.FromString, _serialized)

    async def _tail(self, requests: Any, context: Any) -> AsyncIterator[Any]:
        self.calls[TAIL] += 1
        assert self.tail is not None
        self.metadata = dict(context.invocation_metadata())
        async for request in requests:
            try:
                async for answer in self.tail(request):
                    yield answer
            except Refusal as error:
                await context.abort_with_status(rpc_status.to_status(error.status))
            return


def _serialized(message: Any) -> bytes:
    if isinstance(message, bytes):
        return message  # what no server should send
    kind = type(message)
    data: bytes = kind.serialize(message) if hasattr(kind, "pb") else message.SerializeToString()
    return data


@asynccontextmanager
async def fake_google() -> AsyncIterator[FakeGoogle]:
    """Serve on a port of its own."""
    fake = FakeGoogle()
    # Tests count what arrives and answer with what is too large: the server must not be in the way.
    server = grpc.aio.server(options=[("grpc.max_send_message_length", -1)])
    server.add_generic_rpc_handlers((fake,))
    port = server.add_insecure_port("127.0.0.1:0")
    fake.endpoint = f"127.0.0.1:{port}"
    await server.start()
    try:
        yield fake
    finally:
        await server.stop(None)


@asynccontextmanager
async def connected(
    endpoint: str, project: str = "demo", *, read_only: bool = False
) -> AsyncIterator[Cloud]:
    """Connect through the gateways, with pauses that are short."""
    options = ConnectionOptions(project=project, endpoint=endpoint, read_only=read_only)
    connection = Connection(options, clock=FastClock())
    try:
        yield await connection.cloud()
    finally:
        await connection.close()


def quota_failure(description: str) -> Any:
    violation = error_details_pb2.QuotaFailure.Violation(
        subject="project:123456", description=description
    )
    return error_details_pb2.QuotaFailure(violations=[violation])


async def never(_: Any) -> Any:
    """A handler that never answers."""
    await asyncio.get_running_loop().create_future()


def node(name: str, **fields: Any) -> Any:
    return raw_class(tpu_v2.Node)(name=name, **fields)


def page(*names: str, token: str = "", unreachable: tuple[str, ...] = ()) -> Any:
    return raw_class(tpu_v2.ListNodesResponse)(
        nodes=[node(node_name(name)) for name in names],
        next_page_token=token,
        unreachable=unreachable,
    )


def zones(*names: str) -> Any:
    return locations_pb2.ListLocationsResponse(
        locations=[locations_pb2.Location(location_id=name) for name in names]
    )
