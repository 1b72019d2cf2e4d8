"""The calls that operations make, and the same calls as they are shown in a plan."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tpudash.domain.node import (
    ATTEMPT_LABEL,
    OWNER_LABEL,
    RUN_LABEL,
    SPEC_METADATA_KEY,
    NodeTemplate,
    Scheduling,
)
from tpudash.domain.operation import PlanStep
from tpudash.domain.request import RequestTemplate, Tier
from tpudash.domain.resource_name import location_name, node_name, request_name
from tpudash.domain.run import encode_record
from tpudash.operations.run_files import spec_url

if TYPE_CHECKING:
    from tpudash.domain.run import RunSpec
    from tpudash.operations.payload import Doomed

TPU_SERVICE: Final = "google.cloud.tpu.v2.Tpu"
STARTUP_KEY: Final = "startup-script"


def template_of(spec: RunSpec, startup_script: str) -> NodeTemplate:
    """Return the node that an attempt runs on."""
    return NodeTemplate(
        accelerator_type=spec.accelerator_type,
        runtime_version=spec.runtime_version,
        scheduling=spec.scheduling,
        labels={**spec.placement.labels, **labels_of(spec)},
        metadata={
            STARTUP_KEY: startup_script,
            SPEC_METADATA_KEY: msgspec.json.encode(spec).decode(),
        },
        description=f"tpudash run {spec.run}, attempt {spec.attempt}",
        service_account=spec.placement.service_account,
        network=spec.placement.network,
        subnetwork=spec.placement.subnetwork,
        tags=spec.placement.tags,
        external_ips=spec.placement.external_ips,
    )


def request_template_of(spec: RunSpec, startup_script: str, former: str = "") -> RequestTemplate:
    """Return the queued resource by which an attempt's node is asked for.

    Its key is the same whenever the same try asks in this zone, so that the service itself makes
    one of two calls. Under a key that it knows, the service makes nothing anew, so that a further
    try after one that came to its end needs another key.

    Args:
        spec: The attempt.
        startup_script: What the node runs at each boot.
        former: The cloud's operation by which the same try asked here before, now over.
    """
    placement = spec.placement
    begun = spec.attempt_started.isoformat() if spec.attempt_started else ""
    key = f"{spec.run_url} {spec.created.isoformat()} {spec.attempt} {begun} {spec.zone} {former}"
    valid_s = placement.valid_until_s
    return RequestTemplate(
        node_id=spec.node_id,
        node=template_of(spec, startup_script),
        tier=tier_of(spec),
        valid_until=None if valid_s is None else timedelta(seconds=valid_s),
        reservation=reservation_of(spec),
        idempotency_key=str(uuid.uuid5(uuid.NAMESPACE_URL, key)),
    )


def tier_of(spec: RunSpec) -> Tier:
    """Return the tier of an attempt's queued resource; a reservation is always guaranteed."""
    if spec.scheduling is Scheduling.SPOT:
        return Tier.SPOT
    is_sure = spec.placement.guaranteed or spec.scheduling is Scheduling.RESERVED
    return Tier.GUARANTEED if is_sure else Tier.ON_DEMAND


def reservation_of(spec: RunSpec) -> str | None:
    """Return the full name of the reservation in the spec's zone, or None.

    Source: google/cloud/tpu/v2/cloud_tpu.proto, QueuedResource.reservation_name
    """
    name = spec.placement.reservation
    if not name or "/" in name:
        return name
    return f"{location_name(spec.project, spec.zone)}/reservations/{name}"


def labels_of(spec: RunSpec) -> dict[str, str]:
    """Return the labels by which an attempt's node is known again."""
    return {
        RUN_LABEL: spec.run,
        OWNER_LABEL: spec.owner,
        ATTEMPT_LABEL: str(spec.attempt),
    }


def create_node(spec: RunSpec, startup_script: str, note: str = "") -> PlanStep:
    """Return the CreateNode call of an attempt, its spec in full and its script by size."""
    template = template_of(spec, startup_script)
    scheduling = {
        Scheduling.SPOT: {"spot": True},
        Scheduling.PREEMPTIBLE: {"preemptible": True},
        Scheduling.RESERVED: {"reserved": True},
        Scheduling.ON_DEMAND: {},
    }[spec.scheduling]
    node = {**_node_shown(template, startup_script), "scheduling_config": scheduling}
    parent = location_name(spec.project, spec.zone)
    request = {"parent": parent, "node_id": spec.node_id, "node": node}
    target = node_name(spec.project, spec.zone, spec.node_id)
    return PlanStep(f"{TPU_SERVICE}/CreateNode", target, request, note)


