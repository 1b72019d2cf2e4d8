"""Several projects as one: what is listed is joined, what is made goes to the first of them.

A project that does not answer takes none of the others with it. It stands among what is unreachable
by its name, beside the zones in which it had nodes, so that nothing there is taken for gone.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol, TypeVar

from tpudash.domain.node import NodeListing
from tpudash.domain.request import RequestListing
from tpudash.errors import TpudashError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from datetime import datetime, timedelta

    from tpudash.domain.metric import MetricSeries
    from tpudash.domain.node import Maintenance, Node, NodeTemplate
    from tpudash.domain.request import QueuedResource, RequestTemplate
    from tpudash.gateways.protocols import CloudOperation, MonitoringGateway, TpuGateway

AnswerT = TypeVar("AnswerT")
logger = logging.getLogger(__name__)


class _InZone(Protocol):
    @property
    def zone(self) -> str: ...


class SeveralTpu:
    """`TpuGateway` over those of several projects, the first of which is one's own.

    Resources are named in full, so that any gateway may ask for those of every project.
    """

    def __init__(self, gateways: Mapping[str, TpuGateway]) -> None:
        self._gateways = dict(gateways)
        self._own = next(iter(self._gateways.values()))
        self._zones: dict[str, set[str]] = {}

    async def list_nodes(self, location: str = "-") -> NodeListing:
        """List the nodes of all projects.

        Raises:
            TpudashError: No project could be listed; what the first of them said.
        """
        answers = await asked_of_each(self._gateways, lambda one: one.list_nodes(location))
        refused = _refused(answers)
        found: list[Node] = []
        silent: list[str] = []
        for project, answer in answers.items():
            if isinstance(answer, TpudashError):
                silent += self._silent_in(project)
                continue
            self._remember(project, answer.nodes)
            found += answer.nodes
            silent += answer.unreachable
        return NodeListing(tuple(found), tuple(dict.fromkeys(silent)), refused)

    async def list_requests(self, location: str = "-") -> RequestListing:
        """List the queued resources of all projects, as `list_nodes` does nodes."""
        answers = await asked_of_each(self._gateways, lambda one: one.list_requests(location))
        refused = _refused(answers)
        found: list[QueuedResource] = []
        silent: list[str] = []
        for project, answer in answers.items():
            if isinstance(answer, TpudashError):
                silent += self._silent_in(project)
                continue
            self._remember(project, answer.requests)
            found += answer.requests
            silent += answer.unreachable
        return RequestListing(tuple(found), tuple(dict.fromkeys(silent)), refused)

    async def list_maintenance(self, location: str = "-") -> Mapping[str, Maintenance]:
        """Return what maintenance is announced in any project that answers."""
        answers = await asked_of_each(self._gateways, lambda one: one.list_maintenance(location))
        _refused(answers)
        return {
            name: announced
            for answer in answers.values()
            if not isinstance(answer, TpudashError)
            for name, announced in answer.items()
        }

    def _silent_in(self, project: str) -> list[str]:
        return [f"projects/{project}", *sorted(self._zones.get(project, ()))]

    def _remember(self, project: str, things: Iterable[_InZone]) -> None:
        self._zones.setdefault(project, set()).update(thing.zone for thing in things)

    async def get_node(self, name: str) -> Node:
        """Return one node by full name."""
        return await self._own.get_node(name)

    async def get_request(self, name: str) -> QueuedResource:
        """Return one queued resource by full name."""
        return await self._own.get_request(name)

    async def get_operation(self, name: str) -> CloudOperation:
        """Return a long-running operation as it stands."""
        return await self._own.get_operation(name)

    async def create_node(self, zone: str, node_id: str, template: NodeTemplate) -> CloudOperation:
        """Begin to create a node in the first project."""
        return await self._own.create_node(zone, node_id, template)

    async def delete_node(self, name: str) -> CloudOperation:
        """Begin to delete a node."""
        return await self._own.delete_node(name)

    async def create_request(
        self, zone: str, request_id: str, template: RequestTemplate
    ) -> CloudOperation:
        """Begin to create a queued resource in the first project."""
        return await self._own.create_request(zone, request_id, template)

    async def delete_request(self, name: str, *, force: bool = False) -> CloudOperation:
        """Begin to delete a queued resource."""
        return await self._own.delete_request(name, force=force)

    async def list_zones(self) -> tuple[str, ...]:
        """List the zones that the first project sees."""
        return await self._own.list_zones()

    async def list_accelerator_types(self, zone: str) -> tuple[str, ...]:
        """List the accelerator types that a zone offers the first project."""
        return await self._own.list_accelerator_types(zone)

    async def list_runtime_versions(self, zone: str) -> tuple[str, ...]:
        """List the runtime versions that a zone offers the first project."""
        return await self._own.list_runtime_versions(zone)


class SeveralMonitoring:
    """`MonitoringGateway` over those of several projects."""

    def __init__(self, gateways: Mapping[str, MonitoringGateway]) -> None:
        self._gateways = dict(gateways)

    async def list_series(
        self, metric: str, *, start: datetime, end: datetime, period: timedelta
    ) -> tuple[MetricSeries, ...]:
        """Read one metric for all nodes of all projects.

        Raises:
            TpudashError: No project could be read; what the first of them said.
        """
        answers = await asked_of_each(
            self._gateways,
            lambda one: one.list_series(metric, start=start, end=end, period=period),
        )
        _refused(answers)
        return tuple(
            series
            for answer in answers.values()
            if not isinstance(answer, TpudashError)
            for series in answer
        )


GatewayT = TypeVar("GatewayT")


async def asked_of_each(
    gateways: Mapping[str, GatewayT], ask: Callable[[GatewayT], Awaitable[AnswerT]]
) -> dict[str, AnswerT | TpudashError]:
    """Ask all projects at once; a refusal is an answer.

    Raises:
        TpudashError: All of them refused; what the first of them said.
    """

    async def one(gateway: GatewayT) -> AnswerT | TpudashError:
        try:
            return await ask(gateway)
        except TpudashError as error:
            return error

    async with asyncio.TaskGroup() as group:
        tasks = {
            project: group.create_task(one(gateway), name=f"ask {project}")
            for project, gateway in gateways.items()
        }
    answers = {project: task.result() for project, task in tasks.items()}
    if all(isinstance(answer, TpudashError) for answer in answers.values()):
        raise next(answer for answer in answers.values() if isinstance(answer, TpudashError))
    return answers


def _refused(answers: Mapping[str, object]) -> dict[str, str]:
    """Return why projects were not listed, in words."""
    errors = {
        project: answer for project, answer in answers.items() if isinstance(answer, TpudashError)
    }
    for project, error in errors.items():
        logger.info("project %s is left out: %s", project, error)
    return {f"projects/{project}": str(error) for project, error in errors.items()}
