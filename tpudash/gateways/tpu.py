"""The Cloud TPU API, v2.

Source: google/cloud/tpu/v2/cloud_tpu.proto.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from tpudash.domain.node import NodeListing
from tpudash.domain.request import RequestListing
from tpudash.domain.resource_name import is_same_resource, location_name
from tpudash.errors import NotFoundError, OperationFailedError
from tpudash.gateways.clients import ClientKind
from tpudash.gateways.convert import last_segment
from tpudash.gateways.convert_maintenance import maintenance_of
from tpudash.gateways.convert_node import node_body, node_of, nodes_of
from tpudash.gateways.convert_request import (
    operation_of,
    request_body,
    request_of,
    requests_of,
)
from tpudash.gateways.everywhere import EVERY_ZONE, Everywhere
from tpudash.gateways.pace import Spend
from tpudash.gateways.paging import all_pages, raw, raw_page, readable, unreadable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from tpudash.clock import Clock
    from tpudash.domain.node import Maintenance, Node, NodeTemplate
    from tpudash.domain.request import QueuedResource, RequestTemplate
    from tpudash.gateways.clients import Clients
    from tpudash.gateways.protocols import CloudOperation
    from tpudash.gateways.retry import Caller

T = TypeVar("T")
NamedT = TypeVar("NamedT", "Node", "QueuedResource")
READ_S: Final = 10.0
LIST_S: Final = 15.0
CHANGE_S: Final = 30.0
PAGE_SIZE: Final = 1_000
LONGEST_ZONE: Final = 63


class GoogleTpu:
    """`TpuGateway` over Google's client."""

    def __init__(self, clients: Clients, caller: Caller, project: str, clock: Clock) -> None:
        self._clients = clients
        self._caller = caller
        self._project = project
        self._everywhere = Everywhere(self.list_zones, clock)

    async def list_nodes(self, location: str = EVERY_ZONE) -> NodeListing:
        """List all nodes of a location (`-` is every zone), all pages of them.

        Where the service refuses the wildcard, each zone is asked by itself.
        """
        found, unreachable = await self._everywhere.gather("nodes", location, self._nodes_in)
        return NodeListing(tuple(found), unreachable)

    async def list_maintenance(self, location: str = EVERY_ZONE) -> Mapping[str, Maintenance]:
        """Return what maintenance is announced, by full name of the node; through v2alpha1."""
        what = f"list maintenance in {_place(location)}"
        pages = await self._pages("list_nodes", location, what, ClientKind.TPU_ALPHA)
        return dict(found for page in pages for found in maintenance_of(page.nodes))

    async def list_requests(self, location: str = EVERY_ZONE) -> RequestListing:
        """List all queued resources of a location, as `list_nodes` does nodes."""
        found, unreachable = await self._everywhere.gather("requests", location, self._requests_in)
        return RequestListing(tuple(found), unreachable)

    async def get_node(self, name: str) -> Node:
        """Return one node by full name; raises `NotFoundError` when it is gone for sure."""
        what = f"read {name}"
        found = await self._get(what, "get_node", name, lambda message: node_of(raw(message)))
        return self._about(name, found, what)

    async def get_request(self, name: str) -> QueuedResource:
        """Return one queued resource by full name."""
        what = f"read {name}"
        found = await self._get(
            what, "get_queued_resource", name, lambda message: request_of(raw(message))
        )
        return self._about(name, found, what)

    async def get_operation(self, name: str) -> CloudOperation:
        """Return a long-running operation as it stands."""
        return await self._get(f"read {name}", "get_operation", name, operation_of)

    async def create_node(self, zone: str, node_id: str, template: NodeTemplate) -> CloudOperation:
        """Begin to create a node."""
        request = {
            "parent": location_name(self._project, zone),
            "node_id": node_id,
            "node": node_body(template),
        }
        return await self._begin(f"create node {node_id}", "create_node", request)

    async def delete_node(self, name: str) -> CloudOperation:
        """Begin to delete a node."""
        return await self._begin(f"delete {name}", "delete_node", {"name": name})

    async def create_request(
        self, zone: str, request_id: str, template: RequestTemplate
    ) -> CloudOperation:
        """Begin to create a queued resource."""
        parent = location_name(self._project, zone)
        request = {
            "parent": parent,
            "queued_resource_id": request_id,
            "queued_resource": request_body(template, parent),
            "request_id": template.idempotency_key,
        }
        what = f"create queued resource {request_id}"
        return await self._begin(what, "create_queued_resource", request)

    async def delete_request(self, name: str, *, force: bool = False) -> CloudOperation:
        """Begin to delete a queued resource."""
        request = {"name": name, "force": force}
        return await self._begin(f"delete {name}", "delete_queued_resource", request)

    async def list_zones(self) -> tuple[str, ...]:
        """List the zones that this project sees."""
        from google.cloud.location import locations_pb2

        client = await self._clients.get(ClientKind.TPU)
        name = f"projects/{self._project}"

        async def page(token: str, timeout_s: float) -> Any:
            request = locations_pb2.ListLocationsRequest(
                name=name, page_size=PAGE_SIZE, page_token=token
            )
            return await readable(client.list_locations(request, timeout=timeout_s, retry=None))

        zones: list[str] = []
        async for answer in all_pages(
            self._caller, "list zones", page, timeout_s=LIST_S, spend=Spend.TPU_LIST
        ):
            zones.extend(zone.location_id or last_segment(zone.name) for zone in answer.locations)
        return tuple(dict.fromkeys(zones))

    async def list_accelerator_types(self, zone: str) -> tuple[str, ...]:
        """List the accelerator types that a zone offers."""
        pages = await self._pages("list_accelerator_types", zone, "list accelerator types")
        return tuple(
            kind.type_ or last_segment(kind.name)
            for page in pages
            for kind in page.accelerator_types
        )

    async def list_runtime_versions(self, zone: str) -> tuple[str, ...]:
        """List the runtime versions that a zone offers."""
        pages = await self._pages("list_runtime_versions", zone, "list runtime versions")
        return tuple(
            item.version or last_segment(item.name)
            for page in pages
            for item in page.runtime_versions
        )

    async def _nodes_in(self, location: str) -> tuple[list[Node], tuple[str, ...]]:
        pages = await self._pages("list_nodes", location, f"list nodes in {_place(location)}")
        found = {node.name: node for page in pages for node in nodes_of(page.nodes)}
        return list(found.values()), _unreachable(pages)

    async def _requests_in(self, location: str) -> tuple[list[QueuedResource], tuple[str, ...]]:
        what = f"list queued resources in {_place(location)}"
        pages = await self._pages("list_queued_resources", location, what)
        found = {
            request.name: request
            for page in pages
            for request in requests_of(page.queued_resources)
        }
        return list(found.values()), _unreachable(pages)

    async def _pages(
        self, method: str, location: str, what: str, kind: ClientKind = ClientKind.TPU
    ) -> list[Any]:
        client = await self._clients.get(kind)
        parent = location_name(self._project, location)

        async def page(token: str, timeout_s: float) -> Any:
            request = {"parent": parent, "page_size": PAGE_SIZE, "page_token": token}
            return await raw_page(
                await getattr(client, method)(request=request, timeout=timeout_s, retry=None)
            )

        pages = all_pages(self._caller, what, page, timeout_s=LIST_S, spend=Spend.TPU_LIST)
        try:
            return [answer async for answer in pages]
        except NotFoundError as error:
            # A place that is not known is no sign that what was in it is gone.
            raise OperationFailedError(
                f"could not {what}: there is no such place",
                detail=error.detail,
                hint="Check the project's id, and the zone where one is named.",
                failure=error.failure,
            ) from error

    def _about(self, name: str, found: NamedT, what: str) -> NamedT:
        """Return an answer that is about what was asked for.

        Raises:
            UnreachableError: It is about something else.
        """
        if not is_same_resource(found.name, name):
            wrong = unreadable(f"it is about {found.name[:200]!r}")
            raise self._caller.translated(wrong, what)
        return found

    async def _get(self, what: str, method: str, name: str, convert: Callable[[Any], T]) -> T:
        client = await self._clients.get(ClientKind.TPU)

        def call(timeout_s: float) -> Awaitable[Any]:
            ask = getattr(client, method)
            return readable(ask({"name": name}, timeout=timeout_s, retry=None))

        answer = await self._caller.read(what, call, timeout_s=READ_S, spend=Spend.TPU_GET)
        return convert(answer)

    async def _begin(self, what: str, method: str, request: dict[str, Any]) -> CloudOperation:
        client = await self._clients.get(ClientKind.TPU)

        async def call(timeout_s: float) -> CloudOperation:
            begin = getattr(client, method)
            try:
                future = await begin(request=request, timeout=timeout_s, retry=None)
            except AttributeError as error:
                # The client wraps an operation up without looking whether one could be read.
                raise unreadable() from error
            return operation_of(future.operation)

        spend = Spend.CREATE if method.startswith("create") else Spend.DELETE
        return await self._caller.change(what, call, timeout_s=CHANGE_S, spend=spend)


def _unreachable(pages: list[Any]) -> tuple[str, ...]:
    """Return the zones that did not answer, from whatever form of name the pages give."""
    names = (last_segment(name)[:LONGEST_ZONE] for page in pages for name in page.unreachable)
    return tuple(dict.fromkeys(name for name in names if name))


def _place(location: str) -> str:
    return "all zones" if location == EVERY_ZONE else location
