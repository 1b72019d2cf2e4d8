"""Whether a firewall rule lets SSH in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.domain.probe import ProbeKey, ProbeKind

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

IAP: Final = "35.235.240.0/20"
"""From where the Identity-Aware Proxy connects.

Source: https://cloud.google.com/iap/docs/using-tcp-forwarding
"""
NETWORK: Final = "default"


def _probe(evidence: Evidence) -> ProbeKey | None:
    return None if evidence.is_emulator else ProbeKey(ProbeKind.FIREWALL, NETWORK)


ABOUT: Final = About(
    "firewall-open",
    "Firewall lets SSH in",
    Scope.PROJECT,
    why="Without a rule for port 22 every connection ends in silence.",
    rank=51,
    group=Group.SSH,
    probe=_probe,
)


def check(evidence: Evidence) -> Finding:
    """Warn where no rule of the network lets port 22 in."""
    if evidence.is_emulator:
        return ABOUT.not_applicable(evidence, "there is no network in the emulator")
    answer = ABOUT.answer(evidence)
    if answer is None or not isinstance(answer.value, tuple):
        return ABOUT.unanswered(
            evidence, command="gcloud compute firewall-rules list --filter=network=default"
        )
    if answer.value:
        named = "; ".join(
            f"{rule.name} from {', '.join(rule.sources)}" for rule in answer.value[:3]
        )
        return ABOUT.passed(evidence, named)
    return ABOUT.warned(
        evidence,
        f"no rule of the network {NETWORK} lets TCP 22 in",
        advice="Allow it from the Identity-Aware Proxy at least.",
        command="gcloud compute firewall-rules create allow-ssh-iap --network=default "
        f"--allow=tcp:22 --source-ranges={IAP}",
    )
