"""Nodes: from `google.cloud.tpu.v2.Node` to ours, and from our template to a request."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from tpudash.domain.node import Node, NodeHealth, NodeTemplate, Scheduling, Symptom, Worker
from tpudash.domain.resource_name import ResourceName
from tpudash.gateways.convert import LazyObject, enum_text, to_datetime
from tpudash.gateways.credentials import CLOUD_PLATFORM

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

logger = logging.getLogger(__name__)

_NO_HEALTH: Final = frozenset({NodeHealth.HEALTH_UNSPECIFIED.value})


def nodes_of(messages: Iterable[Any]) -> Iterator[Node]:
    """Convert nodes, leaving out what bears no resource name, which nothing could refer to."""
    for message in messages:
        try:
            ResourceName.parse(message.name)
        except ValueError as error:
            logger.warning("a node was left out: %s", error)
            continue
        yield node_of(message)


def node_of(message: Any) -> Node:
    """Convert one raw Node message."""
    health = enum_text(message, "health")
    return Node(
        name=message.name,
        state=enum_text(message, "state"),
        health=None if health in _NO_HEALTH else health,
        health_description=message.health_description,
        accelerator_type=message.accelerator_type or _type_of_config(message),
        runtime_version=message.runtime_version,
        scheduling=_scheduling_of(message.scheduling_config),
        create_time=to_datetime(message.create_time),
        labels=dict(message.labels),
        metadata=dict(message.metadata),
        workers=tuple(
            _worker_of(index, endpoint) for index, endpoint in enumerate(message.network_endpoints)
        ),
        symptoms=tuple(_symptom_of(symptom) for symptom in message.symptoms),
        numeric_id=message.id or None,
        queued_resource=message.queued_resource or None,
        raw=LazyObject(message),
    )


def node_body(template: NodeTemplate) -> dict[str, Any]:
    """Return the `node` of a CreateNode request as JSON-like data in the proto's field names."""
    body: dict[str, Any] = {
        "accelerator_type": template.accelerator_type,
        "runtime_version": template.runtime_version,
        "labels": dict(template.labels),
        "metadata": dict(template.metadata),
        "network_config": {"enable_external_ips": template.external_ips},
    }
    if template.scheduling is not Scheduling.ON_DEMAND:
        body["scheduling_config"] = {template.scheduling.value: True}
    if template.description:
        body["description"] = template.description
    if template.tags:
        body["tags"] = list(template.tags)
    if template.network:
        body["network_config"]["network"] = template.network
    if template.subnetwork:
        body["network_config"]["subnetwork"] = template.subnetwork
    if template.service_account:
        body["service_account"] = {"email": template.service_account, "scope": [CLOUD_PLATFORM]}
    return body


def _scheduling_of(config: Any) -> Scheduling:
    if config.spot:
        return Scheduling.SPOT
    if config.preemptible:
        return Scheduling.PREEMPTIBLE
    return Scheduling.RESERVED if config.reserved else Scheduling.ON_DEMAND


def _type_of_config(message: Any) -> str:
    """Return what a node that was made by topology says of itself, such as `V5P 2x2x1`."""
    if not message.HasField("accelerator_config"):
        return ""
    config = message.accelerator_config
    return f"{enum_text(config, 'type_')} {config.topology}".strip()


def _worker_of(index: int, endpoint: Any) -> Worker:
    return Worker(
        index=index,
        ip_address=endpoint.ip_address,
        external_ip=endpoint.access_config.external_ip or None,
        port=endpoint.port or None,
    )


def _symptom_of(message: Any) -> Symptom:
    return Symptom(
        kind=enum_text(message, "symptom_type"),
        details=message.details,
        worker_id=message.worker_id,
        create_time=to_datetime(message.create_time),
    )
