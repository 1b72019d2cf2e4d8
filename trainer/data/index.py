"""How many records each TFRecord file holds, found out once and kept.

`python -m trainer.data convert` writes the numbers beside the files; else they are counted, and
kept in the run's folder so that a resumed run need not count again.
"""

from __future__ import annotations

import json
import mmap
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from trainer.data.faults import no_input
from trainer.data.records import raw_batches
from trainer.joblock import is_remote

if TYPE_CHECKING:
    from collections.abc import Sequence

DATASET_FILE = "dataset.json"
KEPT_FILE = "data_index.json"
_HEADER = struct.Struct("<QI")
_AROUND = 16
"""Bytes around each record: length and its checksum before, the data's checksum after."""
_COUNTED_AT_ONCE = 512
_DAMAGED_HINT = "the file is damaged: copy it again from its source"


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


def count_local(path: Path, size: int) -> int:
    """Return the records of a local, uncompressed file by hopping from length to length.

    Only the lengths are verified here; the checksum of the data is, whenever a record is read.

    Raises:
        TrainerError: the file ends within a record, or a length is damaged.
    """
    if size == 0:
        return 0
    records, offset = 0, 0
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
        while offset < size:
            where = f"{path}: record {records} at byte {offset}"
            if offset + _HEADER.size > size:
                raise no_input(f"{where} is cut short", _DAMAGED_HINT)
            length, checksum = _HEADER.unpack_from(view, offset)
            if checksum != _masked_crc(view[offset : offset + 8]):
                raise no_input(f"{where} is a corrupted record: its length", _DAMAGED_HINT)
            records, offset = records + 1, offset + _AROUND + length
            if offset > size:
                raise no_input(f"{where} is cut short", _DAMAGED_HINT)
    return records


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC = _crc_table()


def _masked_crc(data: bytes) -> int:
    """Return the CRC-32C of some bytes, masked as the TFRecord format stores it.

    Source: "TFRecords format details" in TensorFlow's guide.
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
