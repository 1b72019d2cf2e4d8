"""Which part answers each case that people who run TPUs have met, and each line of the guides.

A case is answered by a class of error (its text is classified), by checks, or by a part of the
product, which is named by its module and symbol. Nothing is answered by nobody.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

import tpudash
from tpudash.diagnostics.checklist import load_checks
from tpudash.diagnostics.classifier import classify_text
from tpudash.domain.failure import ErrorClass as E

NO_ROOM: Final = (
    'There is no more capacity in the zone "europe-west4-a"; you can try in another zone where'
    " Cloud TPU Nodes are offered"
)
QUOTA: Final = "Quota 'TPUV2sPreemptiblePodPerProjectPerRegionForTPUAPI' exhausted. Limit 32 in "
BUSY: Final = (
    "libtpu.so already in use by another process probably owned by another user."
    ' Run "$ sudo lsof -w /dev/accel0"'
)


@dataclass(frozen=True)
class Answer:
    """What answers a case.

    Attributes:
        texts: Texts of the case, with the class that each must get.
        checks: Ids of the checks that show it.
        parts: `module:symbol` of what else answers it.
    """

    texts: tuple[tuple[str, E], ...] = ()
    checks: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()


def said(text: str, kind: E, *checks: str, parts: tuple[str, ...] = ()) -> Answer:
    return Answer(((text, kind),), checks, parts)


def shown(*checks: str) -> Answer:
    return Answer(checks=checks)


def part(*parts: str) -> Answer:
    return Answer(parts=parts)


CLEANUP: Final = "tpudash.cost.cleanup:cleanup_candidates"
SPOOL: Final = "tpudash.logtext.clean:Cleaner"
CASES: Final = {
    "CAP-01": said(
        "ERROR: (gcloud.compute.tpus.tpu-vm.start) {\n"
        '  "code": 8,\n  "message": "There is no more capacity in the zone \\"us-central1-a\\";'
        ' you can [EID: 0x191e4b746b2c69a9]"\n}',
        E.STOCKOUT,
        "run-created",
    ),
    "CAP-02": said(NO_ROOM, E.STOCKOUT, "zone-history", "quota-room"),
    "CAP-03": said(f"Error code 8, message: {NO_ROOM}", E.STOCKOUT),
    "CAP-04": shown("zone-history"),
    "CAP-05": said(
        "429 RESOURCE_EXHAUSTED: Quota limit 'TPUV6EPreemptiblePerProjectPerRegionForTPUAPI' has"
        " been exceeded. Limit: 0 in region us-east5.",
        E.QUOTA,
        "quota-room",
    ),
    "CAP-06": shown("quota-room"),
    "CAP-07": said(f"{QUOTA}region us-central2", E.QUOTA, "quota-room", "dead-requests"),
    "CAP-08": Answer(
        (
            (f"{QUOTA}region europe-west4", E.QUOTA),
            (f"{QUOTA}zone europe-west4-a", E.QUOTA),
        )
    ),
    "CAP-09": part("tpudash.operations.journal:Journal", "tpudash.operations.reconcile:reconcile"),
    "CAP-10": Answer(
        (
            ("Maximum number of CreateNode requests per minute", E.RATE_LIMIT),
            ("TPU operation failed: an internal error has occurred", E.INTERNAL),
        ),
        ("run-created",),
    ),
    "CAP-11": said("maximum number of DeleteNode requests per minute", E.RATE_LIMIT),
    "CAP-12": said(
        "Cloud TPU received a bad request. the accelerator v4-128 was not found in zone"
        " us-central2-b",
        E.BAD_REQUEST,
        "type-offered",
    ),
    "CAP-13": said("Location us-east1-d is not found or access is unauthorized.", E.LOCATION),
    "CAP-14": shown("runtime-fits", "type-offered"),
    "CAP-15": said(
        "TPU API is not enabled or you don't have TPU access to zone us-central1-b",
        E.API_OFF,
        "api-enabled",
    ),
    "CAP-16": shown("quota-room"),
    "CAP-17": shown("type-offered"),
    "CAP-18": said(
        "ALREADY_EXISTS: Resource 'projects/p/locations/us-east1-b/nodes/sky_tpu' already exists",
        E.NAME_TAKEN,
        parts=("tpudash.operations.making:name_taken",),
    ),
    "CAP-19": part("tpudash.operations.owner:default_owner"),
    "CAP-20": said("HTTP 409: the operation was cancelled", E.UNKNOWN_OUTCOME),
    "CAP-21": said("FailedScaleUp: Internal error", E.INTERNAL, "zone-history"),
    "CAP-22": part("tpudash.cost.what_if:what_if"),
    "LIFE-01": said(
        "Cloud TPU received a bad request. update is not supported while in state PREEMPTED",
        E.PREEMPTED_IN_CREATE,
        "run-preempted",
        "dead-node-listed",
    ),
    "LIFE-02": said(
        "TPU is in PREEMPTED state. Skipping IP query... Hint: make sure it is not leaked",
        E.PREEMPTED,
        "dead-node-listed",
    ),
    "LIFE-03": part("tpudash.operations.remover:Remover"),
    "LIFE-04": part("tpudash.store.snapshot:Tombstone"),
    "LIFE-05": part("tpudash.operations.delete:DeletePayload"),
    "LIFE-06": said("stop is not supported for nodes of several hosts", E.BAD_REQUEST, "node-idle"),
    "LIFE-07": shown("run-stalled"),
    "LIFE-08": shown("run-stalled", "node-healthy"),
    "LIFE-09": said("ValueError: No TPUs matched id 'tpu-7'", E.GONE, "run-preempted"),
    "LIFE-10": said("TPU operation o timed out after 600s", E.UNKNOWN_OUTCOME, "run-created"),
    "LIFE-11": shown("dead-requests", "node-without-run"),
    "LIFE-12": shown("node-without-run", "node-idle", "startup-done"),
    "LIFE-13": shown("workers-heard"),
    "LIFE-14": Answer(checks=("node-idle",), parts=(CLEANUP,)),
    "LIFE-15": shown("run-stalled"),
    "LIFE-16": shown("run-failed", "run-preempted"),
    "LIFE-17": part("tpudash.store.history:History", "tpudash.store.snapshot:Tombstone"),
    "LIFE-18": shown("device-free"),
    "LIFE-19": shown("node-healthy"),
    "LIFE-20": part("tpudash.operations.remover:Remover"),
    "LIFE-21": said("Queued resource q is in state SUSPENDED", E.PREEMPTED, "dead-requests"),
    "LIFE-22": said("Request had invalid authentication credentials.", E.AUTH_EXPIRED),
    "LIFE-23": part(CLEANUP),
    "LIFE-24": said("Failed to get instance IP address. Instance not found", E.GONE),
    "LIFE-25": shown("workers-heard"),
    "LIFE-26": part("tpudash.pollers.source:SourceLoop"),
    "LIFE-27": Answer(
        (
            ("ABORTED: The TPU is already in use by process with pid 4", E.DEVICE_BUSY),
            ("/dev/accel0: No such file or directory", E.INTERNAL),
        ),
        ("device-free",),
    ),
    "LIFE-28": said("FAILED_PRECONDITION: Couldn't mmap", E.INTERNAL),
    "LIFE-29": said(
        "compute.instances.terminateOnHostMaintenance",
        E.MAINTENANCE,
        "maintenance-announced",
        "node-healthy",
    ),
    "LIFE-30": shown("run-stalled", "node-idle"),
    "LIFE-31": part("tpudash.operations.delete:DeletePayload"),
    "RUN-01": said(BUSY, E.DEVICE_BUSY, "device-free", "device-used"),
    "RUN-02": said("libtpu.so already in use", E.DEVICE_BUSY, "device-free"),
    "RUN-03": said("The libtpu_lockfile is held", E.DEVICE_BUSY, "device-free"),
    "RUN-04": Answer(
        (("*** SIGSEGV (@0x0) received", E.INTERNAL), ("exited with code 139", E.INTERNAL)),
        ("run-failed",),
    ),
    "RUN-05": said(
        "TPU backend initialization is taking more than 60.0 seconds. Did you run your code on"
        " all TPU hosts?",
        E.PARTIAL_SLICE,
        "workers-heard",
    ),
    "RUN-06": shown("versions-agree"),
    "RUN-07": said(
        "heartbeat timeout. This indicates that the remote task has failed, got preempted, or"
        " crashed",
        E.PARTIAL_SLICE,
        "workers-heard",
        "tpu-reached",
    ),
    "RUN-08": said("failed to connect to all addresses", E.CONNECT, "tpu-reached", "tpu-address"),
    "RUN-09": said("Unavailable: Socket closed", E.PREEMPTED, "run-stalled"),
    "RUN-10": said("ShutdownHook: lame workers found", E.STALLED, "run-stalled"),
    "RUN-11": said("Core halted unexpectedly", E.INTERNAL, "error-line"),
    "RUN-12": shown("versions-agree"),
    "RUN-13": said(
        "TpuEmbeddingEngine_ExecutePartitioner not available in this library",
        E.VERSION,
        "versions-agree",
    ),
    "RUN-14": said("No GPU/TPU found, falling back to CPU.", E.VERSION, "device-used"),
    "RUN-15": shown("versions-agree"),
    "RUN-16": said(
        "Ran out of memory in memory space hbm. Used 8.38G of 8.00G hbm. Exceeded hbm capacity by"
        " 385.25M.",
        E.HBM_OOM,
        "out-of-memory",
    ),
    "RUN-17": said(
        "Attempting to allocate 180.59M. That was not possible. There are 142.58M free.",
        E.HBM_OOM,
        parts=("tpudash.logtext.dumps:DumpFinder",),
    ),
    "RUN-18": said(
        "service-1@cloud-tpu.iam.gserviceaccount.com does not have storage.objects.create access",
        E.BUCKET_ACCESS,
        "bucket-usable",
    ),
    "RUN-19": Answer(
        (
            ("PERMISSION_DENIED: Read access to project 'p-1' was denied", E.PERMISSION),
            ("Permission 'tpu.nodes.get' denied", E.PERMISSION),
        ),
        ("permissions-held",),
    ),
    "RUN-20": Answer(checks=("permissions-held",), parts=("tpudash.diagnostics.rights:judge",)),
    "RUN-21": part("tpudash.diagnostics.rights:judge"),
    "RUN-22": said(
        "[/usr/bin/ssh] exited with return code [255]",
        E.CONNECT,
        "ssh-reachable",
        "firewall-open",
        "ssh-key",
        "guest-attributes",
    ),
    "RUN-23": part("tpudash.tui.widgets.status_line:StatusLine"),
    "RUN-24": shown("node-healthy", "maintenance-announced"),
    "CKPT-01": shown("checkpoints-sound"),
    "CKPT-02": said(
        "ValueError: Found incomplete checkpoint at /b/checkpoints/1820",
        E.CKPT_INCOMPLETE,
        "checkpoints-sound",
        "error-line",
    ),
    "CKPT-03": shown("steps-at-risk"),
    "CKPT-04": part("trainer.best_weights:BestWeights"),
    "CKPT-05": part("tpudash.operations.resume:plan_resume"),
    "LOG-01": part(SPOOL),
    "LOG-02": part(SPOOL),
    "LOG-03": part("tpudash.tui.widgets.empty_reason:source_problem"),
    "LOG-04": part("tpudash.store.instances:InstanceBook"),
    "LOG-05": part("tpudash.store.snapshot:Tombstone"),
    "LOG-06": shown("startup-done"),
    "LOG-07": shown("run-created"),
    "MET-01": said(
        "Libtpu metrics unavailable. Is there a framework using the TPU?", E.VERSION, "workers-even"
    ),
    "MET-02": part("tpudash.domain.metric:NoValue", "trainer.agent.runtime_metrics:RuntimeMetrics"),
    "MET-03": part("tpudash.domain.metric:NoValue"),
    "MET-04": part("tpudash.domain.metric:NoValue"),
    "MET-05": part("tpudash.domain.accelerator:load_catalog"),
    "MET-06": part("tpudash.domain.accelerator:load_catalog"),
    "MET-07": shown("price-jump"),
    "MET-08": part("tpudash.cost.estimate:hourly_rate"),
    "MET-09": shown("bucket-near"),
    "MET-10": shown("run-created"),
}
COUNTS: Final = {"CAP": 22, "LIFE": 31, "RUN": 24, "CKPT": 5, "LOG": 7, "MET": 10}
"""How many cases of each group there are."""

GUIDE: Final = {
    "billing account linked": ("billing-on",),
    "APIs enabled": ("api-enabled",),
    "signed in": ("api-answers", "permissions-held"),
    "bucket in the TPU's region": ("bucket-near",),
    "type offered, runtime fits": ("type-offered", "runtime-fits"),
    "creating fails: quota, type, sold out": ("quota-room", "type-offered", "run-created"),
    "creating fails: other zones, retry later": ("zone-history",),
    "SSH fails: VM not up, firewall": ("node-healthy", "ssh-reachable", "firewall-open"),
    "SSH fails: key, start-up": ("ssh-key", "guest-attributes", "startup-done"),
    "failed to connect: node READY": ("node-healthy",),
    "failed to connect: runtime fits TensorFlow": ("versions-agree", "runtime-fits"),
    "failed to connect: the TPU's address": ("tpu-address", "tpu-reached"),
    "initialisation fails": ("device-free", "device-used", "self-check"),
    "slow: input bound": ("input-keeps-up", "input-pipeline"),
    "slow: batch small or odd": ("batch-fits",),
    "slow: utilization low, stragglers": ("workers-even",),
    "out of memory: chip or host": ("out-of-memory", "host-room"),
    "preempted: checkpoints, resume": ("run-preempted", "checkpoints-sound", "resumed-from-zero"),
    "verification before going live": ("self-check",),
    "clock synchronised": ("clocks-agree",),
    "delete at once when done": ("node-idle", "node-without-run", "dead-node-listed"),
    "budgets with alerts": ("budget-crossed", "burn-rate", "cost-cap"),
}
"""What the two guides ask to look at, and the checks that do."""
ROOT: Final = Path(tpudash.__file__).parents[1]
IDS: Final = {check.about.check_id for check in load_checks()}


def names_in(module: str) -> set[str]:
    """Return what a module defines or imports by name, without importing it."""
    tree = ast.parse(ROOT.joinpath(*module.split(".")).with_suffix(".py").read_text())
    found: set[str] = set()
    for item in tree.body:
        if isinstance(item, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(item.name)
        if isinstance(item, ast.ImportFrom):
            found |= {alias.name for alias in item.names}
    return found


def test_every_case_has_an_answer() -> None:
    wanted = {f"{group}-{n:02}" for group, most in COUNTS.items() for n in range(1, most + 1)}
    assert set(CASES) == wanted
    assert all(answer != Answer() for answer in CASES.values())


@pytest.mark.parametrize("case", CASES)
def test_the_answer_is_there(case: str) -> None:
    answer = CASES[case]
    for text, kind in answer.texts:
        (failure,) = classify_text(text)
        assert failure.error_class is kind, failure
        assert failure.advice
    assert set(answer.checks) <= IDS
    for name in answer.parts:
        module, _, symbol = name.partition(":")
        assert symbol in names_in(module), name


@pytest.mark.parametrize("line", GUIDE)
def test_every_line_of_the_guides_has_a_check(line: str) -> None:
    assert set(GUIDE[line]) <= IDS
