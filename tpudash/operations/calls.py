"""The calls that operations make, and the same calls as they are shown in a plan."""

from __future__ import annotations

import json
from dataclasses import replace
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
from tpudash.domain.resource_name import location_name, node_name
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
        labels=labels_of(spec),
        metadata={
            STARTUP_KEY: startup_script,
            SPEC_METADATA_KEY: msgspec.json.encode(spec).decode(),
        },
        description=f"tpudash run {spec.run}, attempt {spec.attempt}",
    )


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
    node: dict[str, Any] = {
        "accelerator_type": template.accelerator_type,
        "runtime_version": template.runtime_version,
        "description": template.description,
        "scheduling_config": scheduling,
        "network_config": {"enable_external_ips": template.external_ips},
        "labels": dict(template.labels),
        "metadata": {
            STARTUP_KEY: f"({len(startup_script.encode())} bytes of bash)",
            SPEC_METADATA_KEY: json.loads(template.metadata[SPEC_METADATA_KEY]),
        },
    }
    parent = location_name(spec.project, spec.zone)
    request = {"parent": parent, "node_id": spec.node_id, "node": node}
    target = node_name(spec.project, spec.zone, spec.node_id)
    return PlanStep(f"{TPU_SERVICE}/CreateNode", target, request, note)


def create_in_each_zone(spec: RunSpec, startup_script: str) -> list[PlanStep]:
    """Return the CreateNode call for each candidate zone, in the order of trying."""
    return [
        create_node(
            replace(spec, zone=zone),
            startup_script,
            "" if at == 0 else f"only if {spec.zones[at - 1]} has no capacity",
        )
        for at, zone in enumerate(spec.zones)
    ]


def await_ready(spec: RunSpec) -> PlanStep:
    """Return the questions that follow a CreateNode."""
    name = node_name(spec.project, spec.zone, spec.node_id)
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
