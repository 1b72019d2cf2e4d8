"""`google.logging.v2.LoggingServiceV2`: write, list, tail and delete log entries."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from google.api import monitored_resource_pb2
from google.cloud.logging_v2.types import logging as logging_types
from google.protobuf import empty_pb2
from google.rpc import code_pb2

from tpudash.emulator.errors import (
    ApiError,
    invalid_argument,
    invalid_field,
    make_status,
    not_found,
)
from tpudash.emulator.filters.lexer import FilterError
from tpudash.emulator.filters.log_filter import LogFilter, compile_log_filter
from tpudash.emulator.rpc import Call, Method, Service, raw
from tpudash.emulator.services.paging import MAX_PAGE_BYTES, decode_token, encode_token
from tpudash.emulator.services.resources import MONITORED_RESOURCES
from tpudash.emulator.world.logs import LogEntry, Tail

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tpudash.emulator.world.world import World

_LOG_NAME = re.compile(r"(projects|organizations|folders|billingAccounts)/([^/]+)/logs/([^/]+)")
_MAX_ENTRY_BYTES = 256 * 1024
_MAX_TAILS = 10
_MAX_RESOURCE_NAMES = 100
_TAIL_BATCH = 1_000
_ORDERS = {"": False, "timestamp": False, "timestamp asc": False, "timestamp desc": True}
_TailResponse = raw(logging_types.TailLogEntriesResponse)
_empty = empty_pb2.Empty


def _filter(text: str) -> LogFilter:
    try:
        return compile_log_filter(text)
    except FilterError as error:
        raise invalid_argument(f"Unparseable filter: {error}") from error


def _projects(resource_names: Any) -> set[str]:
    if not resource_names or len(resource_names) > _MAX_RESOURCE_NAMES:
        raise invalid_field("resource_names", f"1 to {_MAX_RESOURCE_NAMES} are required")
    for name in resource_names:
        if not name.startswith("projects/"):
            raise invalid_field("resource_names", f'"{name}" is not projects/*')
    return {name.split("/")[1] for name in resource_names}


class LoggingService:
    """Answers for Cloud Logging."""

    def __init__(self, world: World) -> None:
        self._world = world

    def table(self) -> Service:
        """Return the service with all its methods."""
        rows: dict[str, tuple[Any, Any, bool]] = {
            "WriteLogEntries": (self.write, logging_types.WriteLogEntriesResponse, False),
            "ListLogEntries": (self.list_entries, logging_types.ListLogEntriesResponse, False),
            "ListLogs": (self.list_logs, logging_types.ListLogsResponse, False),
            "ListMonitoredResourceDescriptors": (
                self.list_resources,
                logging_types.ListMonitoredResourceDescriptorsResponse,
                False,
            ),
            "DeleteLog": (self.delete_log, _empty, True),
        }
        methods = [
            Method(
                name,
                raw(getattr(logging_types, f"{name}Request")),
                raw(response),
                function,
                mutating=mutating,
            )
            for name, (function, response, mutating) in rows.items()
        ]
        request = raw(logging_types.TailLogEntriesRequest)
        methods.append(Method("TailLogEntries", request, _TailResponse, self.tail, streaming=True))
        return Service("google.logging.v2.LoggingServiceV2", tuple(methods))

    # ----------------------------------------------------------------- write

    async def write(self, request: Any, _: Call) -> Any:
        """Write entries; with partial_success the good ones are kept beside bad ones."""
        good: dict[str, list[Any]] = {}
        errors: dict[int, Any] = {}
        for index, given in enumerate(request.entries):
            entry = self._merged(request, given)
            problem = self._problem(entry)
            if problem is not None:
                errors[index] = problem
                continue
            project = entry.log_name.split("/")[1]
            good.setdefault(project, []).append(entry)
        if errors and not request.partial_success:
            raise self._partial_error(errors)
        if not request.dry_run:
            for project, entries in good.items():
                self._world.logs.write(project, entries)
        if errors:
            raise self._partial_error(errors)
        return raw(logging_types.WriteLogEntriesResponse)()

    @staticmethod
    def _merged(request: Any, given: Any) -> Any:
        entry = LogEntry()
        entry.CopyFrom(given)
        entry.log_name = entry.log_name or request.log_name
        if not entry.resource.type:
            entry.resource.CopyFrom(request.resource)
        for key, value in request.labels.items():
            if key not in entry.labels:
                entry.labels[key] = value
        return entry

    @staticmethod
    def _problem(entry: Any) -> Any:
        if not _LOG_NAME.fullmatch(entry.log_name):
            text = f'Log name "{entry.log_name}" is not valid'
        elif not entry.resource.type:
            text = "Log entry with no monitored resource type"
        elif entry.ByteSize() > _MAX_ENTRY_BYTES:
            text = f"Log entry with size {entry.ByteSize()} exceeds maximum size of 256.0K"
        else:
            return None
        return make_status(code_pb2.INVALID_ARGUMENT, text)

    @staticmethod
    def _partial_error(errors: dict[int, Any]) -> ApiError:
        detail = raw(logging_types.WriteLogEntriesPartialErrors)()
        for index, status in errors.items():
            detail.log_entry_errors[index].CopyFrom(status)
        first = next(iter(errors.values()))
        return ApiError(first.code, first.message, detail)

    # ------------------------------------------------------------------ read

    async def list_entries(self, request: Any, _: Call) -> Any:
        """List entries that match, in time order."""
        projects = _projects(request.resource_names)
        order = " ".join(request.order_by.split())
        if order not in _ORDERS:
            raise invalid_field("order_by", 'must be "timestamp asc" or "timestamp desc"')
        chosen = _filter(request.filter)
        if not 0 <= request.page_size <= 1_000:
            raise invalid_field("page_size", "must be 0 to 1000")
        limit = request.page_size or 50
        after = decode_token(request.page_token)
        response = raw(logging_types.ListLogEntriesResponse)()
        size, last = 0, None
        async for key, entry in self._world.logs.scan(
            chosen.since_ns,
            chosen.until_ns,
            tuple(after) if after else None,
            newest_first=_ORDERS[order],
        ):
            if entry.log_name.split("/")[1] not in projects or not chosen.matches(entry):
                continue
            size += entry.ByteSize()
            if len(response.entries) >= limit or (last is not None and size > MAX_PAGE_BYTES):
                response.next_page_token = encode_token(last)
                break
            response.entries.append(entry)
            last = key
        return response

    async def tail(self, requests: AsyncIterator[Any], _: Call) -> AsyncIterator[Any]:
        """Stream entries as they arrive, until the caller leaves."""
        incoming = aiter(requests)
        request = await anext(incoming)
        projects = _projects(request.resource_names)
        chosen = _filter(request.filter)
        if self._world.logs.tails >= _MAX_TAILS:
            text = "Quota exceeded for live tailing: 10 open tails per project."
            raise ApiError(code_pb2.RESOURCE_EXHAUSTED, text)
        window_s = 2.0
        if request.HasField("buffer_window"):
            window_s = min(max(request.buffer_window.ToTimedelta().total_seconds(), 0.0), 60.0)
        tail = self._world.logs.follow(
            lambda entry: entry.log_name.split("/")[1] in projects and chosen.matches(entry)
        )
        try:
            while True:
                await tail.arrived.wait()
                if window_s:
                    await self._world.clock.sleep(window_s)
                tail.arrived.clear()
                while tail.backlog:
                    yield self._batch(tail)
        finally:
            self._world.logs.unfollow(tail)

    @staticmethod
    def _batch(tail: Tail) -> Any:
        response = _TailResponse()
        batch: list[Any] = []
        size = 0
        while tail.backlog and len(batch) < _TAIL_BATCH and size < MAX_PAGE_BYTES // 2:
            batch.append(tail.backlog.popleft())
            size += batch[-1].ByteSize()
        batch.sort(key=lambda entry: entry.timestamp.ToNanoseconds())
        response.entries.extend(batch)
        if tail.suppressed:
            info = response.suppression_info.add()
            info.reason = logging_types.TailLogEntriesResponse.SuppressionInfo.Reason.NOT_CONSUMED
            info.suppressed_count = tail.suppressed
            tail.suppressed = 0
        return response

    async def list_logs(self, request: Any, _: Call) -> Any:
        """List the logs of a project that have entries."""
        parents = {request.parent, *request.resource_names}
        names = sorted(
            name
            for name in self._world.logs.log_names()
            if any(name.startswith(f"{parent}/logs/") for parent in parents if parent)
        )
        after = decode_token(request.page_token)
        names = [name for name in names if after is None or name > after]
        limit = min(request.page_size or 50, 1_000)
        response = raw(logging_types.ListLogsResponse)(log_names=names[:limit])
        if len(names) > limit:
            response.next_page_token = encode_token(names[limit - 1])
        return response

    async def delete_log(self, request: Any, _: Call) -> Any:
        """Delete the entries of a log."""
        if not self._world.logs.delete_log(request.log_name):
            raise not_found(request.log_name)
        return _empty()

    async def list_resources(self, request: Any, _: Call) -> Any:  # noqa: ARG002
        """List the monitored resources that entries are written for."""
        response = raw(logging_types.ListMonitoredResourceDescriptorsResponse)()
        for name, labels in MONITORED_RESOURCES.items():
            descriptor = monitored_resource_pb2.MonitoredResourceDescriptor(type=name)
            for label in labels:
                descriptor.labels.add(key=label)
            response.resource_descriptors.append(descriptor)
        return response
