"""`google.cloud.tpu.v1.Tpu`: the catalogue, which `gcloud compute tpus` reads in v1."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from google.longrunning import operations_pb2

from tpudash.emulator.errors import not_found
from tpudash.emulator.identifiers import ResourceName, parse_parent
from tpudash.emulator.rpc import Call, Method, Service, raw
from tpudash.emulator.services.by_name import carry_over

if TYPE_CHECKING:
    from tpudash.emulator.services.tpu import TpuService

NAME = "google.cloud.tpu.v1.Tpu"
_OFFERED = ("ListAcceleratorTypes", "GetAcceleratorType")
_TENSORFLOW = re.compile(r"tpu-vm-tf-(\d+\.\d+\.\d+)")


class TpuV1Service:
    """Answers for v1 by asking v2; nodes of v1 had another architecture, and there are none."""

    def __init__(self, stable: TpuService) -> None:
        self._stable = stable

    def table(self) -> Service:
        """Return the service with the methods that are offered."""
        stable = {method.name: method for method in self._stable.table().methods}
        methods = [_adapted(stable[name]) for name in _OFFERED]
        versions = _tensorflow_versions(stable["ListRuntimeVersions"])
        return Service(NAME, (*methods, *_no_nodes(), versions))


def _adapted(method: Method) -> Method:
    from google.cloud.tpu_v1.types import cloud_tpu

    response = raw(getattr(cloud_tpu, method.response.DESCRIPTOR.name))
    request = raw(getattr(cloud_tpu, f"{method.name}Request"))
    function: Any = method.function

    async def answer(message: Any, call: Call) -> Any:
        return carry_over(await function(carry_over(message, method.request()), call), response())

    return Method(method.name, request, response, answer)


def _no_nodes() -> tuple[Method, ...]:
    from google.cloud.tpu_v1.types import cloud_tpu

    response = raw(cloud_tpu.ListNodesResponse)

    async def listed(message: Any, _: Call) -> Any:
        parse_parent(message.parent)
        return response()

    async def got(message: Any, _: Call) -> Any:
        raise not_found(str(ResourceName.parse(message.name, "nodes")))

    return (
        Method("ListNodes", raw(cloud_tpu.ListNodesRequest), response, listed),
        Method("GetNode", raw(cloud_tpu.GetNodeRequest), raw(cloud_tpu.Node), got),
        Method("DeleteNode", raw(cloud_tpu.DeleteNodeRequest), operations_pb2.Operation, got),
    )


def _tensorflow_versions(runtimes: Method) -> Method:
    """Return what lists the releases of TensorFlow that there are images of."""
    from google.cloud.tpu_v1.types import cloud_tpu

    response = raw(cloud_tpu.ListTensorFlowVersionsResponse)
    function: Any = runtimes.function

    async def answer(message: Any, call: Call) -> Any:
        request = runtimes.request(parent=message.parent)
        offered = (await function(request, call)).runtime_versions
        found = {match[1] for one in offered if (match := _TENSORFLOW.match(one.version))}
        listing = response()
        for version in sorted(found, key=lambda text: tuple(map(int, text.split(".")))):
            name = f"{message.parent}/tensorflowVersions/{version}"
            listing.tensorflow_versions.add(name=name, version=version)
        return listing

    return Method(
        "ListTensorFlowVersions", raw(cloud_tpu.ListTensorFlowVersionsRequest), response, answer
    )
