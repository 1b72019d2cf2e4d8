"""Which files a path or pattern names on this machine. Needs no TensorFlow."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.faults import no_input

if TYPE_CHECKING:
    from collections.abc import Iterable


def local_files(pattern: str, flag: str) -> list[str]:
    """Return the sorted files of a path, or of a pattern if there is nothing of just that name.

    Raises:
        TrainerError: there are none, or it is a folder.
    """
    # A file may be called part[1].tfrecord, which as a pattern would not match itself.
    is_literal = Path(pattern).exists()
    found = [pattern] if is_literal else sorted(glob.glob(pattern))  # noqa: PTH207 - as given
    files = [name for name in found if not Path(name).is_dir()]
    if files:
        return files
    if found:
        folder = found[0].rstrip("/")
        raise no_input(f"{flag} {pattern}: {folder} is a folder", f"give {folder}/train-*.tfrecord")
    raise no_input(
        f"{flag} {pattern}: no such file",
        "check the path; patterns such as /data/train-*.tfrecord are allowed",
    )


def named_once(files: Iterable[str]) -> list[str]:
    """Return files in order without those that an earlier pattern named already."""
    return list(dict.fromkeys(files))
