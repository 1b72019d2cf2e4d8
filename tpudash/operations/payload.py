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
    """A further attempt, and the nodes and requests of earlier ones that have to go first."""

    spec: RunSpec
    doomed: tuple[Doomed, ...] = ()
    requests: tuple[str, ...] = ()
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


@dataclass(frozen=True, kw_only=True)
class SupervisePayload:
    """A run that is to be resumed by itself, and the limits of that.

    Attributes:
        zones: Candidate zones from now on; empty keeps the run's own.
        queued: Whether nodes are asked for by queued resources; None keeps the run's own way.
        operation_id: The unfinished supervision that it goes on with.
    """

    project: str
    run: str
    owner: str
    run_url: str
    created: datetime
    max_attempts: int
    max_cost_usd: float | None = None
    resume_stalled: bool = False
    zones: tuple[str, ...] = ()
    queued: bool | None = None
    valid_until_s: float | None = None
    operation_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class StandDownPayload:
    """A supervision that is to end, wherever it goes on."""

    project: str
    run: str
    run_url: str


Payload: TypeAlias = (
    LaunchPayload | ResumePayload | DeletePayload | SupervisePayload | StandDownPayload
)

_KINDS: Final[Mapping[OperationKind, type[Payload]]] = {
    OperationKind.LAUNCH: LaunchPayload,
    OperationKind.RESUME: ResumePayload,
    OperationKind.DELETE: DeletePayload,
    OperationKind.SUPERVISE: SupervisePayload,
    OperationKind.STAND_DOWN: StandDownPayload,
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
