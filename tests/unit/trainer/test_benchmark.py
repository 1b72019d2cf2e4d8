"""The benchmark's own parts; the whole of it runs in tests/bench/test_trainer_benchmark.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from trainer.benchmark.command import _middle, main
from trainer.benchmark.digits import write_digits
from trainer.peaks import peak_flops

if TYPE_CHECKING:
    from pathlib import Path


def test_digits_are_shifted_and_the_held_out_ones_real(tmp_path: Path) -> None:
    from trainer.data.embedded import held_out_mask, read_embedded

    write_digits(tmp_path / "d.npz", 5000, seed=1)
    with np.load(tmp_path / "d.npz") as arrays:
        assert arrays["x_train"].shape == (5000, 28, 28)
        counts = np.bincount(arrays["y_train"])
        images, labels = read_embedded()
        held_out = held_out_mask(labels)
        assert (arrays["x_test"] == images[held_out, :, :, 0]).all()
        originals = {image.tobytes() for image in images[~held_out]}
        unmoved = sum(image.tobytes() in originals for image in arrays["x_train"])
    assert counts.min() >= 475, "all classes alike"
    assert 100 < unmoved < 400, "one of 25 shifts moves nothing"


@pytest.mark.parametrize(
    ("kind", "peak"),
    [("v2-8", 184e12), ("v4-8", 1100e12), ("v5litepod-4", 788e12), ("v9-8", None), ("", None)],
)
def test_peak_of_a_type(kind: str, peak: float | None) -> None:
    assert peak_flops(kind) == pytest.approx(peak)


@pytest.mark.parametrize(
    "arguments", ["--epochs 0", "--batch_size 9 --examples 8", "--model x", "--unknown"]
)
def test_wrong_options_end_64(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments.split()) == 64
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1


def test_the_median_of_the_rounds_is_reported() -> None:
    rounds = [{"examples_per_second": rate} for rate in (9.0, 30.0, 11.0)]
    assert _middle(rounds) == {"examples_per_second": 11.0}
    assert _middle(rounds[:2]) == {"examples_per_second": 9.0}
