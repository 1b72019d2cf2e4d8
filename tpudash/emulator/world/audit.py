"""Audit log entries of node changes and host events.

Shapes after https://cloud.google.com/tpu/docs/audit-logs and public samples: writes land in
`cloudaudit.googleapis.com/activity`, an operation writes a first and a last entry, host events
land in `cloudaudit.googleapis.com/system_event`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from google.cloud.audit import audit_log_pb2
from google.logging.type import log_severity_pb2

from tpudash.emulator.world.logs import LogEntry

if TYPE_CHECKING:
    from tpudash.clock import Clock
    from tpudash.emulator.messages import Message
    from tpudash.emulator.world.logs import LogStore
    from tpudash.emulator.world.nodes import NodeRecord

_TPU_SERVICE = "tpu.googleapis.com"
_COMPUTE_SERVICE = "compute.googleapis.com"


class AuditLog:
    """Writes audit entries into the log store."""

    def __init__(self, clock: Clock, logs: LogStore) -> None:
        self._clock = clock
        self._logs = logs

    def operation_began(self, method: str, project: str, operation: Message, target: str) -> None:
        """Write the first entry of an operation; `method` is e.g. `CreateNode`."""
        entry = self._tpu_entry(method, project, operation, target)
        entry.operation.first = True
        self._write(project, [entry])

    def operation_ended(self, method: str, project: str, operation: Message, target: str) -> None:
        """Write the last entry of an operation; a failed one has severity ERROR and a status."""
        entry = self._tpu_entry(method, project, operation, target, failed=operation.error)
        entry.operation.last = True
        self._write(project, [entry])

    def refused(self, method: str, project: str, target: str, status: Any) -> None:
        """Write the entry of a call that was refused."""
        self._write(project, [self._tpu_entry(method, project, None, target, failed=status)])

    def instance_event(self, record: NodeRecord, method: str) -> None:
        """Write one entry per worker's instance, e.g. `compute.instances.preempted`."""
        entries = []
        for worker in range(record.accelerator.hosts):
            name = f"{record.name.id}-w-{worker}"
            target = f"projects/{record.name.project}/zones/{record.name.zone}/instances/{name}"
            log = audit_log_pb2.AuditLog(
                service_name=_COMPUTE_SERVICE, method_name=method, resource_name=target
            )
            entry = self._entry(record.name.project, "system_event", log)
            entry.resource.type = "gce_instance"
            entry.resource.labels.update(
                project_id=record.name.project, zone=record.name.zone, instance_id=name
            )
            entries.append(entry)
        self._write(record.name.project, entries)

    def terminated(self, record: NodeRecord, reason: str) -> None:
        """Write `tpu.nodes.terminate` with its reason, once per node."""
        log = audit_log_pb2.AuditLog(
            service_name=_TPU_SERVICE,
            method_name="tpu.nodes.terminate",
            resource_name=str(record.name),
        )
        log.metadata.update({"terminateReason": reason})
        entry = self._entry(record.name.project, "system_event", log)
        self._label(entry, record.name.project, _TPU_SERVICE, "tpu.nodes.terminate")
        self._write(record.name.project, [entry])

    def _tpu_entry(
        self, method: str, project: str, operation: Any, target: str, failed: Any = None
    ) -> Any:
        full_method = f"google.cloud.tpu.v2.Tpu.{method}"
        log = audit_log_pb2.AuditLog(
            service_name=_TPU_SERVICE, method_name=full_method, resource_name=target
        )
        log.authentication_info.principal_email = "emulator-user@example.com"
        entry = self._entry(project, "activity", log)
        entry.severity = log_severity_pb2.NOTICE
        self._label(entry, project, _TPU_SERVICE, full_method)
        if operation is not None:
            entry.operation.id = operation.name
            entry.operation.producer = _TPU_SERVICE
        if failed is not None and failed.code:
            log.status.CopyFrom(failed)
            entry.proto_payload.Pack(log)
            entry.severity = log_severity_pb2.ERROR
        return entry

    def _entry(self, project: str, log_id: str, log: Any) -> Any:
        encoded = quote(f"cloudaudit.googleapis.com/{log_id}", safe="")
        entry = LogEntry(log_name=f"projects/{project}/logs/{encoded}")
        entry.proto_payload.Pack(log)
        entry.timestamp.FromDatetime(self._clock.now())
        entry.severity = log_severity_pb2.INFO
        return entry

    @staticmethod
    def _label(entry: Any, project: str, service: str, method: str) -> None:
        entry.resource.type = "audited_resource"
        entry.resource.labels.update(project_id=project, service=service, method=method)

    def _write(self, project: str, entries: list[Any]) -> None:
        self._logs.write(project, entries)
