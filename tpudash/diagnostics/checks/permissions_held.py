"""Whether whoever is signed in may do what this program does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.domain.probe import ProbeKey, ProbeKind

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

VIEWING: Final = {
    "tpu.nodes.list": "roles/tpu.viewer",
    "tpu.nodes.get": "roles/tpu.viewer",
    "tpu.locations.list": "roles/tpu.viewer",
    "monitoring.timeSeries.list": "roles/monitoring.viewer",
    "logging.logEntries.list": "roles/logging.viewer",
}
OPERATING: Final = {
    "tpu.nodes.create": "roles/tpu.admin",
    "tpu.nodes.delete": "roles/tpu.admin",
    "tpu.operations.get": "roles/tpu.admin",
    "iam.serviceAccounts.actAs": "roles/iam.serviceAccountUser",
}
"""Each right, with the least role that is known to hold it.

Source: https://cloud.google.com/tpu/docs/access-control
"""


def _probe(evidence: Evidence) -> ProbeKey | None:
    return None if evidence.is_emulator else ProbeKey(ProbeKind.PERMISSIONS)


ABOUT: Final = About(
    "permissions-held",
    "Permissions are held",
    Scope.PROJECT,
    why="A missing right looks like a missing node, or fails only when it is needed most.",
    rank=3,
    group=Group.CREATION,
    probe=_probe,
)


def check(evidence: Evidence) -> Finding:
    """Fail for a right to look, warn of a right to change that an operator lacks."""
    if evidence.is_emulator:
        return ABOUT.not_applicable(evidence, "the emulator asks for no rights")
    answer = ABOUT.answer(evidence)
    missing = answer.value if answer else None
    project = evidence.snapshot.connection.project if evidence.snapshot.connection else "PROJECT"
    if not isinstance(missing, frozenset):
        return ABOUT.unanswered(evidence, command=f"gcloud projects get-iam-policy {project}")
    looking = sorted(name for name in VIEWING if name in missing)
    changing = sorted(name for name in OPERATING if name in missing)
    if not evidence.actions:
        changing = []
    if not looking and not changing:
        return ABOUT.passed(evidence, "all that are needed here")
    names = [*looking, *changing]
    roles = sorted({(VIEWING | OPERATING)[name] for name in names})
    judged = ABOUT.failed if looking else ABOUT.warned
    return judged(
        evidence,
        f"missing: {', '.join(names)}",
        advice=f"Ask for {', '.join(roles)}, the least roles that hold them.",
        command=f"gcloud projects add-iam-policy-binding {project} --member=user:YOU "
        f"--role={roles[0]}",
    )