def _node_shown(template: NodeTemplate, startup_script: str) -> dict[str, Any]:
    network: dict[str, Any] = {"enable_external_ips": template.external_ips}
    for key in ("network", "subnetwork"):
        if getattr(template, key):
            network[key] = getattr(template, key)
    node: dict[str, Any] = {
        "accelerator_type": template.accelerator_type,
        "runtime_version": template.runtime_version,
        "description": template.description,
        "network_config": network,
        "labels": dict(template.labels),
        "metadata": {
            STARTUP_KEY: f"({len(startup_script.encode())} bytes of bash)",
            SPEC_METADATA_KEY: json.loads(template.metadata[SPEC_METADATA_KEY]),
        },
    }
    if template.tags:
        node["tags"] = list(template.tags)
    if template.service_account:
        node["service_account"] = {"email": template.service_account}
    return node


def create_request(spec: RunSpec, startup_script: str, note: str = "") -> PlanStep:
    """Return the CreateQueuedResource call of an attempt."""
    template = request_template_of(spec, startup_script)
    parent = location_name(spec.project, spec.zone)
    node = _node_shown(template.node, startup_script)
    body: dict[str, Any] = {
        "tpu": {"node_spec": [{"parent": parent, "node_id": template.node_id, "node": node}]}
    }
    if template.tier:
        body[template.tier.value] = {}
    if template.valid_until is not None:
        seconds = f"{template.valid_until.total_seconds():g}s"
        body["queueing_policy"] = {"valid_until_duration": seconds}
    if template.reservation:
        body["reservation_name"] = template.reservation
    request = {
        "parent": parent,
        "queued_resource_id": spec.node_id,
        "queued_resource": body,
        "request_id": template.idempotency_key,
    }
    target = request_name(spec.project, spec.zone, spec.node_id)
    return PlanStep(f"{TPU_SERVICE}/CreateQueuedResource", target, request, note)


def create_in_each_zone(spec: RunSpec, startup_script: str) -> list[PlanStep]:
    """Return the call that asks for the node in each candidate zone, in the order of trying."""
    steps = []
    for at, zone in enumerate(spec.zones):
        there = replace(spec, zone=zone)
        note = "" if at == 0 else f"only if {spec.zones[at - 1]} has no capacity"
        if not spec.placement.queued:
            steps.append(create_node(there, startup_script, note))
            continue
        steps.append(create_request(there, startup_script, note))
        name = request_name(spec.project, zone, spec.node_id)
        steps.append(delete_request(name, "only if it fails: it would hold its quota for good"))
    return steps


def await_ready(spec: RunSpec) -> PlanStep:
    """Return the questions that follow a CreateNode."""
    name = node_name(spec.project, spec.zone, spec.node_id)
    if spec.placement.queued:
        name = request_name(spec.project, spec.zone, spec.node_id)
        method, note = "GetQueuedResource", "until it is ACTIVE and its node READY"
        return PlanStep(f"{TPU_SERVICE}/{method}", name, {"name": name}, note)
    return PlanStep(f"{TPU_SERVICE}/GetNode", name, {"name": name}, "until it is READY")


def delete_node(doomed: Doomed, note: str = "") -> PlanStep:
    """Return the DeleteNode call of a node."""
    return PlanStep(f"{TPU_SERVICE}/DeleteNode", doomed.name, {"name": doomed.name}, note)


def await_gone(name: str) -> PlanStep:
    """Return the questions that follow a DeleteNode."""
    return PlanStep(f"{TPU_SERVICE}/GetNode", name, {"name": name}, "until it is NOT_FOUND")


def delete_request(name: str, note: str = "") -> PlanStep:
    """Return the DeleteQueuedResource call of a request."""
    return PlanStep(f"{TPU_SERVICE}/DeleteQueuedResource", name, {"name": name}, note)


def write_spec(spec: RunSpec, note: str = "") -> PlanStep:
    """Return the writing of `run.json`."""
    request: dict[str, Any] = json.loads(encode_record(spec))
    return PlanStep("write file", spec_url(spec.run_url), request, note)


def write_bundle(url: str, size: int, sha256: str) -> PlanStep:
    """Return the writing of the trainer's code."""
    request = {"bytes": size, "sha256": sha256}
    return PlanStep("write file", url, request, "unless it is there already")
