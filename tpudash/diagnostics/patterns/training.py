"""Texts of training programs: memory, devices, versions, paths, checkpoints."""

from __future__ import annotations

from typing import Final

from tpudash.diagnostics.patterns.row import Row, regex
from tpudash.domain.failure import ErrorClass

_SIZE: Final = r"[\d.]+ ?[KMGT]?i?B?"
_CPU_WHEEL: Final = (
    "This TensorFlow was built without TPU support: install tensorflow-tpu in the same version."
)
_NO_LIBRARY: Final = (
    "The TPU library was not loaded, or there are no chips: unset TPU_LOAD_LIBRARY=0 on a single"
    " host, and check that this is a TPU VM."
)
_NO_TPU_VM: Final = (
    "libtpu runs on a machine that is no TPU VM. Run it on the node, or set TPU_LOAD_LIBRARY=0."
)
_NOT_INSTALLED: Final = (
    "The framework is not installed in the Python that runs the program: install it on every"
    " worker, in the version that fits the node's runtime."
)
_ON_CPU: Final = (
    "The program runs on the CPU now while the TPU is paid for. Check that TensorFlow or JAX and"
    " libtpu fit each other and that no other process holds the chips."
)
_HBM: Final = (
    "The chip's own memory is too small for this ({used} used of {size}, {over} too much); it will"
    " happen again after a resume. Use a smaller batch, bfloat16 or gradient accumulation."
)
_DAMAGED: Final = (
    "The checkpoint is damaged or was being written when the node went away. Go back to the"
    " checkpoint before it; tpudash's trainer does so by itself and sets the bad one aside."
)

