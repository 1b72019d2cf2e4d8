"""Ends, in the journal, what has meanwhile come to its end in the cloud; asks nobody for it.

A launch without `--wait` is left while its node comes up. Whoever reads the journal next, and has a
listing at hand, sees that there is nothing left to do.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from tpudash.domain.node import NodeState
from tpudash.domain.operation import OperationKind, OperationState
from tpudash.domain.resource_name import ResourceName, is_same_resource
from tpudash.operations.payload import DeletePayload, Doomed, LaunchPayload, ResumePayload

if TYPE_CHECKING:
    from tpudash.domain.run import RunSpec
    from tpudash.domain.run_state import RunEvidence
    from tpudash.operations.course import Tools
    from tpudash.operations.desk import Survey
    from tpudash.operations.journal import JournalledOperation

End = tuple[OperationState, str]


def reconcile(tools: Tools, survey: Survey, run: str | None = None) -> None:
    """End what is over, of one run or of all that the survey covers.

    What somebody works on now is left alone, and so is what was asked for a moment ago.
    """
    settle = timedelta(seconds=tools.pace.settle_s)
    for operation in tools.journal.unfinished(survey.cloud.project):
        if run is not None and operation.run != run:
            continue
        if operation.run is not None and tools.journal.is_held(operation.run):
            continue
        if operation.asked is not None and tools.clock.now() - operation.asked < settle:
            continue
        end = _end_of(operation, survey)
        if end is not None:
            tools.journal.end(operation.operation_id, *end)


def _end_of(operation: JournalledOperation, survey: Survey) -> End | None:
    payload = operation.payload
    if isinstance(payload, LaunchPayload | ResumePayload):
        for evidence in survey.of(payload.spec.run):
            spec = evidence.spec
            if spec is not None and spec.created == payload.spec.created:
                return _end_of_making(payload.spec, evidence)
        return None
    if isinstance(payload, DeletePayload) and operation.kind is OperationKind.DELETE:
        return _end_of_deletion(payload, survey)
    return None


def _end_of_making(spec: RunSpec, evidence: RunEvidence) -> End | None:
    if evidence.attempt > spec.attempt:
        return OperationState.DONE, f"attempt {evidence.attempt} followed it"
    if evidence.attempt == spec.attempt and evidence.record is not None:
        return OperationState.DONE, f"the agent of attempt {spec.attempt} writes"
    node = evidence.node
    if node is None or node.attempt != spec.attempt:
        return None
    if node.is_dead:
        return OperationState.FAILED, f"{node.node_id} is {node.state}"
    if node.state == NodeState.READY:
        return OperationState.DONE, f"{node.node_id} is READY in {node.zone}"
    return None


def _end_of_deletion(payload: DeletePayload, survey: Survey) -> End | None:
    listed = {node.name: node for node in survey.nodes.nodes}
    for doomed in payload.doomed:
        node = listed.get(doomed.name)
        if node is not None and not _is_another(node.create_time, doomed):
            return None
    for name in payload.requests:
        if any(is_same_resource(name, one.name) for one in survey.requests.requests):
            return None
    silent = {*survey.nodes.unreachable, *survey.requests.unreachable}
    names = [*(one.name for one in payload.doomed), *payload.requests]
    if any(ResourceName.parse(name).location in silent for name in names):
        return None
    noted = all(_is_noted(run.url, survey) for run in payload.runs)
    return (OperationState.DONE, "everything that it named is gone") if noted else None


def _is_another(create_time: object, doomed: Doomed) -> bool:
    return None not in {create_time, doomed.create_time} and create_time != doomed.create_time


def _is_noted(url: str, survey: Survey) -> bool:
    """Whether the run was noted as deleted, or has gone on since."""
    specs = [one.spec for one in survey.evidence if one.spec and one.spec.run_url == url]
    return all(spec.deleted is not None or spec.attempt_started is None for spec in specs)
