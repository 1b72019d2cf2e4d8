"""A disk that is really full: a small file system in memory, where the user may make one."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.unit.trainer.jobs import run_job
from tests.unit.trainer.test_convert import convert
from trainer.faults import ExitCode, TrainerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.trains, pytest.mark.slow]


@pytest.fixture
def disk_of(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Return what makes a disk of so many KiB."""
    made: list[Path] = []

    def make(kibibytes: int) -> Path:
        place = tmp_path / "disk"
        place.mkdir()
        options = ["-t", "tmpfs", "-o", f"size={kibibytes}k", "tmpfs", str(place)]
        done = subprocess.run(["mount", *options], check=False, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
        made.append(place)
        return place

    yield make
    for place in made:
        # The events file of the job is still open, so it goes when that is closed.
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.parametrize(
    ("kibibytes", "said", "kept"),
    [
        (1024, "the checkpoint of step 2 was not saved", []),
        (5 * 1024, "the checkpoint of step 8 was not saved", [2, 4, 6]),
        (4096 + 512, "the checkpoint of step 8 was not saved", [2, 4, 6]),
    ],
)
def test_full_disk_ends_the_run_and_keeps_what_was_saved(
    disk_of: Callable[[int], Path], kibibytes: int, said: str, kept: list[int]
) -> None:
    run = disk_of(kibibytes) / "run"
    with pytest.raises(TrainerError) as caught:
        run_job(run, "--synthetic", "64", steps=20)
    fault = caught.value
    assert (fault.exit_code, fault.error_class) == (ExitCode.DEFECT, "BUCKET_ACCESS")
    assert said in fault.detail
    assert fault.detail.endswith("No space left on device")
    assert "free space" in fault.hint
    steps = sorted(int(path.stem[5:]) for path in (run / "checkpoints").glob("ckpt-*.index"))
    assert steps == kept


def test_export_that_does_not_fit_is_told_and_the_checkpoint_stays(
    disk_of: Callable[[int], Path],
) -> None:
    run = disk_of(2048) / "run"
    with pytest.raises(TrainerError, match="the model was not exported") as caught:
        run_job(run, "--synthetic", "64", steps=2)
    assert caught.value.error_class == "BUCKET_ACCESS"
    assert list((run / "checkpoints").glob("ckpt-2.index"))
    assert not list((run / "export").glob("2"))


def test_conversion_that_does_not_fit_leaves_nothing(
    disk_of: Callable[[int], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(
        tmp_path / "a.npz", images=np.zeros((2000, 28, 28), np.uint8), labels=np.zeros(2000, int)
    )
    out = disk_of(1024) / "out"
    code, said = convert(capsys, tmp_path / "a.npz", "--out", out)
    assert code == ExitCode.DEFECT
    assert "No space left on device" in said
    assert list(out.iterdir()) == []
