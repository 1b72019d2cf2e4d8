"""Error texts of trainers, shells and tools, and lines that are no error at all."""

from __future__ import annotations

from tests.unit.diagnostics.error_texts import Case
from tpudash.domain.failure import ErrorClass as E

OTHER = (
    Case(
        "api-or-access",
        "TPU API is not enabled or you don't have TPU access to zone us-central1-b",
        E.API_OFF,
        scope={"zone": "us-central1-b"},
        advice=("tpu.googleapis.com", "us-central1-b"),
    ),
    Case(
        "preempted-state",
        "TPU node is in PREEMPTED state. Skipping IP query... Hint: make sure it is not leaked",
        E.PREEMPTED,
    ),
    Case("no-match", "ValueError: No TPUs matched id 'tpu-7'", E.GONE),
    Case("no-instance", "Failed to get instance IP address. Instance not found", E.GONE),
    Case(
        "in-use-other", "ABORTED: The TPU is already in use by process with pid 4321", E.DEVICE_BUSY
    ),
    Case(
        "mmap",
        "FAILED_PRECONDITION: Couldn't mmap: Resource temporarily unavailable",
        E.INTERNAL,
        advice=("delete it and create",),
    ),
    Case(
        "device-busy",
        "libtpu.so already in use by another process probably owned by another user."
        ' Run "$ sudo lsof -w /dev/accel0" to figure out which process',
        E.DEVICE_BUSY,
        advice=("libtpu_lockfile", "lsof"),
    ),
    Case(
        "vfio",
        "open(/dev/vfio/0): Device or resource busy: Couldn't open iommu group /dev/vfio/0",
        E.DEVICE_BUSY,
    ),
    Case("segfault", "*** SIGSEGV (@0x0), see go/stacktraces#s15 received by PID 123", E.INTERNAL),
    Case(
        "one-host",
        "TPU backend initialization is taking more than 60.0 seconds. Did you run your"
        " code on all TPU hosts?",
        E.PARTIAL_SLICE,
    ),
    Case(
        "heartbeat",
        "/job:jax_worker/task:3 heartbeat timeout. This indicates that the remote task"
        " has failed, got preempted, or crashed unexpectedly.",
        E.PARTIAL_SLICE,
        scope={"worker": "3"},
    ),
    Case(
        "lost-worker",
        "tensorflow.python.framework.errors_impl.UnavailableError: Unavailable: Socket closed",
        E.PREEMPTED,
        advice=("node's state",),
    ),
    Case(
        "incarnation", "RecvTensor expects a different device incarnation: 123 vs. 456", E.PREEMPTED
    ),
    Case("context", "Unable to find a context_id matching the specified one (123)", E.PREEMPTED),
    Case("no-tensorflow", "VERSION: TensorFlow is not installed in this Python", E.VERSION),
    Case("no-jax", "jax, orbax-checkpoint not installed in this Python", E.VERSION),
    Case("lame", "ShutdownHook: lame workers found: ['/job:worker/task:1']", E.STALLED),
    Case(
        "halted",
        "Core halted unexpectedly: INTERNAL: Accelerator device halted prematurely",
        E.INTERNAL,
        advice=("support",),
    ),
    Case(
        "library", "TpuEmbeddingEngine_ExecutePartitioner not available in this library.", E.VERSION
    ),
    Case("on-cpu", "WARNING: No GPU/TPU found, falling back to CPU.", E.VERSION, advice=("CPU",)),
    Case(
        "hbm",
        "Ran out of memory in memory space hbm. Used 8.38G of 8.00G hbm. Exceeded hbm"
        " capacity by 385.25M.",
        E.HBM_OOM,
        advice=("8.38G", "8.00G", "385.25M"),
    ),
    Case(
        "hbm-fragmented",
        "RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to"
        " allocate 180.59M. That was not possible. There are 142.58M free.",
        E.HBM_OOM,
    ),
    Case(
        "hbm-reserve",
        "Resource exhausted: Attempting to reserve 5.61G at the bottom of memory.",
        E.HBM_OOM,
    ),
    Case("host-oom", "Out of memory: Killed process 4711 (python3) total-vm:1234kB", E.HOST_OOM),
    Case("ssh", "[/usr/bin/ssh] exited with return code [255].", E.CONNECT),
    Case("ssh-key", "root@1.2.3.4: Permission denied (publickey).", E.CONNECT),
    Case(
        "checkpoint",
        "ValueError: Found incomplete checkpoint at /tmp/x/checkpoints/1820",
        E.CKPT_INCOMPLETE,
    ),
    Case(
        "slice-reader",
        "Unsuccessful TensorSliceReader constructor: Failed to find any matching"
        " files for gs://b/ckpt-3",
        E.CKPT_INCOMPLETE,
    ),
    Case(
        "no-kernel",
        "No OpKernel was registered to support Op 'ConfigureDistributedTPU' used by"
        " {{node ConfigureDistributedTPU}}",
        E.VERSION,
        advice=("tensorflow-tpu",),
    ),
    Case("no-system", "No matching devices found for '/device:TPU_SYSTEM:0'", E.VERSION),
    Case("no-work", "ConfigureDistributedTpuOp_DoWork not available in this library", E.VERSION),
    Case(
        "metadata",
        "Failed to get TPU metadata (tpu-env) from instance metadata after 30 tries",
        E.VERSION,
    ),
    Case(
        "ret-check",
        "INTERNAL: RET_CHECK failure (third_party/tpu_node_interfaces.cc:12)",
        E.VERSION,
    ),
    Case("no-name", "ValueError: Please provide a TPU Name to connect to.", E.BAD_REQUEST),
    Case("lookup", "ValueError: Could not lookup TPU metadata from name 'demo-1'.", E.BAD_REQUEST),
    Case(
        "not-ready", 'RuntimeError: TPU "demo-1" is not yet ready; state: "PREEMPTED"', E.PREEMPTED
    ),
    Case(
        "still-creating",
        'RuntimeError: TPU "demo-1" is not yet ready; state: "CREATING"',
        E.CONNECT,
    ),
    Case(
        "local-path",
        "UNIMPLEMENTED: File system scheme '[local]' not implemented (file: '/home/me/data')",
        E.LOCAL_PATH,
    ),
    Case("maintenance", "compute.instances.terminateOnHostMaintenance", E.MAINTENANCE),
    Case("audit", "compute.instances.preempted", E.PREEMPTED),
    Case("scale-up", "FailedScaleUp: Internal error", E.INTERNAL, advice=("companion",)),
    Case(
        "gce-stock-out",
        "The zone 'projects/demo/zones/us-central1-a' does not have enough"
        " resources available to fulfill the request. Try a different zone, or try again later.",
        E.STOCKOUT,
        scope={"zone": "us-central1-a"},
    ),
    Case(
        "no-name-service",
        "errors resolving tpu.googleapis.com:443: [field:hostname lookup error:address lookup"
        " failed for tpu.googleapis.com:443: Domain name not found]",
        E.CONNECT,
    ),
    Case("tls", "Ssl handshake failed: SSL_ERROR_SSL: error:1000: WRONG_VERSION_NUMBER", E.CONNECT),
)
"""Texts of programs and tools, as their logs hold them."""
