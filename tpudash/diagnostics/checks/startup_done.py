"""Whether the startup script of a run's node came to its end."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.words import span
from tpudash.domain.run import RunState
from tpudash.store.snapshot import LOGS

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "startup-done",
    "Startup script came to its end",
    Scope.RUN,
    why="What fails before the agent begins is written nowhere else.",
    rank=11,
    source=LOGS,
    group=Group.SSH,
)
PATIENCE: Final = timedelta(minutes=15)


def check(evidence: Evidence) -> Finding:
    """Fail for an error of the script, warn of a READY node whose agent is never heard."""
    run, node = evidence.run, evidence.newest_node()
    if run is None or run.state in {RunState.FINISHED, RunState.DELETED}:
        return ABOUT.not_applicable(evidence, "nothing is starting")
    if evidence.attempt is not None and node is not None and evidence.attempt.node == node.node_id:
        return ABOUT.passed(evidence, "its agent was heard")
    said = [entry.text for entry in evidence.logs if entry.stream == "startup"]
    errors = [text for text in said if "ERROR:" in text]
    if errors:
        return ABOUT.failed(
            evidence,
            errors[-1].partition("ERROR:")[2].strip(),
            advice="The node is READY and does nothing. Mend the cause and resume the run.",
            action="pane-logs",
            command=f"tpudash logs {run.name}",
        )
    if node is None or not node.is_billing:
        return ABOUT.not_applicable(evidence, "no node of it is READY")
    times = evidence.snapshot.times.get(node.name)
    since = (times.ready_since if times else None) or node.create_time
    waited = evidence.now - since if since else timedelta(0)
    text = f"READY for {span(waited)}, and its agent was not heard"
    if waited < PATIENCE:
        return ABOUT.unknown(evidence, f"{text} yet")
    return ABOUT.warned(
        evidence,
        text,
        advice="The script may hang, or the VM reach neither bucket nor Cloud Logging.",
        command=f"gcloud compute tpus tpu-vm ssh {node.node_id} --zone={node.zone} "
        "--command='sudo journalctl -u google-startup-scripts.service'",
    )
