"""The values that a worker's metadata server offers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpudash.emulator.identifiers import project_number

if TYPE_CHECKING:
    from tpudash.emulator.machines.metadata import Tree
    from tpudash.emulator.world.nodes import NodeRecord


def worker_endpoints(record: NodeRecord) -> str:
    """Return `worker-network-endpoints`: three fields per worker, the third an address.

    All workers of an emulated slice are processes of this machine, hence the loopback address.
    """
    return ",".join("unknown:unknown:127.0.0.1" for _ in range(record.accelerator.hosts))


def tpu_environment(record: NodeRecord, worker: int) -> str:
    """Return the `tpu-env` attribute: one `KEY: 'value'` a line, as TPU VMs have it."""
    accelerator = record.accelerator
    values = {
        "ACCELERATOR_TYPE": accelerator.name,
        "TYPE": record.message.accelerator_config.DESCRIPTOR.fields_by_name["type_"]
        .enum_type.values_by_number[record.message.accelerator_config.type_]
        .name,
        "TOPOLOGY": accelerator.topology,
        "CHIPS_PER_HOST_BOUNDS": f"2,{max(1, accelerator.chips_per_host // 2)},1",
        "NODE_ID": record.name.id,
        "ZONE": record.name.zone,
        "CONSUMER_PROJECT_ID": record.name.project,
        "CONSUMER_PROJECT_NUMBER": str(project_number(record.name.project)),
        "RUNTIME_VERSION": record.message.runtime_version,
        "WORKER_ID": str(worker),
        "HOSTS": str(accelerator.hosts),
        "EMULATED": "true",
    }
    return "".join(f"{key}: '{value}'\n" for key, value in values.items())


def _attributes(record: NodeRecord, worker: int) -> Tree:
    attributes: Tree = dict(sorted(record.message.metadata.items()))
    attributes |= {
        "accelerator-type": record.accelerator.name,
        "agent-worker-number": str(worker),
        "worker-network-endpoints": worker_endpoints(record),
        "tpu-env": tpu_environment(record, worker),
        "instance-id": record.name.id,
    }
    return attributes


def instance_tree(record: NodeRecord, worker: int, announced: dict[str, str]) -> Tree:
    """Return everything that worker number `worker` can read.

    Args:
        record: The node.
        worker: The worker's number.
        announced: Values set by events, e.g. `preempted`.
    """
    number = str(project_number(record.name.project))
    account: Tree = {
        "aliases": "default\n",
        "email": record.message.service_account.email,
        "scopes": "\n".join(record.message.service_account.scope) + "\n",
        "token": '{"access_token": "emulated-token", "expires_in": 3599, "token_type": "Bearer"}',
    }
    name = f"{record.name.id}-w-{worker}"
    instance: Tree = {
        "attributes": _attributes(record, worker),
        "hostname": f"{name}.{record.name.zone}.c.{record.name.project}.internal",
        "id": str(record.message.id + worker),
        "machine-type": f"projects/{number}/machineTypes/tpu-emulated",
        "maintenance-event": "NONE",
        "name": name,
        "preempted": "FALSE",
        "scheduling": {"preemptible": "TRUE" if record.preemptible else "FALSE"},
        "service-accounts": {"default": account, record.message.service_account.email: account},
        "zone": f"projects/{number}/zones/{record.name.zone}",
    }
    if record.maintenance:
        instance["upcoming-maintenance"] = dict(record.maintenance)
    instance |= announced
    return {
        "instance": instance,
        "project": {"numeric-project-id": number, "project-id": record.name.project},
        "universe": {"universe-domain": "googleapis.com"},
    }
