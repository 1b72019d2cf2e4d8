"""The protobuf classes behind Google's client packages.

The packages wrap their messages (proto-plus); a server that handles thousands of them is served
better by the plain classes underneath, which is what `Type.pb()` hands out.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from google.cloud.tpu_v2.types import cloud_tpu

Message: TypeAlias = Any
"""A protobuf message whose generated class carries no type information."""

Node: Any = cloud_tpu.Node.pb()
QueuedResource: Any = cloud_tpu.QueuedResource.pb()
OperationMetadata: Any = cloud_tpu.OperationMetadata.pb()

NodeState = cloud_tpu.Node.State
NodeHealth = cloud_tpu.Node.Health
ApiVersion = cloud_tpu.Node.ApiVersion
RequestState = cloud_tpu.QueuedResourceState.State
StateInitiator = cloud_tpu.QueuedResourceState.StateInitiator


def state_name(node: Message) -> str:
    """Return Google's word for the state of a node, e.g. `READY`."""
    return str(NodeState(node.state).name)
