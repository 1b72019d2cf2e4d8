"""Failures of a training job: exit codes, error classes, and the classifier of known texts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum


class ExitCode(IntEnum):
    """How the trainer ends; the agent decides by these whether to start it again."""

    FINISHED = 0
    BAD_ARGUMENTS = 64
    NO_INPUT = 66
    NO_DEVICE = 69
    DEFECT = 70
    PREEMPTED = 75


class TrainerError(Exception):
    """A failure the trainer can explain.

    Attributes:
        exit_code: what the process ends with.
        error_class: one of the shared error classes, such as `VERSION` or `HBM_OOM`.
        detail: what happened, one line.
        hint: what to do about it, one line.
    """

    def __init__(self, exit_code: ExitCode, error_class: str, detail: str, hint: str) -> None:
        super().__init__(detail)
        self.exit_code = exit_code
        self.error_class = error_class
        self.detail = detail
        self.hint = hint


@dataclass(frozen=True)
class Diagnosis:
    """What a known error text means."""

    error_class: str
    hint: str


@dataclass(frozen=True)
class _Known:
    pattern: re.Pattern[str]
    diagnosis: Diagnosis


def _known(pattern: str, error_class: str, hint: str) -> _Known:
    return _Known(re.compile(pattern, re.IGNORECASE), Diagnosis(error_class, hint))


_STACK = re.compile(r'\s*(File ".*", line \d+|Detected at node|Graph execution error)')
_CONNECT_HINT = "a worker restarted or was preempted: look at the node's state, then resume the run"

_KNOWN: tuple[_Known, ...] = (
    _known(
        r"ConfigureDistributedTpuOp_DoWork not available",
        "VERSION",
        "libtpu is too new for this TensorFlow: install tensorflow-tpu==2.19.1, which pins libtpu",
    ),
    _known(
        r"No OpKernel was registered to support Op 'ConfigureDistributedTPU'",
        "VERSION",
        "this TensorFlow has no TPU support: install tensorflow-tpu instead of tensorflow",
    ),
    _known(
        r"No matching devices found for '/device:TPU_SYSTEM:0'",
        "CONNECT",
        "the TPU library was not loaded: unset TPU_LOAD_LIBRARY on a single host, check the chips",
    ),
    _known(
        r"Failed to get TPU metadata|RET_CHECK failure .*tpu_node_interfaces",
        "CONNECT",
        "libtpu runs on a machine without TPU chips: use --tpu none or a TPU VM",
    ),
    _known(
        r"Please provide a TPU Name to connect to|Could not lookup TPU metadata from name",
        "CONNECT",
        "give --tpu the node's name, and let the service account read the node (tpu.nodes.get)",
    ),
    _known(
        r"TPU .* is not yet ready; state:", "PREEMPTED", "the node is not READY: wait, or resume"
    ),
    _known(
        r"already in use by another process|open\(/dev/accel\d|/dev/vfio/\d.*busy|libtpu lockfile",
        "DEVICE_BUSY",
        "another process holds the chips: find it with `sudo lsof -w /dev/accel0` and end it",
    ),
    _known(
        r"Ran out of memory in memory space hbm|Exceeded hbm capacity",
        "HBM_OOM",
        "use a smaller --batch_size, --precision bfloat16, or a type with more memory per chip",
    ),
    _known(
        r"Attempting to (reserve|allocate) .* (HBM|on TPU)",
        "HBM_OOM",
        "use a smaller --batch_size, --precision bfloat16, or a type with more memory per chip",
    ),
    _known(
        r"Socket closed|failed to connect to all addresses|Unable to find a context_id"
        r"|expects a different device incarnation",
        "CONNECT",
        _CONNECT_HINT,
    ),
    _known(
        r"InvalidFileSystem|File system scheme '\[local\]' not implemented",
        "LOCAL_PATH",
        "TPU workers cannot read local files: put the data and the model_dir on gs://",
    ),
    _known(
        r"does not have storage\.\S+ access|executing an HTTP request: HTTP response code 40[13]"
        r"|Anonymous caller does not have",
        "BUCKET_ACCESS",
        "give the node's service account roles/storage.objectAdmin on the bucket",
    ),
    _known(
        r"No space left on device|Disk quota exceeded|Read-only file system|File too large",
        "BUCKET_ACCESS",
        "free space in the run's folder or choose another bucket; earlier checkpoints are unharmed",
    ),
    _known(
        r"Cannot allocate memory|std::bad_alloc|MemoryError|OOM when allocating tensor",
        "HOST_OOM",
        "the host ran out of memory: use a smaller --batch_size or smaller data",
    ),
    _known(
        r"GLIBC(XX)?_\d|undefined symbol|numpy\.core\.multiarray failed to import"
        r"|Descriptors cannot be created directly",
        "VERSION",
        "the installed packages do not fit together: make a fresh environment for TensorFlow",
    ),
)


def classify(text: str) -> Diagnosis | None:
    """Return what a known error text means, or None.

    Args:
        text: an exception's text or the last lines of a process's stderr.
    """
    for known in _KNOWN:
        if known.pattern.search(text):
            return known.diagnosis
    return None


def one_line(text: str, limit: int = 500) -> str:
    """Return `text` on one line, at most `limit` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 3] + "..."


def access_error(error: Exception, what: str) -> TrainerError:
    """Return the failure of reading or writing the run's folder."""
    known = classify(str(error))
    return TrainerError(
        ExitCode.DEFECT,
        known.error_class if known else "BUCKET_ACCESS",
        f"{what}: {plain(str(error))}",
        known.hint if known else "check that the folder exists and may be written, then resume",
    )


def no_input(detail: str, hint: str, error_class: str = "BAD_REQUEST") -> TrainerError:
    """Return the failure of unusable input."""
    return TrainerError(ExitCode.NO_INPUT, error_class, one_line(detail), hint)


def plain(text: str) -> str:
    """Return an error's text without the graph's stack and names of nodes around it."""
    lines = text.splitlines()
    stack = [number for number, line in enumerate(lines) if _STACK.match(line)]
    told = "\n".join(lines[stack[-1] + 1 :]) if stack else text
    told = re.sub(r"\{\{[^}]*\}\}|\[\[[^\]]*\]\]|\[Op:\w+\]( name:)?", "", told)
    return one_line(told if told.strip() else text, 300)
