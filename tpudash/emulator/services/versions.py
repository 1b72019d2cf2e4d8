"""The long-running operations of the Cloud TPU API as each version of it shows them."""

from __future__ import annotations

from typing import Any

from google.longrunning import operations_pb2

from tpudash.emulator.rpc import raw
from tpudash.emulator.services.by_name import carry_over

V2 = "v2"
V2ALPHA1 = "v2alpha1"
_PREFIX = "google.cloud.tpu.v2."


def alpha_types() -> Any:
    """Return the module of the messages of v2alpha1."""
    from google.cloud.tpu_v2alpha1.types import cloud_tpu

    return cloud_tpu


def shown_in(version: str, operation: Any) -> Any:
    """Return an operation with its metadata and response in the messages of a version."""
    if version != V2ALPHA1:
        return operation
    shown = operations_pb2.Operation()
    shown.CopyFrom(operation)
    _repack(shown.metadata)
    shown_metadata = raw(alpha_types().OperationMetadata)()
    shown.metadata.Unpack(shown_metadata)
    if shown.HasField("response"):
        _repack(shown.response)
        _return_the_deleted(shown, shown_metadata.target)
    return shown


def _repack(packed: Any) -> None:
    """Replace a packed message of v2 by its namesake of v2alpha1."""
    name = packed.TypeName()
    if not name.startswith(_PREFIX):
        return
    from google.cloud.tpu_v2.types import cloud_tpu

    word = name.removeprefix(_PREFIX)
    message = raw(getattr(cloud_tpu, word))()
    packed.Unpack(message)
    packed.Pack(to_alpha(message, word))


def to_alpha(message: Any, word: str) -> Any:
    """Return a message of v2 as its namesake of v2alpha1."""
    alpha = carry_over(message, raw(getattr(alpha_types(), word))())
    for node in _nodes_of(alpha, word):
        node.api_version = alpha_types().Node.ApiVersion.V2_ALPHA1
    for request, shown in zip(_requests_of(message, word), _requests_of(alpha, word), strict=True):
        _name_slices(request, shown)
    return alpha


def _requests_of(message: Any, word: str) -> list[Any]:
    if word == "QueuedResource":
        return [message]
    is_listing = word == "ListQueuedResourcesResponse"
    return list(message.queued_resources) if is_listing else []


def _name_slices(request: Any, shown: Any) -> None:
    """Carry over how many slices a request is for, which v2alpha1 names otherwise."""
    for spec, target in zip(request.tpu.node_spec, shown.tpu.node_spec, strict=True):
        if spec.HasField("multislice_params"):
            target.multi_node_params.node_count = spec.multislice_params.node_count
            target.multi_node_params.node_id_prefix = spec.multislice_params.node_id_prefix


def _nodes_of(message: Any, word: str) -> list[Any]:
    if word == "Node":
        return [message]
    return list(message.nodes) if word == "ListNodesResponse" else []


def _return_the_deleted(operation: Any, target: str) -> None:
    """Return the resource: v2alpha1 does so where v2 answers the end of a request with nothing."""
    if "/queuedResources/" in target and operation.response.TypeName().endswith(".Empty"):
        operation.response.Pack(raw(alpha_types().QueuedResource)(name=target))
