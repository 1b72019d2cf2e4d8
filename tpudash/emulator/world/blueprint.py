"""How a node looks when it is asked for, and when it has come up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpudash.emulator.errors import invalid_field
from tpudash.emulator.identifiers import ResourceName, project_number, region_of
from tpudash.emulator.messages import ApiVersion, Message, Node, NodeState

if TYPE_CHECKING:
    from tpudash.emulator.catalogue import Accelerator
    from tpudash.emulator.world.nodes import NodeRecord
    from tpudash.emulator.world.world import Deps

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_WORKER_PORT = 8470
_INPUTS = (
    "description",
    "runtime_version",
    "cidr_block",
    "scheduling_config",
    "labels",
    "metadata",
    "network_config",
    "network_configs",
    "service_account",
    "tags",
    "data_disks",
    "shielded_instance_config",
)


def new_node(name: ResourceName, wanted: Message, accelerator: Accelerator, deps: Deps) -> Message:
    """Return the node in state CREATING, with what the cloud fills in.

    Output-only fields of `wanted` are ignored, as the API does.
    """
    node = Node(name=str(name), state=NodeState.CREATING, api_version=ApiVersion.V2)
    inputs = Node()
    inputs.CopyFrom(wanted)
    for field, _ in wanted.ListFields():
        if field.name not in _INPUTS:
            inputs.ClearField(field.name)
    node.MergeFrom(inputs)
    if wanted.name and wanted.name != str(name):
        raise invalid_field("node.name", "output only")
    node.id = deps.identifiers.unique_number()
    node.create_time.FromDatetime(deps.clock.now())
    node.accelerator_type = accelerator.name
    generation = deps.catalogue.generations[accelerator.generation]
    node.accelerator_config.type_ = generation.api_type
    node.accelerator_config.topology = accelerator.topology
    _fill_network(node, name)
    if not node.service_account.email:
        number = project_number(name.project)
        node.service_account.email = f"{number}-compute@developer.gserviceaccount.com"
        node.service_account.scope.append(_SCOPE)
    return node


def _fill_network(node: Message, name: ResourceName) -> None:
    network = node.network_config
    project_path = f"projects/{name.project}"
    if not network.network:
        network.network = "default"
    if "/" not in network.network:
        network.network = f"{project_path}/global/networks/{network.network}"
    if not network.subnetwork:
        region = region_of(name.zone)
        network.subnetwork = f"{project_path}/regions/{region}/subnetworks/default"


def prepare_endpoints(record: NodeRecord) -> None:
    """Give every worker an address of its own, worker 0 first."""
    node = record.message
    del node.network_endpoints[:]
    third = 1 + node.id % 200
    for worker in range(record.accelerator.hosts):
        block, host = divmod(worker, 250)
        endpoint = node.network_endpoints.add()
        endpoint.ip_address = f"10.{128 + block}.{third}.{2 + host}"
        endpoint.port = _WORKER_PORT
        if node.network_config.enable_external_ips:
            endpoint.access_config.external_ip = f"203.0.113.{1 + (node.id + worker) % 250}"
