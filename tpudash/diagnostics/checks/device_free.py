"""Whether the chips are free: who holds the device files, and whether a lock file is stale."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tpudash.diagnostics.cause_check import without_attempt
from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.log_causes import newest_cause
from tpudash.diagnostics.words import ago
from tpudash.domain.failure import ErrorClass
from tpudash.store.snapshot import LOGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding
    from tpudash.domain.run import Run

ABOUT: Final = About(
    "device-free",
    "Chips are free",
    Scope.RUN,
    why="One process at a time may use the chips, and a lock file outlives the one that made it.",
    rank=11,
    source=LOGS,
    group=Group.CONNECT,
)
CLASSES: Final = frozenset({ErrorClass.DEVICE_BUSY})
UNLOCK: Final = "sudo lsof -w /dev/accel* /dev/vfio/*; ls -l /tmp/libtpu_lockfile"


def check(evidence: Evidence) -> Finding:
    """Fail for chips that are taken or locked, by the log and by what the agent found."""
    run = evidence.run
    pointless = without_attempt(ABOUT, evidence)
    if run is None or pointless is not None:
        return pointless or ABOUT.not_applicable(evidence, "no run is asked about")
    attempt = evidence.attempt
    found = evidence.newest_event("devices", attempt.attempt if attempt else None)
    cause = newest_cause(evidence, CLASSES)
    if cause is not None and not cause.is_overcome:
        return ABOUT.failed(
            evidence,
            f"DEVICE_BUSY: {cause.words} ({ago(cause.when, evidence.now)}){_holder(found)}",
            advice=_advice(found),
            action="pane-logs",
            command=_command(run, evidence),
        )
    if found is None:
        return ABOUT.unknown(evidence, "the agent did not tell which device files there are")
    return _judge_files(run, found, evidence)


def _judge_files(run: Run, found: Mapping[str, Any], evidence: Evidence) -> Finding:
    files = found.get("files")
    if not files:
        return _judge_none(evidence)
    if found.get("lock_is_stale"):
        return ABOUT.warned(
            evidence,
            f"a lock file without a holder{_holder(found)}",
            advice=_advice(found),
            command=_command(run, evidence),
        )
    return ABOUT.passed(evidence, f"{len(files)} device files{_holder(found)}")


def _judge_none(evidence: Evidence) -> Finding:
    if evidence.is_emulator:
        return ABOUT.not_applicable(evidence, "emulated on CPU: there are no device files")
    return ABOUT.failed(
        evidence,
        "the node has neither /dev/accel* nor /dev/vfio/*",
        advice="The chips are missing, as after some restarts: make a new node.",
        action="resume",
    )


def _holder(found: Mapping[str, Any] | None) -> str:
    if not found:
        return ""
    holders = found.get("holders")
    if isinstance(holders, list) and holders:
        named = ", ".join(
            f"{one.get('command', '?')} (pid {one.get('pid', '?')})"
            for one in holders[:3]
            if isinstance(one, dict)
        )
        return f"; held by {named}"
    if found.get("lock_is_stale"):
        return f"; {found.get('lock_file')} is there, and nobody holds the chips"
    return ""


def _advice(found: Mapping[str, Any] | None) -> str:
    if found and found.get("lock_is_stale"):
        return "The lock file is stale: remove it on that worker, and resume the run."
    return (
        "End the process that holds the chips. If there is none, the lock file "
        "/tmp/libtpu_lockfile is stale: remove it. Then resume the run."
    )


def _command(run: Run, evidence: Evidence) -> str:
    node = evidence.newest_node()
    if node is None or evidence.is_emulator:
        return f"tpudash logs {run.name}"
    return f"gcloud compute tpus tpu-vm ssh {node.node_id} --zone={node.zone} --command='{UNLOCK}'"
