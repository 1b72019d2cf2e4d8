"""The metadata server of a TPU VM: who this node is, what it is to do, whether it must go.

Source: https://cloud.google.com/compute/docs/metadata/querying-metadata (paths, header,
wait_for_change), and the attributes that TPU VMs add (agent-worker-number, tpu-env).
"""

from __future__ import annotations

import contextlib
import http.client
import re
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class MetadataError(Exception):
    """The metadata server did not answer."""


class MetadataClient:
    """Reads the metadata server."""

    def __init__(self, host: str) -> None:
        self._base = f"http://{host}/computeMetadata/v1/"
        # A proxy of the environment must never see these requests, they can carry tokens.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> MetadataClient:
        """Return a client of `GCE_METADATA_HOST`, or of the cloud's own server."""
        return cls(environment.get("GCE_METADATA_HOST") or "metadata.google.internal")

    def get(self, path: str, *, timeout_s: float = 5.0) -> str | None:
        """Return a value, or None if there is no such key.

        Raises:
            MetadataError: no answer, or a refusal.
        """
        request = urllib.request.Request(  # noqa: S310 - always http, as the server demands
            self._base + path, headers={"Metadata-Flavor": "Google"}
        )
        try:
            with self._opener.open(request, timeout=timeout_s) as answer:
                return str(answer.read().decode("utf-8", "replace"))
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise MetadataError(f"{path}: HTTP {error.code}") from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise MetadataError(f"{path}: {error}") from error

    def get_patiently(self, path: str, *, patience_s: float = 30.0) -> str | None:
        """Like `get`, asking again for a while: at boot the server may not answer yet."""
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            with contextlib.suppress(MetadataError):
                return self.get(path)
            time.sleep(0.5)
        return self.get(path)


@dataclass(frozen=True)
class NodeIdentity:
    """Who this worker is, in the words of the Cloud TPU API."""

    project: str
    zone: str
    node: str
    worker: int
    accelerator_type: str
    workers: int = 1
    """Number of hosts of the slice."""
    coordinator: str = ""
    """Address of worker 0, by which the workers of a slice find each other."""
    instance: str = ""
    """Name of the hidden VM, which the node's metrics carry instead of the node's name."""
    instance_id: str = ""
    """Number of the hidden VM."""

    @property
    def name(self) -> str:
        """Full resource name of the node."""
        return f"projects/{self.project}/locations/{self.zone}/nodes/{self.node}"


def read_identity(metadata: MetadataClient) -> NodeIdentity:
    """Ask the metadata server who this worker is.

    On a real TPU VM `instance/name` is the name of the hidden VM; the node's id is in `tpu-env`.

    Raises:
        MetadataError: the server does not answer or lacks the node's name or zone.
    """
    environment = _tpu_env(metadata.get_patiently("instance/attributes/tpu-env") or "")
    zone = environment.get("ZONE") or metadata.get_patiently("instance/zone") or ""
    instance = (metadata.get_patiently("instance/name") or "").strip()
    node = environment.get("NODE_ID") or instance
    project = metadata.get_patiently("project/project-id") or ""
    worker = metadata.get_patiently("instance/attributes/agent-worker-number") or "0"
    kind = metadata.get_patiently("instance/attributes/accelerator-type") or ""
    endpoints = metadata.get_patiently("instance/attributes/worker-network-endpoints") or ""
    if not (zone and node and project):
        raise MetadataError("the metadata server tells no node name, zone or project")
    number = int(worker) if worker.strip().isdecimal() else 0
    addresses = [each.strip().rsplit(":", 1)[-1] for each in endpoints.split(",") if each.strip()]
    return NodeIdentity(
        project,
        zone.strip().rsplit("/", 1)[-1],
        node.strip(),
        number,
        kind,
        max(1, len(addresses)),
        addresses[0] if addresses else "",
        instance,
        (metadata.get_patiently("instance/id") or "").strip(),
    )


def _tpu_env(text: str) -> dict[str, str]:
    pairs = re.findall(r"^(\w+): *'?(.*?)'? *$", text, re.MULTILINE)
    return {key: value for key, value in pairs if value}


class Watch:
    """Follows one metadata value with long polls and reports each change."""

    def __init__(
        self, metadata: MetadataClient, path: str, on_value: Callable[[str], None]
    ) -> None:
        self._metadata = metadata
        self._path = path
        self._on_value = on_value
        self._stop = threading.Event()

    def start(self) -> None:
        """Begin to follow in a thread that never keeps the process alive."""
        threading.Thread(target=self._follow, name=f"watch {self._path}", daemon=True).start()

    def stop(self) -> None:
        """Stop following, at the latest when the current poll returns."""
        self._stop.set()

    def _follow(self) -> None:
        known: str | None = None
        query = self._path
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                value = self._metadata.get(query, timeout_s=45.0)
            except MetadataError:
                self._stop.wait(1.0)
                continue
            if value is not None and value != known:
                known = value
                self._on_value(value.strip())
            elif time.monotonic() - began < 1.0:
                # A server without long polls answers at once.
                self._stop.wait(1.0)
            query = f"{self._path}?wait_for_change=true&timeout_sec=30"
