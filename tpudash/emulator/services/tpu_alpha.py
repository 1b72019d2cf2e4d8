"""`google.cloud.tpu.v2alpha1.Tpu`: the methods of v2 under other numbers, and a few of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.longrunning import operations_pb2

from tpudash.emulator.errors import invalid_field
from tpudash.emulator.identifiers import parse_parent
from tpudash.emulator.rpc import Call, Method, Service, raw
from tpudash.emulator.services.by_name import carry_over
from tpudash.emulator.services.paging import take_page
from tpudash.emulator.services.versions import V2ALPHA1, alpha_types, shown_in, to_alpha
from tpudash.emulator.world.limits import RESERVED

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.emulator.services.tpu import TpuService
    from tpudash.emulator.world.world import World

NAME = "google.cloud.tpu.v2alpha1.Tpu"
_Operation = operations_pb2.Operation


class TpuAlphaService:
    """Answers for v2alpha1 by asking v2, and shows what only v2alpha1 can say."""

    def __init__(self, world: World, stable: TpuService) -> None:
        self._world = world
        self._stable = stable
        self._types = alpha_types()

    def table(self) -> Service:
        """Return the service with all its methods."""
        methods = [self._adapted(method) for method in self._stable.table().methods]
        own: dict[str, Callable[[Any, Call], Any]] = {
            "SimulateMaintenanceEvent": self.simulate_maintenance_event,
            "PerformMaintenance": self.perform_maintenance,
            "PerformMaintenanceQueuedResource": self.perform_maintenance_queued_resource,
        }
        for name, function in own.items():
            methods.append(Method(name, self._request(name), _Operation, function, mutating=True))
        listing = raw(self._types.ListReservationsResponse)
        methods.append(
            Method(
                "ListReservations",
                self._request("ListReservations"),
                listing,
                self.list_reservations,
            )
        )
        return Service(NAME, tuple(methods))

    def _request(self, name: str) -> Any:
        return raw(getattr(self._types, f"{name}Request"))

    def _adapted(self, method: Method) -> Method:
        """Return a method of v2 with the messages of v2alpha1 around it."""
        is_operation = method.response is _Operation
        word = method.response.DESCRIPTOR.name
        response = _Operation if is_operation else raw(getattr(self._types, word))
        function: Any = method.function

        async def answer(request: Any, call: Call) -> Any:
            inner = carry_over(request, method.request())
            _adapt_request(request, inner)
            if is_operation:
                return self._marked(await self._once(method.name, request, inner, call, function))
            result = await function(inner, call)
            return self._enriched(to_alpha(result, word), word)

        return Method(
            method.name, self._request(method.name), response, answer, mutating=method.mutating
        )

    async def _once(self, name: str, request: Any, inner: Any, call: Call, function: Any) -> Any:
        """Begin an operation, once for each `request_id`; of some methods only v2alpha1 has one."""
        if hasattr(inner, "request_id"):
            return await function(inner, call)
        return await self._world.request_ids.once(name, request, lambda: function(inner, call))

    def _marked(self, operation: Any) -> Any:
        """Remember by which version an operation was begun: its payload is of that version."""
        self._world.operations.mark(operation, V2ALPHA1)
        return shown_in(V2ALPHA1, operation)

    def _enriched(self, message: Any, word: str) -> Any:
        """Add the announced maintenance to nodes."""
        if word == "Node":
            self._announce(message)
        elif word == "ListNodesResponse":
            for node in message.nodes:
                self._announce(node)
        return message

    def _announce(self, node: Any) -> None:
        window = self._world.nodes.maintenance_of(node.name)
        if not window:
            return
        kinds = self._types.UpcomingMaintenance
        shown = node.upcoming_maintenance
        shown.type_ = kinds.MaintenanceType[window["type"]]
        shown.maintenance_status = kinds.MaintenanceStatus[window["maintenance_status"]]
        shown.can_reschedule = window["can_reschedule"] == "TRUE"
        for key in ("window_start_time", "window_end_time", "latest_window_start_time"):
            if key in window:
                setattr(shown, key, window[key])

    # ----------------------------------------------------------- maintenance

    async def simulate_maintenance_event(self, request: Any, _: Call) -> Any:
        """Begin a maintenance event of a node, as if its host had asked for one."""
        record = self._world.nodes.get(request.name)
        for worker in request.worker_ids:
            if not worker.isdecimal() or int(worker) >= record.accelerator.hosts:
                raise invalid_field("worker_ids", f'"{worker}" is not a worker of the node')
        return self._marked(self._world.maintenance.simulate(request.name))

    async def perform_maintenance(self, request: Any, _: Call) -> Any:
        """Begin the announced maintenance of a node now."""
        return self._marked(self._world.maintenance.perform(request.name))

    async def perform_maintenance_queued_resource(self, request: Any, _: Call) -> Any:
        """Begin the announced maintenance of a request's nodes now."""
        queued = self._world.queued_resources.get(request.name)
        wanted = list(request.node_names) or list(queued.nodes)
        for name in wanted:
            if name not in queued.nodes:
                raise invalid_field("node_names", f'"{name}" is not a node of the request')
        operations = [self._world.maintenance.perform(name) for name in wanted]
        if not operations:
            raise invalid_field("name", "the request has no nodes")
        return self._marked(operations[-1])

    # ---------------------------------------------------------- reservations

    async def list_reservations(self, request: Any, _: Call) -> Any:
        """List the reservations: what `tpudash emulator capacity ZONE reserved:TYPE` sets aside."""
        project, zone = parse_parent(request.parent)
        items = [
            self._reservation(project, place, kind.removeprefix(RESERVED), chips)
            for (place, kind), chips in sorted(self._world.capacity.limits.items())
            if kind.startswith(RESERVED) and zone in {place, "-"}
        ]
        page, token = take_page(
            items, request.page_size, request.page_token, default=1_000, maximum=1_000
        )
        return raw(self._types.ListReservationsResponse)(reservations=page, next_page_token=token)

    def _reservation(self, project: str, zone: str, accelerator: str, chips: int) -> Any:
        kinds = self._types.Reservation
        name = f"projects/{project}/locations/{zone}/reservations/{accelerator}"
        reservation = raw(kinds)(name=name, state=kinds.State.ACTIVE)
        standard = reservation.standard
        standard.size = chips
        standard.capacity_units = kinds.Standard.CapacityUnits.CHIPS
        standard.resource_type = accelerator
        standard.usage.total = sum(
            record.accelerator.chips
            for record in self._world.nodes.under(project, zone)
            if record.live
            and record.scheduling == "reserved"
            and record.accelerator.name == accelerator
        )
        return reservation


def _adapt_request(request: Any, inner: Any) -> None:
    """Carry over what v2alpha1 names otherwise: slices of one request, and its tiers."""
    if not hasattr(inner, "queued_resource"):
        return
    wanted, found = request.queued_resource, inner.queued_resource
    if wanted.HasField("best_effort"):
        found.spot.SetInParent()
    for spec, target in zip(wanted.tpu.node_spec, found.tpu.node_spec, strict=True):
        if spec.HasField("multi_node_params"):
            target.multislice_params.node_count = spec.multi_node_params.node_count
            target.multislice_params.node_id_prefix = spec.multi_node_params.node_id_prefix
        if wanted.guaranteed.reserved:
            target.node.scheduling_config.reserved = True
