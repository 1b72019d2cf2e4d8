"""What a plan carries for those who carry it out, in a form that the journal can hold.

Everything that matters is decided in the plan, the attempt's number above all, so that an operation
that is taken up again after a crash does the same and not one thing more.
"""

from __future__ import annotations

from dataclasses import dataclass

# msgspec resolves these annotations when it decodes, so they must exist at run time.
from datetime import datetime  # noqa: TC003
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from tpudash.domain.operation import OperationKind
from tpudash.domain.run import RunSpec  # noqa: TC001

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class Doomed:
    """A node that is to be deleted, and how to know that it is still the same one.

    Attributes:
        create_time: When it was created; another node may have taken its name since.
    """

    name: str
    create_time: datetime | None = None
    run: str | None = None
    owner: str | None = None
    requests: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DoomedRun:
    """A run that loses all its nodes, and the folder in which that is noted."""

    name: str
    owner: str
    url: str


@dataclass(frozen=True, kw_only=True)
class LaunchPayload:
    """A first attempt. `operation_id` names the unfinished launch that it goes on with."""

    spec: RunSpec
    operation_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class ResumePayload:
    """A further attempt, and the nodes of earlier ones that have to go first."""

    spec: RunSpec
    doomed: tuple[Doomed, ...] = ()
    operation_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class DeletePayload:
    """Nodes and queued requests to delete, and the runs that are then noted as deleted.

    Attributes:
        requests: Full names of queued resources.
        runs: Runs that lose all their nodes.
    """

    project: str
    doomed: tuple[Doomed, ...] = ()
    requests: tuple[str, ...] = ()
    runs: tuple[DoomedRun, ...] = ()


Payload: TypeAlias = LaunchPayload | ResumePayload | DeletePayload

_KINDS: Final[Mapping[OperationKind, type[Payload]]] = {
    OperationKind.LAUNCH: LaunchPayload,
    OperationKind.RESUME: ResumePayload,
    OperationKind.DELETE: DeletePayload,
}


def encode_payload(payload: Payload) -> dict[str, Any]:
    """Return a payload as JSON-like data."""
    built: dict[str, Any] = msgspec.to_builtins(payload)
    return built


def decode_payload(kind: OperationKind, data: Mapping[str, Any]) -> Payload:
    """Return a payload from what `encode_payload` made.

    Raises:
        ValueError: The data is of another shape.
    """
    try:
        return msgspec.convert(data, type=_KINDS[kind], strict=False)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error
