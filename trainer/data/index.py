"""How many records each TFRecord file holds, found out once and kept.

`python -m trainer.data convert` writes the numbers beside the files; else they are counted, and
kept in the run's folder so that a resumed run need not count again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from trainer.data.framing import count_local
from trainer.data.records import raw_batches
from trainer.joblock import is_remote

if TYPE_CHECKING:
    from collections.abc import Sequence

DATASET_FILE = "dataset.json"
KEPT_FILE = "data_index.json"
_COUNTED_AT_ONCE = 512


def count_records(files: Sequence[str], keep_in: str | None = None) -> list[int]:
    """Return the number of records of each file.

    Args:
        files: paths or gs:// URLs.
        keep_in: folder of the run, where counted numbers are kept; None keeps nothing.

    Raises:
        TrainerError: a file is cut short or cannot be read; it is named.
    """
    known: dict[str, Any] = {}
    for folder in dict.fromkeys(name.rpartition("/")[0] for name in files):
        listed = _read_json(f"{folder}/{DATASET_FILE}").get("files")
        if isinstance(listed, dict):
            known |= {f"{folder}/{name}": each for name, each in listed.items()}
    kept_path = f"{keep_in}/{KEPT_FILE}" if keep_in else None
    if kept_path:
        known |= _read_json(kept_path)
    counts, counted = [], {}
    for name in files:
        size = int(tf.io.gfile.stat(name).length)
        entry = known.get(name)
        if isinstance(entry, dict) and entry.get("bytes") == size and "records" in entry:
            counts.append(int(entry["records"]))
            continue
        counts.append(_count(name, size))
        counted[name] = {"bytes": size, "records": counts[-1]}
    if kept_path and counted:
        _keep(kept_path, {**known, **counted})
    return counts


def _read_json(path: str) -> dict[str, Any]:
    try:
        with tf.io.gfile.GFile(path, "r") as file:
            content = json.loads(file.read())
    except (tf.errors.OpError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _keep(path: str, content: dict[str, Any]) -> None:
    try:
        with tf.io.gfile.GFile(f"{path}.tmp", "w") as file:
            file.write(json.dumps(content) + "\n")
        tf.io.gfile.rename(f"{path}.tmp", path, overwrite=True)
    except tf.errors.OpError:
        # Only time is lost: the next start counts again.
        return


def _count(name: str, size: int) -> int:
    if is_remote(name) or name.endswith(".gz"):
        return sum(int(batch.shape[0]) for batch in raw_batches(name, _COUNTED_AT_ONCE))
    return count_local(Path(name), size)
