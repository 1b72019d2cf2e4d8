"""`google.cloud.tpu.v2.Tpu`: every RPC of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.cloud.tpu_v2.types import cloud_tpu
from google.longrunning import operations_pb2

from tpudash.emulator.errors import ApiError, not_found
from tpudash.emulator.identifiers import ANY_ZONE, ResourceName, parse_parent, project_number
from tpudash.emulator.rpc import Call, Method, Service, Unary, raw
from tpudash.emulator.services.paging import take_page
from tpudash.emulator.services.views import Views

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tpudash.emulator.catalogue import Accelerator
    from tpudash.emulator.world.world import World

NAME = "google.cloud.tpu.v2.Tpu"
_Operation = operations_pb2.Operation
_RESOURCE_OF = {
    "GetNode": cloud_tpu.Node,
    "GetQueuedResource": cloud_tpu.QueuedResource,
    "GetAcceleratorType": cloud_tpu.AcceleratorType,
    "GetRuntimeVersion": cloud_tpu.RuntimeVersion,
}
_WINDOW = {
    "window_start_time": "windowStartTime",
    "window_end_time": "windowEndTime",
    "latest_window_start_time": "latestWindowStartTime",
}
_PAGE = {"default": 1_000, "maximum": 1_000}


class TpuService:
    """Answers for the Cloud TPU API."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._views = Views(world)

    def table(self) -> Service:
        """Return the service with all its methods."""
        reads: dict[str, Unary] = {
            "ListNodes": self.list_nodes,
            "GetNode": self.get_node,
            "ListQueuedResources": self.list_queued_resources,
            "GetQueuedResource": self.get_queued_resource,
            "ListAcceleratorTypes": self.list_accelerator_types,
            "GetAcceleratorType": self.get_accelerator_type,
            "ListRuntimeVersions": self.list_runtime_versions,
            "GetRuntimeVersion": self.get_runtime_version,
            "GetGuestAttributes": self.get_guest_attributes,
        }
        writes: dict[str, Unary] = {
            "CreateNode": self.create_node,
            "DeleteNode": self.delete_node,
            "StopNode": self.stop_node,
            "StartNode": self.start_node,
            "UpdateNode": self.update_node,
            "CreateQueuedResource": self.create_queued_resource,
            "DeleteQueuedResource": self.delete_queued_resource,
            "ResetQueuedResource": self.reset_queued_resource,
        }
        methods = []
        for name, function in reads.items():
            response = _RESOURCE_OF.get(name) or getattr(cloud_tpu, f"{name}Response")
            enrich = {"GetNode": self._announce, "ListNodes": self._announce_all}.get(name)
            methods.append(
                Method(name, self._request(name), raw(response), function, enrich=enrich)
            )
        for name, function in writes.items():
            once = self._once(name, function)
            methods.append(Method(name, self._request(name), _Operation, once, mutating=True))
        methods.append(
            Method(
                "GenerateServiceIdentity",
                self._request("GenerateServiceIdentity"),
                raw(cloud_tpu.GenerateServiceIdentityResponse),
                self.generate_service_identity,
                mutating=True,
            )
        )
        return Service(NAME, tuple(methods))

    def _once(self, name: str, function: Unary) -> Unary:
        """Return a method that does once what is asked for twice under one `request_id`."""

        async def answer(request: Any, call: Call) -> Any:
            return await self._world.request_ids.once(
                name, request, lambda: function(request, call)
            )

        return answer

    @staticmethod
    def _request(method: str) -> Any:
        return raw(getattr(cloud_tpu, f"{method}Request"))

    # ----------------------------------------------------------------- nodes

    async def list_nodes(self, request: Any, call: Call) -> Any:
        """List the nodes of a zone, or of all zones with those that do not answer named."""
        project, zone = parse_parent(request.parent)
        self._check_zone(zone)
        hidden = self._unreachable(zone)
        reachable = self._views.nodes(project, zone, hidden, call.method)
        page, token = take_page(reachable, request.page_size, request.page_token, **_PAGE)
        response = raw(cloud_tpu.ListNodesResponse)(nodes=page, next_page_token=token)
        response.unreachable.extend(f"projects/{project}/locations/{zone}" for zone in hidden)
        return response

    async def get_node(self, request: Any, call: Call) -> Any:
        """Return one node."""
        return self._views.node(request.name, call.method)

    async def create_node(self, request: Any, call: Call) -> Any:
        """Begin the creation of a node; a refusal is audited."""
        project, zone = parse_parent(request.parent)
        node_id = request.node_id or f"node-{self._world.identifiers.unique_number()}"
        name = ResourceName(project, zone, "nodes", node_id)
        try:
            return self._world.lifecycle.create(name, request.node)
        except ApiError as error:
            self._audit_refusal(call, name, error)
            raise

    async def delete_node(self, request: Any, call: Call) -> Any:
        """Begin the deletion of a node; a refusal is audited."""
        name = ResourceName.parse(request.name, "nodes")
        try:
            return self._world.lifecycle.delete(request.name)
        except ApiError as error:
            self._audit_refusal(call, name, error)
            raise

    def _audit_refusal(self, call: Call, name: ResourceName, error: ApiError) -> None:
        method = call.method.rpartition("/")[2]
        self._world.audit.refused(method, name.project, str(name), error.status)

    async def stop_node(self, request: Any, _: Call) -> Any:
        """Begin to stop a node."""
        return self._world.lifecycle.stop(request.name)

    async def start_node(self, request: Any, _: Call) -> Any:
        """Begin to start a stopped node."""
        return self._world.lifecycle.start(request.name)

    async def update_node(self, request: Any, _: Call) -> Any:
        """Change a node's description, labels, metadata, tags or external addresses."""
        return self._world.lifecycle.update(request.node, request.update_mask)

    async def get_guest_attributes(self, request: Any, _: Call) -> Any:
        """Return what the workers have published under the query path."""
        world = self._world
        record = world.nodes.get(request.name)
        workers = [int(item) for item in request.worker_ids if item.isdecimal()]
        response = raw(cloud_tpu.GetGuestAttributesResponse)()
        found = False
        for worker in workers or range(record.accelerator.hosts):
            attributes = response.guest_attributes.add(query_path=request.query_path)
            published = world.host.guest_attributes(request.name, worker)
            for path, value in sorted(published.items()):
                if path.startswith(request.query_path.strip("/")):
                    namespace, _slash, key = path.partition("/")
                    attributes.query_value.items.add(namespace=namespace, key=key, value=value)
                    found = True
        if not found:
            raise world.refusals.no_guest_attribute(request.query_path)
        return response

    def _announce_all(self, answer: dict[str, Any]) -> None:
        for node in answer.get("nodes", ()):
            self._announce(node)

    def _announce(self, node: dict[str, Any]) -> None:
        """Add the announced maintenance: v2 has it in JSON, and not yet in its published protos.

        Source: the discovery document of tpu v2, Node.upcomingMaintenance
        """
        window = self._world.nodes.maintenance_of(str(node.get("name")))
        if not window:
            return
        node["upcomingMaintenance"] = {
            "type": window["type"],
            "maintenanceStatus": window["maintenance_status"],
            "canReschedule": window["can_reschedule"] == "TRUE",
            **{name: window[key] for key, name in _WINDOW.items() if key in window},
        }

    # ------------------------------------------------------ queued resources

    async def list_queued_resources(self, request: Any, call: Call) -> Any:
        """List the queued requests of a zone, or of all zones."""
        project, zone = parse_parent(request.parent)
        self._check_zone(zone)
        hidden = self._unreachable(zone)
        items = self._views.requests(project, zone, hidden, call.method)
        page, token = take_page(items, request.page_size, request.page_token, **_PAGE)
        response = raw(cloud_tpu.ListQueuedResourcesResponse)(
            queued_resources=page, next_page_token=token
        )
        response.unreachable.extend(f"projects/{project}/locations/{zone}" for zone in hidden)
        return response

    async def get_queued_resource(self, request: Any, call: Call) -> Any:
        """Return one queued request."""
        return self._views.request(request.name, call.method)

    async def create_queued_resource(self, request: Any, _: Call) -> Any:
        """Queue a request for nodes."""
        project, zone = parse_parent(request.parent)
        request_id = request.queued_resource_id or f"qr-{self._world.identifiers.unique_number()}"
        name = ResourceName(project, zone, "queuedResources", request_id)
        return self._world.queued_resources.create(name, request.queued_resource)

    async def delete_queued_resource(self, request: Any, _: Call) -> Any:
        """Take a request out of the queue."""
        return self._world.queued_resources.delete(request.name, force=request.force)

    async def reset_queued_resource(self, request: Any, _: Call) -> Any:
        """Queue a suspended request again."""
        return self._world.queued_resources.reset(request.name)

    # ------------------------------------------------------------- catalogue

    async def list_accelerator_types(self, request: Any, _: Call) -> Any:
        """List the accelerator types of a zone."""
        _project, zone = parse_parent(request.parent)
        self._check_zone(zone)
        items = self._in_name_order(
            self._accelerator(request.parent, item)
            for item in self._world.catalogue.accelerators_in(zone)
        )
        page, token = take_page(items, request.page_size, request.page_token, **_PAGE)
        return raw(cloud_tpu.ListAcceleratorTypesResponse)(
            accelerator_types=page, next_page_token=token
        )

    async def get_accelerator_type(self, request: Any, _: Call) -> Any:
        """Return one accelerator type of a zone."""
        name = ResourceName.parse(request.name, "acceleratorTypes")
        item = self._world.catalogue.accelerators.get(name.id)
        if item is None or name.zone not in item.zones:
            raise not_found(request.name)
        return self._accelerator(name.parent, item)

    def _accelerator(self, parent: str, item: Accelerator) -> Any:
        message = raw(cloud_tpu.AcceleratorType)(
            name=f"{parent}/acceleratorTypes/{item.name}", type_=item.name
        )
        generation = self._world.catalogue.generations[item.generation]
        message.accelerator_configs.add(type_=generation.api_type, topology=item.topology)
        return message

    async def list_runtime_versions(self, request: Any, _: Call) -> Any:
        """List the runtime versions of a zone."""
        _project, zone = parse_parent(request.parent)
        self._check_zone(zone)
        items = [
            self._runtime(request.parent, version)
            for version in self._world.catalogue.runtimes.get(zone, ())
        ]
        page, token = take_page(items, request.page_size, request.page_token, **_PAGE)
        return raw(cloud_tpu.ListRuntimeVersionsResponse)(
            runtime_versions=page, next_page_token=token
        )

    async def get_runtime_version(self, request: Any, _: Call) -> Any:
        """Return one runtime version of a zone."""
        name = ResourceName.parse(request.name, "runtimeVersions")
        if name.id not in self._world.catalogue.runtimes.get(name.zone, ()):
            raise not_found(request.name)
        return self._runtime(name.parent, name.id)

    @staticmethod
    def _runtime(parent: str, version: str) -> Any:
        return raw(cloud_tpu.RuntimeVersion)(
            name=f"{parent}/runtimeVersions/{version}", version=version
        )

    async def generate_service_identity(self, request: Any, _: Call) -> Any:
        """Return the service agent of the project."""
        project, _zone = parse_parent(request.parent)
        email = f"service-{project_number(project)}@cloud-tpu.iam.gserviceaccount.com"
        response = raw(cloud_tpu.GenerateServiceIdentityResponse)()
        response.identity.email = email
        return response

    # --------------------------------------------------------------- helpers

    def _check_zone(self, zone: str) -> None:
        if zone != ANY_ZONE and zone not in self._world.catalogue.zones:
            raise self._world.refusals.zone_unsupported(zone)

    def _unreachable(self, zone: str) -> list[str]:
        return self._world.faults.unreachable_zones() if zone == ANY_ZONE else []

    @staticmethod
    def _in_name_order(items: Iterable[Any]) -> list[Any]:
        return sorted(items, key=lambda item: str(item.name))
