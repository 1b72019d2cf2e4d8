"""Queued resources and operations: from Google's messages to ours."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from tpudash.domain.failure import Origin
from tpudash.domain.request import QueuedResource
from tpudash.domain.resource_name import ResourceName
from tpudash.gateways.convert import LazyObject, enum_text, to_datetime
from tpudash.gateways.convert_node import node_body
from tpudash.gateways.protocols import CloudOperation
from tpudash.gateways.status import status_of_proto

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tpudash.domain.request import RequestTemplate

logger = logging.getLogger(__name__)


def requests_of(messages: Iterable[Any]) -> Iterator[QueuedResource]:
    """Convert queued resources, leaving out what bears no resource name."""
    for message in messages:
        try:
            ResourceName.parse(message.name)
        except ValueError as error:
            logger.warning("a queued resource was left out: %s", error)
            continue
        yield request_of(message)


def request_of(message: Any) -> QueuedResource:
    """Convert one raw QueuedResource message."""
    state = message.state
    initiator = enum_text(state, "state_initiator")
    specs = list(message.tpu.node_spec)
    first = specs[0].node if specs else None
    return QueuedResource(
        name=message.name,
        state=enum_text(state, "state"),
        create_time=to_datetime(message.create_time),
        initiator=None if initiator == "STATE_INITIATOR_UNSPECIFIED" else initiator,
        failure=state.failed_data.error.message or None,
        node_names=tuple(name for spec in specs for name in _names_of(spec, message.name)),
        accelerator_type=first.accelerator_type if first is not None else "",
        labels=dict(first.labels) if first is not None else {},
        metadata=dict(first.metadata) if first is not None else {},
        raw=LazyObject(message),
    )


def request_body(template: RequestTemplate, parent: str) -> dict[str, Any]:
    """Return the `queued_resource` of a CreateQueuedResource request, in the proto's names.

    How its node is scheduled is told by the tier alone; a spec that says it too is refused.
    """
    node = node_body(template.node)
    node.pop("scheduling_config", None)
    spec = {"parent": parent, "node_id": template.node_id, "node": node}
    body: dict[str, Any] = {"tpu": {"node_spec": [spec]}}
    if template.tier:
        body[template.tier.value] = {}
    if template.valid_until is not None:
        body["queueing_policy"] = {"valid_until_duration": template.valid_until}
    if template.reservation:
        body["reservation_name"] = template.reservation
    return body


def _names_of(spec: Any, request: str) -> Iterator[str]:
    """Return the full names of the nodes that one spec asks for."""
    parent = spec.parent or ResourceName.parse(request).parent
    if spec.node_id:
        yield f"{parent}/nodes/{spec.node_id}"
        return
    several = spec.multislice_params
    prefix = several.node_id_prefix or ResourceName.parse(request).resource_id
    for index in range(min(several.node_count, 10_000)):
        yield f"{parent}/nodes/{prefix}-{index}"


def operation_of(message: Any) -> CloudOperation:
    """Convert a raw `google.longrunning.Operation`, with the TPU API's metadata if it has it."""
    from google.cloud.tpu_v2 import OperationMetadata

    metadata = OperationMetadata.pb(OperationMetadata())
    if not message.metadata.Unpack(metadata):
        metadata.Clear()
    has_error = message.WhichOneof("result") == "error"
    return CloudOperation(
        name=message.name,
        done=message.done,
        error=status_of_proto(message.error, Origin.OPERATION) if has_error else None,
        target=metadata.target,
        verb=metadata.verb,
        create_time=to_datetime(metadata.create_time),
        end_time=to_datetime(metadata.end_time),
    )
