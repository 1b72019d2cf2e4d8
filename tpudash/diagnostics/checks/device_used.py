"""Whether training runs on the TPU, and not silently on the host's CPU while the TPU bills."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.words import rate
from tpudash.domain.accelerator import load_catalog
from tpudash.domain.run import AT_WORK, RunState
from tpudash.store.snapshot import LOGS
from tpudash.store.training_curve import number_in

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding
    from tpudash.domain.run import Run

ABOUT: Final = About(
    "device-used",
    "Training runs on the TPU",
    Scope.RUN,
    why="A framework that finds no chips goes on on the CPU, slowly, while the TPU is paid for.",
    rank=22,
    source=LOGS,
    group=Group.CONNECT,
)


def check(evidence: Evidence) -> Finding:
    """Judge the devices that the trainer named when it started."""
    run = evidence.run
    if run is None or run.state not in {*AT_WORK, RunState.STALLED}:
        return ABOUT.not_applicable(evidence, "nothing trains")
    attempt = evidence.attempt
    started = evidence.newest_event("start", attempt.attempt if attempt else None)
    device = started.get("device") if started else None
    if not isinstance(device, dict):
        return ABOUT.unknown(evidence, "the trainer's start is not among the log entries read")
    kind, count = str(device.get("kind", "")), number_in(device, "count")
    if kind == "CPU":
        return _judge_cpu(run, evidence)
    if kind != "TPU":
        return ABOUT.unknown(evidence, f"the trainer names its device {kind or 'not at all'}")
    return _judge_count(run, count, evidence)


def _judge_cpu(run: Run, evidence: Evidence) -> Finding:
    if evidence.is_emulator:
        return ABOUT.passed(evidence, "emulated on CPU, as everything here is")
    node = evidence.newest_node()
    price = f" at {rate(evidence.rate_of(node))}" if node is not None and node.is_billing else ""
    return ABOUT.failed(
        evidence,
        f"the trainer found no TPU and runs on the CPU while a TPU is paid for{price}",
        advice="Look in the log for why: chips held by another process, a stale lock file, or "
        "TensorFlow without TPU support. Then resume, or delete the node.",
        action="pane-logs",
        command=f"tpudash logs {run.name}",
    )


def _judge_count(run: Run, count: float | None, evidence: Evidence) -> Finding:
    accelerator = load_catalog().find(run.spec.accelerator_type) if run.spec else None
    if count is None or accelerator is None:
        return ABOUT.passed(evidence, "on a TPU")
    # Some generations show a chip as one device and others as one for each of its cores.
    if count < accelerator.chips:
        return ABOUT.warned(
            evidence,
            f"{count:.0f} TPU devices, but {accelerator.name} has {accelerator.chips} chips",
            advice="A worker or a chip is missing. Look at the node's health and symptoms.",
            action="pane-logs",
            command=f"tpudash logs {run.name}",
        )
    return ABOUT.passed(evidence, f"on {count:.0f} TPU devices")
