"""The emulated cloud put together: tables, rules and their shared clock and chance."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from tpudash.emulator.catalogue import Catalogue, load_catalogue
from tpudash.emulator.errors import ApiError, Refusals
from tpudash.emulator.faults import Faults
from tpudash.emulator.identifiers import Identifiers
from tpudash.emulator.world.audit import AuditLog
from tpudash.emulator.world.budgets import Budgets
from tpudash.emulator.world.lifecycle import NodeLifecycle
from tpudash.emulator.world.limits import Capacity, Quotas
from tpudash.emulator.world.logs import LogStore
from tpudash.emulator.world.maintenance import Maintenance
from tpudash.emulator.world.nodes import Nodes
from tpudash.emulator.world.operations import Operations
from tpudash.emulator.world.past import Past
from tpudash.emulator.world.queued_resources import QueuedResources
from tpudash.emulator.world.request_ids import RequestIds
from tpudash.emulator.world.series import SeriesStore
from tpudash.emulator.world.skewed_clock import SkewedClock
from tpudash.emulator.world.state_file import StateFile
from tpudash.emulator.world.storms import PreemptionStorms
from tpudash.emulator.world.tasks import Tasks
from tpudash.emulator.world.validation import NodeValidator, tensorflow_installed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.clock import Clock
    from tpudash.emulator.settings import EmulatorSettings
    from tpudash.emulator.world.host import Host


@dataclass(frozen=True, slots=True)
class Deps:
    """What the rules of nodes and queued requests share."""

    clock: Clock
    settings: EmulatorSettings
    catalogue: Catalogue
    identifiers: Identifiers
    refusals: Refusals
    validator: NodeValidator
    state: StateFile
    operations: Operations
    nodes: Nodes
    capacity: Capacity
    quotas: Quotas
    faults: Faults
    audit: AuditLog
    series: SeriesStore
    host: Host
    tasks: Tasks


class World:
    """One emulated cloud.

    Args:
        settings: Durations, sizes and the state folder.
        clock: Time for everything in it.
        host: Runs the nodes' processes.
        has_tensorflow: Whether TensorFlow images can be provided.
    """

    def __init__(
        self,
        settings: EmulatorSettings,
        clock: Clock,
        host: Host,
        has_tensorflow: Callable[[], bool] = tensorflow_installed,
    ) -> None:
        self.settings = settings
        chance = random.Random(settings.seed)  # noqa: S311  (ids, not secrets)
        self.faults = Faults(clock, chance)
        clock = self.clock = SkewedClock(clock, self.faults.skew_s)
        self.identifiers = Identifiers(chance, clock)
        self.refusals = Refusals(self.identifiers)
        self.catalogue = load_catalogue()
        self.tasks = Tasks()
        self.host = host
        self.state = StateFile(settings.state_dir / "state.sqlite3", clock.now())
        self._validator = NodeValidator(self.catalogue, self.refusals, has_tensorflow)
        try:
            self._load()
        except (DecodeError, LookupError, ValueError, ApiError) as error:
            self.state.start_over(clock.now(), f"unreadable record: {error!r}")
            self._load()

    def _load(self) -> None:
        """Build the tables from the state file."""
        clock, settings = self.clock, self.settings
        self.operations = Operations(clock, self.identifiers, self.state)
        self.request_ids = RequestIds(clock, self.operations, self.state)
        self.nodes = Nodes(self.catalogue, self.state)
        self.faults.listeners.clear()
        self.capacity = Capacity(self.nodes, self.state, self.faults)
        self.quotas = Quotas(self.catalogue, self.nodes, self.state)
        self.logs = LogStore(clock, self.identifiers, self.state, settings.max_log_entries)
        self.series = SeriesStore()
        self.budgets = Budgets(self.identifiers, self.state)
        self.audit = AuditLog(clock, self.logs)
        deps = Deps(
            clock=clock,
            settings=settings,
            catalogue=self.catalogue,
            identifiers=self.identifiers,
            refusals=self.refusals,
            validator=self._validator,
            state=self.state,
            operations=self.operations,
            nodes=self.nodes,
            capacity=self.capacity,
            quotas=self.quotas,
            faults=self.faults,
            audit=self.audit,
            series=self.series,
            host=self.host,
            tasks=self.tasks,
        )
        self.lifecycle = NodeLifecycle(deps)
        self.maintenance = Maintenance(deps, self.lifecycle.events)
        self.queued_resources = QueuedResources(deps, self.lifecycle)
        self.past = Past(clock, self.faults, self.nodes, self.queued_resources)
        self.storms = PreemptionStorms(deps, self.lifecycle.events)

    def resume(self) -> None:
        """Take up the work that an earlier process left behind; needs a running loop."""
        self.lifecycle.resume()
        self.queued_resources.resume()

    async def close(self) -> None:
        """End the background work and close the state file."""
        await self.tasks.cancel_all()
        self.state.close()
