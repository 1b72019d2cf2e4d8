"""Asks what checks want to know of the world: each question alone, in time, and not too often."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tpudash.diagnostics.checks.permissions_held import OPERATING, VIEWING
from tpudash.domain.probe import (
    BillingFacts,
    PortState,
    ProbeKey,
    ProbeKind,
    ProbeResult,
    ZoneOffer,
)
from tpudash.errors import NotFoundError, TpudashError
from tpudash.pollers.creations import read_creations

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from tpudash.clock import Clock
    from tpudash.domain.node import Worker
    from tpudash.gateways.protocols import AccessGateway, Cloud

    Ask = Callable[[Cloud, ProbeKey], Awaitable[Any]]

logger = logging.getLogger(__name__)

LIMIT_S: Final = 8.0
PARALLEL: Final = 4
MOST_AT_ONCE: Final = 40
GOOD_FOR: Final = {
    ProbeKind.BILLING: timedelta(minutes=10),
    ProbeKind.BUDGETS: timedelta(minutes=10),
    ProbeKind.ZONE_OFFER: timedelta(minutes=30),
    ProbeKind.BUCKET: timedelta(hours=1),
    ProbeKind.PERMISSIONS: timedelta(minutes=15),
    ProbeKind.QUOTA: timedelta(minutes=10),
    ProbeKind.FIREWALL: timedelta(minutes=15),
    ProbeKind.SSH_PORT: timedelta(minutes=5),
    ProbeKind.SSH_KEY: timedelta(minutes=5),
    ProbeKind.GUEST_ATTRIBUTES: timedelta(minutes=5),
    ProbeKind.MAINTENANCE: timedelta(minutes=10),
    ProbeKind.CREATIONS: timedelta(seconds=30),
}
FAILED_FOR: Final = timedelta(minutes=2)
SSH_PORT: Final = 22
CONNECT_S: Final = 3.0
MOST_WORKERS: Final = 8
KEY_FILE: Final = "~/.ssh/google_compute_engine"


class ProbeBook:
    """All answers so far.

    Args:
        clock: Tells how old an answer is.
        limit_s: How long one question may take.
        journal: The file in which this machine's operations stand, or None where there is none.
    """

    def __init__(
        self, clock: Clock, limit_s: float = LIMIT_S, *, journal: Path | None = None
    ) -> None:
        self._clock = clock
        self._limit_s = limit_s
        self._asking = {**ASKING, ProbeKind.CREATIONS: _creations_in(journal)}
        self._results: dict[ProbeKey, ProbeResult] = {}

    @property
    def results(self) -> Mapping[ProbeKey, ProbeResult]:
        """The answers, also those that are old."""
        return dict(self._results)

    def due(self, keys: Iterable[ProbeKey]) -> list[ProbeKey]:
        """Return which questions have no fresh answer; what nobody asks any more is forgotten."""
        wanted = set(keys)
        self._results = {key: found for key, found in self._results.items() if key in wanted}
        return sorted(key for key in wanted if self._is_due(key))[:MOST_AT_ONCE]

    def _is_due(self, key: ProbeKey) -> bool:
        found = self._results.get(key)
        if found is None:
            return True
        good_for = FAILED_FOR if found.failure else GOOD_FOR[key.kind]
        return self._clock.now() - found.as_of >= good_for

    async def ask(self, cloud: Cloud, keys: Iterable[ProbeKey]) -> None:
        """Ask some questions, a few at a time; a fault in one stays in it."""
        slots = asyncio.Semaphore(PARALLEL)

        async def one(key: ProbeKey) -> None:
            async with slots:
                self._results[key] = await self._ask(cloud, key)

        await asyncio.gather(*(one(key) for key in keys))

    async def _ask(self, cloud: Cloud, key: ProbeKey) -> ProbeResult:
        now = self._clock.now()
        try:
            async with asyncio.timeout(self._limit_s):
                return ProbeResult(now, await self._asking[key.kind](cloud, key))
        except TimeoutError:
            failure = f"no answer within {self._limit_s:g} s"
        except TpudashError as error:
            failure = str(error)
        except Exception as error:
            logger.exception("probe %s %s failed", key.kind, key.about)
            failure = f"{type(error).__name__}: {error}"
        return ProbeResult(now, failure=failure or "no answer")


async def _billing(cloud: Cloud, _: ProbeKey) -> BillingFacts:
    info = await cloud.billing.billing_info()
    return BillingFacts(info.account, info.enabled)


async def _budgets(cloud: Cloud, _: ProbeKey) -> Any:
    info = await cloud.billing.billing_info()
    if not info.account:
        raise NotFoundError("no billing account is linked")
    return await cloud.billing.list_covering_budgets(info.account)


async def _zone_offer(cloud: Cloud, key: ProbeKey) -> ZoneOffer:
    types, runtimes = await asyncio.gather(
        cloud.tpu.list_accelerator_types(key.about), cloud.tpu.list_runtime_versions(key.about)
    )
    return ZoneOffer(frozenset(types), frozenset(runtimes))


async def _bucket(cloud: Cloud, key: ProbeKey) -> str | None:
    return await cloud.bucket.location(key.about)


async def _permissions(cloud: Cloud, _: ProbeKey) -> frozenset[str]:
    return await _access(cloud).missing_permissions((*VIEWING, *OPERATING))


async def _quota(cloud: Cloud, _: ProbeKey) -> Any:
    return await _access(cloud).quota_limits()


async def _firewall(cloud: Cloud, key: ProbeKey) -> Any:
    return await _access(cloud).ssh_rules(key.about)


async def _guest_attributes(cloud: Cloud, key: ProbeKey) -> int:
    return await _access(cloud).host_keys(key.about)


async def _maintenance(cloud: Cloud, _: ProbeKey) -> Any:
    return await cloud.tpu.list_maintenance()


def _creations_in(journal: Path | None) -> Ask:
    async def ask(cloud: Cloud, _: ProbeKey) -> Any:
        if journal is None:
            raise NotFoundError("there is no journal to read")
        return await asyncio.to_thread(read_creations, journal, cloud.project)

    return ask


async def _ssh_key(_: Cloud, __: ProbeKey) -> str:
    return await asyncio.to_thread(_key_file)


def _key_file() -> str:
    path = Path(KEY_FILE).expanduser()
    return str(path) if path.exists() else ""


async def _ssh_ports(cloud: Cloud, key: ProbeKey) -> dict[int, PortState]:
    node = await cloud.tpu.get_node(key.about)
    workers = node.workers[:MOST_WORKERS]
    states = await asyncio.gather(*(_port_of(worker) for worker in workers))
    return {worker.index: state for worker, state in zip(workers, states, strict=True)}


async def _port_of(worker: Worker) -> PortState:
    if not worker.external_ip:
        return PortState.NO_ADDRESS
    try:
        async with asyncio.timeout(CONNECT_S):
            _, writer = await asyncio.open_connection(worker.external_ip, SSH_PORT)
    except ConnectionRefusedError:
        return PortState.REFUSED
    except (TimeoutError, OSError):
        return PortState.SILENT
    writer.close()
    return PortState.OPEN


def _access(cloud: Cloud) -> AccessGateway:
    if cloud.access is None:
        raise NotFoundError("this endpoint does not say")
    return cloud.access


ASKING: Final[Mapping[ProbeKind, Ask]] = {
    ProbeKind.BILLING: _billing,
    ProbeKind.BUDGETS: _budgets,
    ProbeKind.ZONE_OFFER: _zone_offer,
    ProbeKind.BUCKET: _bucket,
    ProbeKind.PERMISSIONS: _permissions,
    ProbeKind.QUOTA: _quota,
    ProbeKind.FIREWALL: _firewall,
    ProbeKind.SSH_PORT: _ssh_ports,
    ProbeKind.SSH_KEY: _ssh_key,
    ProbeKind.GUEST_ATTRIBUTES: _guest_attributes,
    ProbeKind.MAINTENANCE: _maintenance,
    ProbeKind.CREATIONS: _creations_in(None),
}