TRAINING: Final = (
    Row(
        ErrorClass.HBM_OOM,
        "ran out of memory in memory space",
        regex(
            rf"ran out of memory in memory space \w+(?:[^\n]{{0,40}}Used (?P<used>{_SIZE}) of"
            rf" (?P<size>{_SIZE}))?(?:[^\n]{{0,60}}?capacity by (?P<over>{_SIZE}))?"
        ),
        advice=_HBM,
    ),
    Row(ErrorClass.HBM_OOM, "hbm capacity", advice=_HBM),
    Row(ErrorClass.HBM_OOM, "hbm_out_of_memory"),
    Row(ErrorClass.HBM_OOM, "attempting to reserve"),
    Row(
        ErrorClass.HBM_OOM,
        "attempting to allocate",
        regex(rf"attempting to allocate (?P<used>{_SIZE})"),
    ),
    Row(ErrorClass.HBM_OOM, "error allocating device buffer"),
    Row(
        ErrorClass.HBM_OOM,
        "failed to allocate",
        regex(
            rf"failed to allocate (?:request for )?(?P<used>{_SIZE})?[^\n]{{0,80}}"
            r"(?:\bon device|device ordinal|\bhbm\b)"
        ),
    ),
    Row(
        ErrorClass.HBM_OOM,
        "out of memory",
        regex(
            r"\b(?:hbm|tpu|device)\b[^\n]{0,60}out of memory"
            r"|out of memory (?:while trying to|allocating)"
        ),
    ),
    Row(
        ErrorClass.HOST_OOM,
        "killed",
        regex(r"^(?:[\w./-]+: line \d+: +)?(?:\d+ +)?Killed(?: {2,}|\s*$)"),
        advice="Something killed the program outright: most often the kernel, because the VM's main"
        " memory ran out (see `sudo dmesg`), or a preemption.",
    ),
    Row(ErrorClass.HOST_OOM, "oom-kill"),
    Row(ErrorClass.HOST_OOM, "oom_reaper"),
    Row(ErrorClass.HOST_OOM, "out of memory: kill"),
    Row(ErrorClass.HOST_OOM, "oomkilled"),
    Row(ErrorClass.HOST_OOM, "memoryerror"),
    Row(ErrorClass.HOST_OOM, "cannot allocate memory"),
    Row(ErrorClass.HOST_OOM, "bad_alloc"),
    Row(ErrorClass.HOST_OOM, "oom when allocating"),
    Row(ErrorClass.HOST_OOM, "low_memory"),
    Row(ErrorClass.HOST_OOM, "out_of_memory"),
    Row(
        ErrorClass.HOST_OOM,
        "137",
        regex(
            r"(?:exit(?:ed)?(?: with)?(?: code| status)?|returned)"
            r"[ :=]*137\b"
        ),
    ),
    Row(ErrorClass.HOST_OOM, "signal 9", regex(r"killed by signal 9|signal 9 \(SIGKILL\)")),
    Row(ErrorClass.HOST_OOM, "killed by signal: killed"),
    Row(ErrorClass.HOST_OOM, "low on resource: memory"),
    Row(ErrorClass.HOST_OOM, "low memory!", regex(r"low memory![^\n]{0,120}SIG(?:KILL|TERM)")),
    Row(ErrorClass.HOST_OOM, "insufficient shared memory"),
    Row(ErrorClass.DEVICE_BUSY, "already in use by"),
    Row(ErrorClass.DEVICE_BUSY, "libtpu_lockfile"),
    Row(ErrorClass.DEVICE_BUSY, "device or resource busy"),
    Row(
        ErrorClass.DEVICE_BUSY,
        "already in use",
        regex(
            r"\b(?:tpu|libtpu|accel|vfio|device)\S*\b"
            r"[^\n]{0,60}already in use"
        ),
    ),
    Row(
        ErrorClass.DEVICE_BUSY,
        "open(/dev/",
        regex(r"open\(/dev/(?:accel|vfio)(?![^\n]{0,60}no such file)"),
    ),
    Row(ErrorClass.VERSION, "configuredistributedtpu'", advice=_CPU_WHEEL),
    Row(
        ErrorClass.VERSION,
        "no opkernel was registered",
        regex(r"registered to support Op '\w*TPU"),
        advice=_CPU_WHEEL,
    ),
    Row(
        ErrorClass.VERSION,
        "device:tpu_system",
        regex(r"no matching devices found"),
        advice=_NO_LIBRARY,
    ),
    Row(
        ErrorClass.VERSION,
        "not available in this library",
        advice="libtpu is too new or too old for this TensorFlow: install the pair that belongs"
        " together, on every worker.",
    ),
    Row(ErrorClass.VERSION, "failed to get tpu metadata", advice=_NO_TPU_VM),
    Row(ErrorClass.VERSION, "tpu_node_interfaces", advice=_NO_TPU_VM),
    Row(ErrorClass.VERSION, "falling back to cpu", advice=_ON_CPU),
    Row(ErrorClass.VERSION, "no tpu found", advice=_ON_CPU),
    Row(ErrorClass.VERSION, "no gpu/tpu found", advice=_ON_CPU),
    Row(ErrorClass.VERSION, "no tpu platform found", advice=_ON_CPU),
    Row(
        ErrorClass.VERSION,
        "no module named",
        regex(r"no module named ['\"]?(?:tensorflow|keras|jax|flax|libtpu|torch)"),
        advice=_NOT_INSTALLED,
    ),
    Row(
        ErrorClass.VERSION,
        "not installed",
        regex(
            r"\b(?:tensorflow|keras|jax(?:lib)?|flax|optax|orbax[-\w]*|libtpu|torch(?:_xla)?)"
            r"\b[^\n]{0,60}\bnot installed"
        ),
        advice=_NOT_INSTALLED,
    ),
    Row(
        ErrorClass.VERSION,
        "no matching distribution found",
        advice="There is no such version of the package for this Python: check the pair of"
        " framework and libtpu, and the Python of the node's image.",
    ),
    Row(
        ErrorClass.VERSION,
        "metrics unavailable",
        regex(r"(?:libtpu|tpu|runtime) metrics unavailable"),
        advice="No figures, which is not 0: no program uses the TPU now, or its libtpu is too old"
        " to tell them (v2 and v3 need a newer image). Start the trainer, or install a newer"
        " libtpu.",
    ),
    Row(ErrorClass.VERSION, "undefined symbol"),
    Row(
        ErrorClass.VERSION,
        "version",
        regex(
            r"(?:libtpu|tensorflow|jax(?:lib)?|pjrt|torch(?:_xla)?|runtime|plugin)\b[^\n]{0,120}"
            r"(?:version mismatch|incompatible|not compatible|too (?:old|new)|does not match)"
            r"|version (?:mismatch|skew)|incompatible[^\n]{0,60}version"
            r"|mismatched[^\n]{0,40}\bversion|\bversions?\b[^\n]{0,60}\bmismatch"
            r"|built with a (?:later|newer|earlier|older|different) version"
            r"|version [^\n]{0,40}not found \(required by"
        ),
    ),
    Row(ErrorClass.LOCAL_PATH, "file system scheme '[local]' not implemented"),
    Row(
        ErrorClass.LOCAL_PATH,
        "local",
        regex(
            r"(?:local (?:path|file|directory|folder)|\[local\])"
            r"[^\n]{0,80}(?:not (?:implemented|supported|visible"
            r"|readable|allowed)|must be)"
        ),
    ),
    Row(
        ErrorClass.LOCAL_PATH,
        "gs://",
        regex(
            r"(?:must be|needs? to be|requires?|expected) (?:a |an"
            r" )?(?:google cloud storage|gcs|gs://)"
        ),
    ),
    Row(ErrorClass.CKPT_INCOMPLETE, "incomplete checkpoint"),
    Row(ErrorClass.CKPT_INCOMPLETE, "tensorslicereader constructor", advice=_DAMAGED),
    Row(ErrorClass.CKPT_INCOMPLETE, "bad magic number", advice=_DAMAGED),
    Row(ErrorClass.CKPT_INCOMPLETE, "checksum does not match", advice=_DAMAGED),
    Row(ErrorClass.CKPT_INCOMPLETE, "dataloss", advice=_DAMAGED),
    Row(ErrorClass.CKPT_INCOMPLETE, "data_loss", advice=_DAMAGED),
    Row(ErrorClass.CKPT_INCOMPLETE, "data loss: ", advice=_DAMAGED),
    Row(
        ErrorClass.CKPT_INCOMPLETE,
        "checkpoint",
        regex(
            r"checkpoint[^\n;]{0,160}\b(?<!0 )(?<!no )(?<!not )"
            r"(?:corrupt\w*|damaged|truncated|incomplete|unreadable"
            r"|quarantined|un(?:finali[sz]ed|committed)|not (?:finali[sz]ed|committed))"
            r"|\b(?:corrupt\w*|damaged|truncated|unreadable) checkpoint"
            r"|\bun(?:finali[sz]ed|committed)[^\n]{0,40}checkpoint"
            r"|no structure could be identified for the checkpoint"
        ),
        advice=_DAMAGED,
    ),
    Row(
        ErrorClass.BAD_REQUEST,
        "please provide a tpu name to connect to",
        advice="Pass --tpu NAME or set TPU_NAME; on a single host use --tpu local.",
    ),
    Row(
        ErrorClass.BAD_REQUEST,
        "could not lookup tpu metadata from name",
        advice="Check the node's name, zone and project, and that the VM's service account may"
        " read the node (tpu.nodes.get).",
    ),
)
