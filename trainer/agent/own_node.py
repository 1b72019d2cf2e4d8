"""Removes the node this agent runs on, when its run asked for that."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainer.agent.metadata import MetadataClient, NodeIdentity

_TIMEOUT_S = 20.0
_REST = "https://tpu.googleapis.com/v2/"


class RemovalError(Exception):
    """The node was not removed; the text says why."""


def remove(node: NodeIdentity, run: str, metadata: MetadataClient, endpoint: str) -> str:
    """Ask the Cloud TPU API to delete this node, if it still belongs to the run.

    Returns:
        The name of the operation.

    Raises:
        RemovalError: the node is another run's, or the API refused.
    """
    try:
        from google.cloud import tpu_v2
    except ImportError:
        if endpoint:
            raise RemovalError("google-cloud-tpu is not installed") from None
        return _remove_by_rest(node, run, metadata)
    try:
        client = _client(tpu_v2, endpoint)
        found = client.get_node(name=node.name, timeout=_TIMEOUT_S, retry=None)
        _check_owner(dict(found.labels), node, run)
        operation = client.delete_node(name=node.name, timeout=_TIMEOUT_S, retry=None)
        return str(operation.operation.name)
    except RemovalError:
        raise
    except Exception as error:
        raise RemovalError(f"{type(error).__name__}: {error}") from error


def _client(tpu_v2: Any, endpoint: str) -> Any:
    if not endpoint:
        return tpu_v2.TpuClient()
    import grpc

    transport = tpu_v2.TpuClient.get_transport_class("grpc")
    return tpu_v2.TpuClient(transport=transport(channel=grpc.insecure_channel(endpoint)))


def _check_owner(labels: dict[str, str], node: NodeIdentity, run: str) -> None:
    if labels.get("tpudash-run") != run:
        raise RemovalError(f"{node.node} is not labelled with the run {run}; it is left alone")


def _remove_by_rest(node: NodeIdentity, run: str, metadata: MetadataClient) -> str:
    try:
        answer = metadata.get("instance/service-accounts/default/token")
        token = str(json.loads(answer or "{}")["access_token"])
        _check_owner(_call("GET", node.name, token).get("labels", {}), node, run)
        return str(_call("DELETE", node.name, token).get("name", ""))
    except RemovalError:
        raise
    except Exception as error:
        raise RemovalError(f"{type(error).__name__}: {error}") from error


def _call(method: str, name: str, token: str) -> dict[str, Any]:
    request = urllib.request.Request(  # noqa: S310 - the scheme is fixed
        _REST + name, method=method, headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - as above
        loaded = json.loads(answer.read())
    return loaded if isinstance(loaded, dict) else {}
