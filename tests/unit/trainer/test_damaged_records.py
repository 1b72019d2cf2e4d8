"""TFRecord files damaged anywhere: read as they were, or refused with the file's name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.trainer.jobs import write_examples
from trainer.data.records import decoded_batches, make_decoder
from trainer.faults import ExitCode, TrainerError
from trainer.model_specs import CNN

if TYPE_CHECKING:
    from pathlib import Path

    from trainer.data.records import Decoder

IMAGES = np.random.default_rng(1).integers(0, 256, (12, 28, 28, 1), dtype=np.uint8)
LABELS = [number % 10 for number in range(12)]


@pytest.fixture(scope="module", params=["a.tfrecord", "a.tfrecord.gz"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file without damage."""
    path: Path = tmp_path_factory.mktemp("whole") / request.param
    write_examples(path, IMAGES, LABELS)
    return path


@pytest.fixture(scope="module")
def decoder(whole: Path) -> Decoder:
    """Return the decoder of the file, which takes longer to make than the file to read."""
    return make_decoder([str(whole)], CNN)


@settings(max_examples=20, deadline=None)
@given(where=st.floats(0, 1, exclude_max=True), patch=st.binary(max_size=40), cut=st.booleans())
def test_damage_is_told_or_harmless(
    whole: Path, decoder: Decoder, where: float, patch: bytes, *, cut: bool
) -> None:
    content = whole.read_bytes()
    at = int(where * len(content))
    damaged = whole.with_name(f"damaged-{whole.name}")
    damaged.write_bytes(content[:at] + patch + (b"" if cut else content[at + len(patch) :]))
    read: list[tuple[bytes, int]] = []
    told: TrainerError | None = None
    try:
        for images, labels in decoded_batches([str(damaged)], decoder):
            pairs = zip(images.numpy(), labels.numpy(), strict=True)
            read += [(image.tobytes(), int(label)) for image, label in pairs]
    except TrainerError as fault:
        told = fault
    expected = [(image.tobytes(), label) for image, label in zip(IMAGES, LABELS, strict=True)]
    assert read == expected[: len(read)]
    if told is not None:
        assert told.exit_code == ExitCode.NO_INPUT
        assert damaged.name in told.detail
        assert "\n" not in told.detail
