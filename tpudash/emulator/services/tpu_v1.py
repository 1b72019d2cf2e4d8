"""`google.cloud.tpu.v1.Tpu`: the catalogue, which `gcloud compute tpus` reads in v1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tpudash.emulator.identifiers import parse_parent
from tpudash.emulator.rpc import Call, Method, Service, raw
from tpudash.emulator.services.by_name import carry_over

if TYPE_CHECKING:
    from tpudash.emulator.services.tpu import TpuService

NAME = "google.cloud.tpu.v1.Tpu"
_OFFERED = ("ListAcceleratorTypes", "GetAcceleratorType")


class TpuV1Service:
    """Answers for v1 by asking v2; nodes of v1 had another architecture, and there are none."""

    def __init__(self, stable: TpuService) -> None:
        self._stable = stable

    def table(self) -> Service:
        """Return the service with the methods that are offered."""
        stable = {method.name: method for method in self._stable.table().methods}
        methods = [_adapted(stable[name]) for name in _OFFERED]
        return Service(NAME, (*methods, _no_nodes()))


def _adapted(method: Method) -> Method:
    from google.cloud.tpu_v1.types import cloud_tpu

    response = raw(getattr(cloud_tpu, method.response.DESCRIPTOR.name))
    request = raw(getattr(cloud_tpu, f"{method.name}Request"))
    function: Any = method.function

    async def answer(message: Any, call: Call) -> Any:
        return carry_over(await function(carry_over(message, method.request()), call), response())

    return Method(method.name, request, response, answer)


def _no_nodes() -> Method:
    from google.cloud.tpu_v1.types import cloud_tpu

    response = raw(cloud_tpu.ListNodesResponse)

    async def answer(message: Any, _: Call) -> Any:
        parse_parent(message.parent)
        return response()

    return Method("ListNodes", raw(cloud_tpu.ListNodesRequest), response, answer)
