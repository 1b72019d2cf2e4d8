"""Filters in the Logging query language, with everything quoted that comes from elsewhere.

Source: https://cloud.google.com/logging/docs/view/logging-query-language
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.domain.node import ATTEMPT_LABEL, RUN_LABEL
from tpudash.gateways.convert import to_timestamp_text

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

MOST_CHARACTERS: Final = 20_000
"""The longest filter that Cloud Logging takes."""

WORKERS_FILTER: Final = 'resource.type="tpu_worker"'


def quoted(text: str) -> str:
    """Return a text as a string of the query language, whatever is in it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(_printable(character) for character in escaped) + '"'


def _printable(character: str) -> str:
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    if character in named:
        return named[character]
    return character if character.isprintable() else f"\\u{ord(character):04x}"


def all_of(*parts: str) -> str:
    """Join filters so that all must hold; empty ones are left out."""
    given = [part for part in parts if part.strip()]
    if len(given) == 1:
        return given[0]
    return " AND ".join(f"({part})" if _needs_brackets(part) else part for part in given)


def _needs_brackets(part: str) -> bool:
    return " OR " in part or "\n" in part


def node_filter(node_id: str, *, zone: str | None = None, worker: str | None = None) -> str:
    """Return a filter for what the workers of one node wrote."""
    parts = [WORKERS_FILTER, f"resource.labels.node_id={quoted(node_id)}"]
    if zone:
        parts.append(f"resource.labels.zone={quoted(zone)}")
    if worker is not None:
        parts.append(f"resource.labels.worker_id={quoted(worker)}")
    return all_of(*parts)


def audit_filter(methods: Collection[str], since: datetime) -> str:
    """Return a filter for audit entries of the Cloud TPU API about some of its methods.

    Args:
        methods: The last parts of their names, such as `CreateNode`.
        since: The earliest time of an entry.
    """
    named = " OR ".join(f"protoPayload.methodName:{quoted(name)}" for name in methods)
    return all_of(
        'logName:"cloudaudit.googleapis.com"',
        'protoPayload.serviceName="tpu.googleapis.com"',
        f"timestamp>={quoted(to_timestamp_text(since))}",
        named,
    )


def run_filter(run: str, *, attempt: int | None = None) -> str:
    """Return a filter for what one run wrote, on all its nodes or in one attempt."""
    parts = [f'labels."{RUN_LABEL}"={quoted(run)}']
    if attempt is not None:
        parts.append(f'labels."{ATTEMPT_LABEL}"={quoted(str(attempt))}')
    return all_of(*parts)


def since_filter(time: datetime) -> str:
    """Return a filter for entries of this time and later."""
    return f"timestamp>={quoted(to_timestamp_text(time))}"
