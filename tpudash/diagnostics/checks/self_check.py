"""What the trainer found when it tested itself on the node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tpudash.diagnostics.cause_check import without_attempt
from tpudash.diagnostics.check import About, Group, Scope
from tpudash.domain.run import RunState
from tpudash.store.snapshot import LOGS

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "self-check",
    "Trainer passes its own tests",
    Scope.RUN,
    why="Devices, one step, and a checkpoint written and read back are all that training needs.",
    rank=26,
    source=LOGS,
    group=Group.CONNECT,
)


def check(evidence: Evidence) -> Finding:
    """Fail for a test that failed; a test that was not run is unknown."""
    run, pointless = evidence.run, without_attempt(ABOUT, evidence)
    if run is None or run.serves or pointless is not None:
        return pointless or ABOUT.not_applicable(evidence, "nothing is to be trained")
    newest = _newest(evidence)
    if not newest and run.state is RunState.TRAINING and run.checkpoint_step:
        return ABOUT.not_applicable(evidence, "it trains and saves, which shows the same")
    if not newest:
        return ABOUT.unknown(
            evidence,
            "its agent has not run them",
            advice="The agent runs them when a trainer fails without saying why, and before it "
            "trains if the run was launched with --validate-first.",
            command="python -m trainer validate --model_dir FOLDER   # on the node",
        )
    verdicts = {name: str(said.get("verdict")) for name, said in newest.items()}
    failed = [name for name, verdict in verdicts.items() if verdict == "failed"]
    if failed:
        said = newest[failed[0]]
        return ABOUT.failed(
            evidence,
            f"{', '.join(failed)} failed: {said.get('message', '')}",
            advice=str(said.get("hint") or "Mend that first; nothing can be trained before."),
            action="pane-logs",
            command=f"tpudash logs {run.name}",
        )
    doubtful = [name for name, verdict in verdicts.items() if verdict == "warning"]
    text = ", ".join(f"{name}: {verdict}" for name, verdict in verdicts.items())
    if doubtful:
        said = newest[doubtful[0]]
        return ABOUT.warned(evidence, text, advice=str(said.get("message") or "See the log."))
    return ABOUT.passed(evidence, text)


def _newest(evidence: Evidence) -> dict[str, dict[str, Any]]:
    """Return what each test said last, by the attempt's record and by the log."""
    attempt = evidence.attempt
    newest = {str(said.get("check")): said for said in (attempt.checks if attempt else ())}
    number = attempt.attempt if attempt else None
    for entry in evidence.logs:
        if entry.event == "check" and entry.attempt in {None, number} and entry.payload:
            newest[str(entry.payload.get("check"))] = dict(entry.payload)
    return newest
