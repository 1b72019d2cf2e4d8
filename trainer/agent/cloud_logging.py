"""Writes to Cloud Logging with Google's gapic client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.agent.shipper import Entry, SendError

if TYPE_CHECKING:
    from trainer.agent.metadata import NodeIdentity
    from trainer.agent.spec import Spec

_TIMEOUT_S = 5.0


class CloudLoggingSender:
    """Sends entries of one worker under the resource `tpu_worker`.

    Resource and labels: https://cloud.google.com/logging/docs/api/v2/resource-list (tpu_worker).
    """

    def __init__(self, node: NodeIdentity, spec: Spec, endpoint: str) -> None:
        self._node = node
        self._labels = {"tpudash-run": spec.run, "tpudash-attempt": str(spec.attempt)}
        self._endpoint = endpoint
        self._client: Any = None

    def send(self, entries: list[Entry]) -> None:
        """Write the entries.

        Raises:
            SendError: the service did not take them.
        """
        try:
            from google.api_core import exceptions
        except ImportError as error:
            raise SendError(f"google-cloud-logging is not installed: {error}") from error
        try:
            client = self._connect()
        except Exception as error:
            raise SendError(f"{type(error).__name__}: {error}") from error
        try:
            request = self._request(entries)
        except Exception as error:
            raise SendError(f"cannot be encoded: {error}", refused=True) from error
        try:
            client.write_log_entries(request=request, timeout=_TIMEOUT_S, retry=None)
        except exceptions.InvalidArgument as error:
            raise SendError(str(error), refused=True) from error
        except exceptions.GoogleAPICallError as error:
            raise SendError(str(error)) from error
        except Exception as error:
            raise SendError(f"{type(error).__name__}: {error}") from error

    def _connect(self) -> Any:
        if self._client is None:
            from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client

            if self._endpoint:
                import grpc

                transport = LoggingServiceV2Client.get_transport_class("grpc")
                channel = grpc.insecure_channel(self._endpoint)
                self._client = LoggingServiceV2Client(transport=transport(channel=channel))
            else:
                self._client = LoggingServiceV2Client()
        return self._client

    def _request(self, entries: list[Entry]) -> Any:
        from google.api.monitored_resource_pb2 import MonitoredResource
        from google.cloud.logging_v2.types import WriteLogEntriesRequest

        resource = MonitoredResource(
            type="tpu_worker",
            labels={
                "project_id": self._node.project,
                "zone": self._node.zone,
                "node_id": self._node.node,
                "worker_id": str(self._node.worker),
            },
        )
        return WriteLogEntriesRequest(
            log_name=f"projects/{self._node.project}/logs/tpudash",
            resource=resource,
            labels=self._labels,
            entries=[self._entry(entry) for entry in entries],
            partial_success=True,
        )

    def _entry(self, entry: Entry) -> Any:
        from google.cloud.logging_v2.types import LogEntry
        from google.logging.type.log_severity_pb2 import LogSeverity
        from google.protobuf.json_format import ParseDict
        from google.protobuf.struct_pb2 import Struct
        from google.protobuf.timestamp_pb2 import Timestamp

        moment = Timestamp()
        moment.FromJsonString(entry["ts"])
        severity = entry["severity"]
        known = severity in LogSeverity.keys()  # noqa: SIM118 - an enum wrapper, not a dict
        payload: dict[str, Any] = (
            {"json_payload": ParseDict(entry["json"], Struct())}
            if "json" in entry
            else {"text_payload": entry["text"]}
        )
        return LogEntry(
            insert_id=entry["insert_id"],
            timestamp=moment,
            severity=LogSeverity.Value(severity if known else "DEFAULT"),
            labels={**self._labels, "stream": entry["stream"]},
            **payload,
        )
