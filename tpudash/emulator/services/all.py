"""All of Google's services that the emulator answers for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpudash.emulator.services.billing import BillingService
from tpudash.emulator.services.budgets import BudgetsService
from tpudash.emulator.services.catalog import CatalogService
from tpudash.emulator.services.locations import LocationsService
from tpudash.emulator.services.logging import LoggingService
from tpudash.emulator.services.monitoring import MonitoringService
from tpudash.emulator.services.operations import OperationsService
from tpudash.emulator.services.tpu import TpuService

if TYPE_CHECKING:
    from tpudash.emulator.rpc import Service
    from tpudash.emulator.world.world import World


def google_services(world: World) -> list[Service]:
    """Return the tables of every service."""
    services = (
        TpuService(world),
        OperationsService(world),
        LocationsService(world),
        MonitoringService(world),
        LoggingService(world),
        CatalogService(world),
        BillingService(world),
        BudgetsService(world),
    )
    return [service.table() for service in services]
