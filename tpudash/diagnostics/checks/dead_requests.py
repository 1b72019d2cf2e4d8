"""Whether queued requests that will never be fulfilled still hold quota."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.domain.request import FINISHED_REQUEST_STATES
from tpudash.store.snapshot import REQUESTS, SourceState

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "dead-requests",
    "No dead request holds quota",
    Scope.PROJECT,
    why="A request that is FAILED or SUSPENDED never comes back and holds quota until deleted.",
    rank=33,
    source=REQUESTS,
    group=Group.COSTS,
)


def check(evidence: Evidence) -> Finding:
    """Warn of requests that are FAILED or SUSPENDED."""
    requests = evidence.snapshot.requests.values()
    dead = [request for request in requests if request.state in FINISHED_REQUEST_STATES]
    if dead:
        text = "; ".join(
            f"{request.request_id} is {request.state}"
            + (f" ({request.failure})" if request.failure else "")
            for request in dead
        )
        first = dead[0]
        return ABOUT.warned(
            evidence,
            text,
            advice="Delete them, and ask again if the capacity is still wanted.",
            command=f"gcloud compute tpus queued-resources delete {first.request_id} "
            f"--zone={first.zone}",
        )
    source = evidence.snapshot.sources.get(REQUESTS)
    if source is None or source.state is not SourceState.OK:
        return ABOUT.unknown(evidence, "the queued requests could not be listed")
    return ABOUT.passed(evidence, "no request is FAILED or SUSPENDED")
