"""All of Google's services that the emulator answers for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tpudash.emulator.rpc import LazyService
from tpudash.emulator.services import tpu_alpha
from tpudash.emulator.services.billing import BillingService
from tpudash.emulator.services.budgets import BudgetsService
from tpudash.emulator.services.catalog import CatalogService
from tpudash.emulator.services.locations import LocationsService
from tpudash.emulator.services.logging import LoggingService
from tpudash.emulator.services.monitoring import MonitoringService
from tpudash.emulator.services.operations import OperationsService
from tpudash.emulator.services.tpu import TpuService
from tpudash.emulator.services.tpu_v1 import TpuV1Service

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.emulator.rpc import Service
    from tpudash.emulator.world.world import World


@dataclass(frozen=True)
class GoogleServices:
    """The tables of one world, by where they are served."""

    world: World

    @cached_property
    def tpu(self) -> TpuService:
        """Version 2 of the Cloud TPU API, which answers for the other versions too."""
        return TpuService(self.world)

    def over_grpc(self) -> list[Service | LazyService]:
        """Return every service that is spoken over gRPC."""
        services = (
            self.tpu,
            OperationsService(self.world),
            LocationsService(self.world),
            MonitoringService(self.world),
            LoggingService(self.world),
            CatalogService(self.world),
            BillingService(self.world),
            BudgetsService(self.world),
        )
        tables = [service.table() for service in services]
        return [*tables, LazyService(tpu_alpha.NAME, self._alpha)]

    def over_rest(self) -> dict[str, Callable[[], tuple[Service, ...]]]:
        """Return what builds the services of each version of the Cloud TPU API."""
        return {
            "v1": lambda: (self._v1(), *self._mixins()),
            "v2": lambda: (self.tpu.table(), *self._mixins()),
            "v2alpha1": lambda: (self._alpha(), *self._mixins()),
        }

    def _mixins(self) -> tuple[Service, ...]:
        return OperationsService(self.world).table(), LocationsService(self.world).table()

    def _alpha(self) -> Service:
        return tpu_alpha.TpuAlphaService(self.world, self.tpu).table()

    def _v1(self) -> Service:
        return TpuV1Service(self.tpu).table()
