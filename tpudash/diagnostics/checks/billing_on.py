"""Whether a billing account pays for the project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.failed_operations import failure_of_operation, failure_of_spec
from tpudash.domain.failure import ErrorClass
from tpudash.domain.probe import BillingFacts, ProbeKey, ProbeKind

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding


def _probe(evidence: Evidence) -> ProbeKey | None:  # noqa: ARG001  (always the same question)
    return ProbeKey(ProbeKind.BILLING)


ABOUT: Final = About(
    "billing-on",
    "Billing is linked",
    Scope.PROJECT,
    why="Without a billing account, and on a free trial, no TPU can be created.",
    rank=2,
    group=Group.CREATION,
    probe=_probe,
)


def check(evidence: Evidence) -> Finding:
    """Fail without an open account, and when the cloud refused a node for it."""
    project = evidence.snapshot.connection.project if evidence.snapshot.connection else "PROJECT"
    failures = [
        *map(failure_of_operation, evidence.snapshot.operations.values()),
        *(failure_of_spec(run.spec) for run in evidence.runs_in_question()),
    ]
    refused = [one for one in failures if one and one.error_class is ErrorClass.BILLING]
    if refused:
        return ABOUT.failed(
            evidence,
            refused[-1].words,
            advice="Link an open account, and upgrade a free trial: it may not use TPUs.",
            command=f"gcloud billing projects describe {project}",
        )
    answer = ABOUT.answer(evidence)
    facts = answer.value if answer else None
    if not isinstance(facts, BillingFacts):
        return ABOUT.unanswered(evidence, command=f"gcloud billing projects describe {project}")
    if facts.account and facts.enabled:
        return ABOUT.passed(
            evidence, f"{facts.account} pays; whether it is a free trial the API does not say"
        )
    missing = "the account is closed" if facts.account else "no billing account is linked"
    return ABOUT.failed(
        evidence,
        missing,
        advice="Link an open billing account to the project.",
        command=f"gcloud billing projects link {project} --billing-account=ACCOUNT_ID",
    )
