"""Services as tables of methods, free of any transport.

A service is a name and a table from method name to (request class, response class, function).
The gRPC face turns the tables into handlers; another face can do the same.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Unary: TypeAlias = Callable[[Any, "Call"], Awaitable[Any]]
Bidirectional: TypeAlias = Callable[[AsyncIterator[Any], "Call"], AsyncIterator[Any]]


@dataclass(frozen=True, slots=True)
class Call:
    """What a function may know of the call it answers."""

    method: str
    """Full name, `google.cloud.tpu.v2.Tpu/CreateNode`."""

    metadata: dict[str, str] = field(default_factory=dict)
    """Request metadata by lower-case key."""

    version: str = ""
    """Version of the API in the request's path; over gRPC only the method's name tells it."""


@dataclass(frozen=True, slots=True)
class Method:
    """One row of a service's table."""

    name: str
    request: Any
    """Class of the request; plain protobuf."""

    response: Any
    function: Unary | Bidirectional
    mutating: bool = False
    """Whether the call changes something that a user would call a resource."""

    streaming: bool = False
    """Whether both sides stream."""

    enrich: Callable[[dict[str, Any]], None] | None = None
    """Adds to the JSON of an answer what the service tells and its packages' protos do not know."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service of one API."""

    name: str
    """Full name, `google.cloud.tpu.v2.Tpu`."""

    methods: tuple[Method, ...]


@dataclass(frozen=True, slots=True)
class LazyService:
    """A service whose messages are imported only when somebody calls it."""

    name: str
    table: Callable[[], Service]


def raw(message_class: Any) -> Any:
    """Return the plain protobuf class of a proto-plus class; plain classes are returned as is."""
    return message_class.pb() if hasattr(message_class, "pb") else message_class
