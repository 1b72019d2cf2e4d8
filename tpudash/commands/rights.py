"""Tries each API with a call that only reads, and asks the project which rights are held."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from tpudash.diagnostics.rights import NAMED, Tried
from tpudash.errors import NotFoundError, TpudashError, UnreachableError
from tpudash.pollers.metrics import METRIC_TYPES
from tpudash.store.snapshot import NODES, PRICES, REQUESTS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tpudash.commands.facts import Facts
    from tpudash.commands.session import Session
    from tpudash.gateways.protocols import Cloud

EACH_S: Final = 10.0
AT_ONCE: Final = 4
MAY_BE_ABSENT: Final = frozenset({"tpu.nodes.get", "monitoring.timeSeries.list"})
"""A node may go meanwhile, and a project that never had one does not know its metrics."""
A_MOMENT: Final = timedelta(minutes=5)


async def try_rights(session: Session, facts: Facts, cloud: Cloud) -> Tried:
    """Try everything in one project, a few things at a time; a fault in one stays in it."""
    slots = asyncio.Semaphore(AT_ONCE)
    # Of several projects nobody knows yet which of them answered.
    calls = {} if session.cloud.each else _known(facts)

    async def attempt(key: str, call: Callable[[], Awaitable[Any]]) -> None:
        async with slots:
            try:
                async with asyncio.timeout(EACH_S):
                    await call()
            except TpudashError as error:
                # Whoever may not look is told so; that a thing is not there was let through.
                is_absent = isinstance(error, NotFoundError) and key in MAY_BE_ABSENT
                calls[key] = None if is_absent else error
            except TimeoutError:
                calls[key] = UnreachableError(f"no answer within {EACH_S:g} s")
            else:
                calls[key] = None

    wanted = _calls(session, facts, cloud)
    await asyncio.gather(*(attempt(key, call) for key, call in wanted.items() if key not in calls))
    missing, silence = await _asked(cloud)
    return Tried(calls, missing, silence, is_local=session.settings.endpoint is not None)


def _known(facts: Facts) -> dict[str, TpudashError | None]:
    """Return what the reading of nodes and prices has told already."""
    if NODES in facts.failures:
        return {"tpu.nodes.list": facts.failures[NODES]}
    return {
        "tpu.nodes.list": None,
        "queued resources": facts.failures.get(REQUESTS),
        "prices": facts.failures.get(PRICES),
    }


def _calls(session: Session, facts: Facts, cloud: Cloud) -> dict[str, Callable[[], Awaitable[Any]]]:
    """Return a call for each right that one can be made for."""
    settings = session.settings
    end = session.clock.now()

    async def zone() -> str:
        zones = settings.zones or await cloud.tpu.list_zones()
        if not zones:
            raise NotFoundError("the project sees no zone")
        return str(zones[0])

    async def types() -> None:
        await cloud.tpu.list_accelerator_types(await zone())

    async def runtimes() -> None:
        await cloud.tpu.list_runtime_versions(await zone())

    async def budgets() -> None:
        info = await cloud.billing.billing_info()
        if info.account:
            await cloud.billing.list_covering_budgets(info.account)

    calls: dict[str, Callable[[], Awaitable[Any]]] = {
        "tpu.nodes.list": cloud.tpu.list_nodes,
        "tpu.locations.list": cloud.tpu.list_zones,
        "queued resources": cloud.tpu.list_requests,
        "tpu.acceleratortypes.list": types,
        "tpu.runtimeversions.list": runtimes,
        "monitoring.timeSeries.list": lambda: cloud.monitoring.list_series(
            METRIC_TYPES[0], start=end - A_MOMENT, end=end, period=timedelta(minutes=1)
        ),
        "logging.logEntries.list": lambda: cloud.logging.list_entries(
            f'timestamp>="{(end - A_MOMENT).isoformat()}"', limit=1
        ),
        "prices": cloud.billing.list_tpu_prices,
        "billing.budgets.list": budgets,
    }
    own = (node for node in facts.listing.nodes if node.project == cloud.project)
    node = next(own, None)
    if node is not None:
        calls["tpu.nodes.get"] = lambda: cloud.tpu.get_node(node.name)
    if settings.bucket and settings.bucket.startswith("gs://"):
        bucket = settings.bucket
        calls["storage.objects.list"] = lambda: cloud.bucket.list(bucket)
    access = cloud.access
    if access is not None and settings.endpoint is None:
        calls["quota limits"] = access.quota_limits
    return calls


async def _asked(cloud: Cloud) -> tuple[frozenset[str] | None, str]:
    """Return which of the named permissions the project says are missing, or why it does not."""
    access = cloud.access
    if access is None:
        return None, "there is nobody to ask"
    try:
        return await access.missing_permissions(NAMED), ""
    except TpudashError as error:
        return None, str(error)
