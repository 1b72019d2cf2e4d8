"""Whether TensorFlow, libtpu and the runtime image go together."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from tpudash.diagnostics.cause_check import told, without_attempt
from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.log_causes import newest_cause
from tpudash.domain.failure import ErrorClass
from tpudash.domain.runtimes import tensorflow_of
from tpudash.store.snapshot import LOGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding
    from tpudash.domain.run import Run

ABOUT: Final = About(
    "versions-agree",
    "Versions go together",
    Scope.RUN,
    why="A wrong pair of TensorFlow and libtpu aborts, hangs, or trains on the CPU.",
    rank=11,
    source=LOGS,
    group=Group.CONNECT,
)
CLASSES: Final = frozenset({ErrorClass.VERSION})
NEWEST_LIBTPU: Final = (0, 0, 40)
"""The last libtpu that exports the C symbols TensorFlow needs."""
WHEELS: Final = ("tensorflow-tpu", "tensorflow-cpu", "tensorflow", "tf-nightly")


def check(evidence: Evidence) -> Finding:
    """Fail for a mismatch that the log names or the versions show."""
    run = evidence.run
    pointless = without_attempt(ABOUT, evidence)
    if run is None or pointless is not None:
        return pointless or ABOUT.not_applicable(evidence, "no run is asked about")
    attempt = evidence.attempt
    started = evidence.newest_event("start", attempt.attempt if attempt else None)
    versions = started.get("versions") if started else None
    table = _table(versions, run) if isinstance(versions, dict) else ""
    cause = newest_cause(evidence, CLASSES)
    if cause is not None and not cause.is_overcome:
        return told(ABOUT, evidence, run, cause, more=table and f"; {table}")
    if not isinstance(versions, dict):
        return ABOUT.unknown(evidence, "the trainer's start is not among the log entries read")
    problem = _problem(versions, run, evidence)
    if problem:
        return ABOUT.warned(
            evidence,
            f"{problem}; {table}",
            advice="Install the pair that belongs together, such as tensorflow-tpu with the "
            "libtpu that it pins, or choose the image of that version.",
        )
    return ABOUT.passed(evidence, table)


def _problem(versions: Mapping[str, Any], run: Run, evidence: Evidence) -> str:
    wheel = next((name for name in WHEELS if versions.get(name)), None)
    if wheel is None:
        return ""
    libtpu = _numbers(versions.get("libtpu"))
    if libtpu and libtpu > NEWEST_LIBTPU:
        return f"libtpu {versions['libtpu']} is too new for TensorFlow"
    if wheel == "tensorflow-cpu" and not evidence.is_emulator:
        return "tensorflow-cpu has no TPU support"
    spec = run.spec
    image = tensorflow_of(spec.runtime_version) if spec else None
    if image and _numbers(versions[wheel])[:2] != image[:2] and _is_slice(run):
        wanted = ".".join(map(str, image[:2]))
        return f"the image's TPU service is of TensorFlow {wanted}"
    return ""


def _is_slice(run: Run) -> bool:
    from tpudash.domain.accelerator import load_catalog

    kind = load_catalog().find(run.spec.accelerator_type) if run.spec else None
    return bool(kind and kind.is_slice)


def _table(versions: Mapping[str, Any], run: Run) -> str:
    parts = [f"{name} {value}" for name, value in versions.items() if value]
    if run.spec is not None:
        parts.append(f"image {run.spec.runtime_version}")
    return ", ".join(parts)


def _numbers(version: object) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", str(version or ""))[:3])
