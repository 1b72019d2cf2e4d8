"""Failures of the input, told in one line: which file, what is wrong, what to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import tensorflow as tf

from trainer.faults import TrainerError, classify, no_input, plain

if TYPE_CHECKING:
    from collections.abc import Iterable

MARK = "INPUT:"
"""Begins the message of each check that runs inside TensorFlow's graph."""
_CHECK_HINT = "find what is wrong with: python -m trainer.data check FILES"
_MARKED = re.compile(r"\[" + MARK + r"([^\]]*)\]((?: \[[^\]]*\])*)")
_ONLY_INPUT = re.compile(
    r"corrupted record|truncated record|could not parse example|can't parse serialized example"
    r"|key: \S+\. |data types don't match|unknown image file|invalid png|invalid jpeg|decode_image"
    r"|decodeimage|input is empty|end of sequence|tfrecord|iteratorgetnext",
    re.IGNORECASE,
)
_INPUT_ERRORS = (
    tf.errors.DataLossError,
    tf.errors.NotFoundError,
    tf.errors.OutOfRangeError,
    tf.errors.InvalidArgumentError,
    tf.errors.FailedPreconditionError,
)


def from_tensorflow(error: Exception, what: str) -> TrainerError:
    """Return the failure behind an error that TensorFlow raised while reading `what`."""
    text = str(error)
    marked = _MARKED.search(text)
    if marked:
        values = re.sub(r"[\[\]]", "", marked.group(2))
        return no_input(f"{what}:{marked.group(1)}{values}", _CHECK_HINT)
    known = classify(text)
    if known:
        return no_input(f"{what}: {plain(text)}", known.hint, known.error_class)
    hint = "check that the files are complete TFRecord files"
    if isinstance(error, tf.errors.DataLossError):
        hint = "the file is damaged: copy it again from its source; " + _CHECK_HINT
    return no_input(f"{what}: {plain(text)}", hint)


def input_failure(error: Exception, files: Iterable[str]) -> TrainerError | None:
    """Return the failure if an error of the training step came from the input, else None.

    Args:
        error: what TensorFlow raised.
        files: the training files; the damaged one among them is looked for and named.
    """
    if not isinstance(error, _INPUT_ERRORS):
        return None
    text = str(error)
    if not (_MARKED.search(text) or _ONLY_INPUT.search(text)):
        return None
    named = _first_damaged(files) if isinstance(error, tf.errors.DataLossError) else None
    return from_tensorflow(error, named or "--train_files")


def _first_damaged(files: Iterable[str]) -> str | None:
    return next((name for name in files if _is_damaged(name)), None)


def _is_damaged(name: str) -> bool:
    try:
        for _ in tf.data.TFRecordDataset([name], _compression_of(name)).batch(4096):
            pass
    except tf.errors.OpError:
        return True
    return False


def _compression_of(name: str) -> str:
    return "GZIP" if name.endswith(".gz") else ""
