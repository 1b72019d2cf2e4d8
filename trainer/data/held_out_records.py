"""Held-out data that stays in its files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.data.evaluation import Padded, padded
from trainer.data.records import RECORDS_AT_ONCE, decoded_batches

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainer.data.records import Decoder


@dataclass(frozen=True)
class HeldOutRecords:
    """Held-out examples in TFRecord files, read anew for each evaluation."""

    files: Sequence[str]
    decoder: Decoder
    examples: int

    def batches(self, batch_size: int) -> Iterator[Padded]:
        """Yield batches of equal size."""
        size = min(RECORDS_AT_ONCE, max(1, 1024 // batch_size) * batch_size)
        parts = decoded_batches(self.files, self.decoder, size)
        return padded(((images.numpy(), labels.numpy()) for images, labels in parts), batch_size)
