"""Whether this machine has the key that gcloud connects with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.domain.probe import ProbeKey, ProbeKind

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding


def _probe(evidence: Evidence) -> ProbeKey | None:
    return None if evidence.is_emulator else ProbeKey(ProbeKind.SSH_KEY)


ABOUT: Final = About(
    "ssh-key",
    "SSH key is there",
    Scope.PROJECT,
    why="Without it the first connection stops and asks, which a script can't answer.",
    rank=52,
    group=Group.SSH,
    probe=_probe,
)


def check(evidence: Evidence) -> Finding:
    """Warn where gcloud would have to make a key first."""
    if evidence.is_emulator:
        return ABOUT.not_applicable(evidence, "a shell into the emulator needs no key")
    answer = ABOUT.answer(evidence)
    if answer is None or not isinstance(answer.value, str):
        return ABOUT.unanswered(evidence)
    if answer.value:
        return ABOUT.passed(evidence, answer.value)
    return ABOUT.warned(
        evidence,
        "~/.ssh/google_compute_engine does not exist",
        advice="gcloud makes it at the first connection, and puts it into the project's metadata.",
        command="gcloud compute config-ssh",
    )
