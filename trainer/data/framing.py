"""The frames of a TFRecord file: where its records lie. Needs no TensorFlow.

Source: "TFRecords format details" in TensorFlow's guide: length, its checksum, data, its checksum.
"""

from __future__ import annotations

import mmap
import struct
from typing import TYPE_CHECKING

from trainer.faults import no_input

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEADER_BYTES = 12
_HEADER = struct.Struct("<QI")
_FOOTER_BYTES = 4
DAMAGED_HINT = "the file is damaged: copy it again from its source"


def count_local(path: Path, size: int) -> int:
    """Return the records of a local, uncompressed file of `size` bytes.

    Raises:
        TrainerError: the file ends within a record, or a length is damaged.
    """
    if size == 0:
        return 0
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
        return sum(1 for _ in frames(str(path), view))


def frames(name: str, view: bytes | mmap.mmap) -> Iterator[tuple[int, int]]:
    """Yield where each record's data begins and how long it is, hopping from length to length.

    Only the lengths are verified here; whoever reads the data verifies its checksum.

    Raises:
        TrainerError: the file ends within a record, or a length is damaged.
    """
    records, offset, size = 0, 0, len(view)
    while offset < size:
        where = f"{name}: record {records} at byte {offset}"
        if offset + HEADER_BYTES > size:
            raise no_input(f"{where} is cut short", DAMAGED_HINT)
        length, checksum = _HEADER.unpack_from(view, offset)
        if checksum != masked_crc(view[offset : offset + 8]):
            raise no_input(f"{where} is a corrupted record: its length", DAMAGED_HINT)
        if offset + HEADER_BYTES + length + _FOOTER_BYTES > size:
            raise no_input(f"{where} is cut short", DAMAGED_HINT)
        yield offset + HEADER_BYTES, length
        records, offset = records + 1, offset + HEADER_BYTES + length + _FOOTER_BYTES


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC = _crc_table()


def masked_crc(data: bytes) -> int:
    """Return the CRC-32C of some bytes, masked as the TFRecord format stores it.

    Source: "TFRecords format details" in TensorFlow's guide.
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
