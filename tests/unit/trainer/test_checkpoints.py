"""Each kind of damage to a checkpoint, with the real job in this process."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.unit.trainer.jobs import run_job
from trainer.faults import ExitCode, TrainerError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.trains

STEPS = 6


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the folder of a run that went straight through, and its weights' digest."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    code, events = run_job(folder)
    assert code == ExitCode.FINISHED
    return folder, events["finish"][0]["weights_sha256"]


@pytest.fixture
def copy(trained: tuple[Path, str], tmp_path: Path) -> Path:
    """Return a copy of that folder, to damage."""
    shutil.copytree(trained[0], tmp_path / "run")
    return tmp_path / "run"


def newest(folder: Path, ending: str) -> Path:
    """Return a file of the newest checkpoint."""
    (path,) = (folder / "checkpoints").glob(f"ckpt-{STEPS}.{ending}*")
    return path


def truncate(folder: Path) -> None:
    """Cut the data in half."""
    path = newest(folder, "data")
    os.truncate(path, path.stat().st_size // 2)


def empty(folder: Path) -> None:
    """Leave nothing of the data."""
    os.truncate(newest(folder, "data"), 0)


def flip(folder: Path) -> None:
    """Turn over some bytes in the middle of the data."""
    path = newest(folder, "data")
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 8] = bytes(255 - value for value in content[middle : middle + 8])
    path.write_bytes(content)


def lose_data(folder: Path) -> None:
    """Remove the data."""
    newest(folder, "data").unlink()


def cut_index(folder: Path) -> None:
    """Cut the index."""
    os.truncate(newest(folder, "index"), 10)


def lose_index(folder: Path) -> None:
    """Remove the index."""
    newest(folder, "index").unlink()


def test_kept_checkpoints_and_what_describes_them(trained: tuple[Path, str]) -> None:
    files = sorted(path.name for path in (trained[0] / "checkpoints").iterdir())
    indices = [name for name in files if name.endswith(".index")]
    assert indices == ["ckpt-2.index", "ckpt-4.index", "ckpt-6.index"]
    described = json.loads((trained[0] / "checkpoints" / "ckpt-6.json").read_text())
    assert described["keras_flavour"] == "keras3"
    assert described["versions"]["tensorflow"]
    assert not (trained[0] / "quarantine").exists()


@pytest.mark.parametrize("damage", [truncate, empty, flip, lose_data, cut_index, lose_index])
def test_damaged_newest_is_set_aside_and_training_falls_back(
    copy: Path, trained: tuple[Path, str], damage: Callable[[Path], None]
) -> None:
    damage(copy)
    code, events = run_job(copy)
    assert code == ExitCode.FINISHED
    (restore,) = events["restore"]
    assert (restore["step"], restore["quarantined"]) == (4, [f"ckpt-{STEPS}"])
    assert restore["severity"] == "WARNING"
    assert list((copy / "quarantine" / f"ckpt-{STEPS}").iterdir())
    assert events["finish"][0]["weights_sha256"] == trained[1]


@pytest.mark.parametrize("content", [b"", b"\x00\xff garbage", None])
def test_state_file_of_tensorflow_is_not_trusted(
    copy: Path, trained: tuple[Path, str], content: bytes | None
) -> None:
    state = copy / "checkpoints" / "checkpoint"
    state.unlink()
    if content is not None:
        state.write_bytes(content)
    code, events = run_job(copy)
    assert code == ExitCode.FINISHED
    (restore,) = events["restore"]
    assert restore["step"] == STEPS
    assert restore["quarantined"] == ([] if content is None else ["checkpoint"])
    assert events["finish"][0]["weights_sha256"] == trained[1]
    assert "step" not in events, "a finished run is not trained again"
    if content is not None:
        assert (copy / "quarantine" / "checkpoint" / "checkpoint").read_bytes() == content


def test_no_good_checkpoint_stops_instead_of_starting_over(copy: Path) -> None:
    for path in (copy / "checkpoints").glob("*.data*"):
        os.truncate(path, 100)
    before = sorted(path.name for path in (copy / "checkpoints").iterdir())
    for _ in range(2):
        with pytest.raises(TrainerError) as caught:
            run_job(copy)
        assert caught.value.exit_code == ExitCode.DEFECT
        assert caught.value.error_class == "CKPT_INCOMPLETE"
        assert "ckpt-2" in caught.value.detail
    assert sorted(path.name for path in (copy / "checkpoints").iterdir()) == before


def test_lost_files_that_the_state_file_names_stop_too(copy: Path) -> None:
    for path in (copy / "checkpoints").glob("ckpt-*"):
        path.unlink()
    with pytest.raises(TrainerError) as caught:
        run_job(copy)
    assert caught.value.error_class == "CKPT_INCOMPLETE"


def test_debris_of_a_killed_save_is_swept(copy: Path) -> None:
    debris = copy / "checkpoints" / "ckpt-9_temp"
    debris.mkdir()
    (debris / "part-00000-of-00001.data-00000-of-00001").write_bytes(b"x" * 5000)
    _, events = run_job(copy)
    assert not debris.exists()
    assert any("5000 bytes" in event["message"] for event in events["warning"])


@pytest.mark.parametrize(
    ("changes", "said", "exit_code"),
    [
        ({"keras_flavour": "tf_keras"}, "saved with tf_keras", ExitCode.DEFECT),
        ({"model": "other"}, "belongs to another model", ExitCode.DEFECT),
    ],
)
def test_foreign_checkpoint_is_refused(
    copy: Path, changes: dict[str, str], said: str, exit_code: ExitCode
) -> None:
    path = newest(copy, "json")
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(TrainerError) as caught:
        run_job(copy)
    assert caught.value.exit_code == exit_code
    assert said in caught.value.detail
    assert newest(copy, "index").exists(), "nothing is moved"


def test_checkpoint_of_another_model_without_metadata_is_refused(copy: Path) -> None:
    import tensorflow as tf

    newest(copy, "json").unlink()
    other = tf.train.Checkpoint(step=tf.Variable(8, dtype=tf.int64), other=tf.Variable([1.0]))
    other.write(str(copy / "checkpoints" / f"ckpt-{STEPS}"))
    with pytest.raises(TrainerError) as caught:
        run_job(copy)
    assert "another model" in caught.value.detail


def test_changed_settings_are_warned(copy: Path) -> None:
    _, events = run_job(copy, "--seed", "99")
    assert any("seed was 1" in event["message"] for event in events["warning"])


def test_finished_run_can_be_given_more_steps(copy: Path) -> None:
    code, events = run_job(copy, "--steps", "8")
    assert code == ExitCode.FINISHED
    assert events["step"][-1]["step"] == 8
    files = {path.name.partition(".")[0] for path in (copy / "checkpoints").glob("ckpt-*")}
    assert files == {"ckpt-4", "ckpt-6", "ckpt-8"}, "three are kept over restarts too"
    for event in events["step"]:
        assert 0 <= event["input_wait_fraction"] <= 1
        assert 0 <= event["device_fraction"] <= 1


def test_failed_save_is_told_and_harms_nothing(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tensorflow as tf

    def full(*_: object, **__: object) -> None:
        raise tf.errors.ResourceExhaustedError(None, None, "x; No space left on device")

    monkeypatch.setattr(tf.train.CheckpointManager, "save", full)
    before = sorted(path.name for path in (copy / "checkpoints").iterdir())
    with pytest.raises(TrainerError) as caught:
        run_job(copy, "--steps", "8")
    assert caught.value.error_class == "BUCKET_ACCESS"
    assert "step 8 was not saved" in caught.value.detail
    assert sorted(path.name for path in (copy / "checkpoints").iterdir()) == before


def test_files_of_any_name_beside_the_checkpoints_are_left_alone(copy: Path) -> None:
    folder = copy / "checkpoints"
    odd = [b"bad\xff", b"ckpt-9\xff.index", "größe .txt".encode()]
    for name in odd:
        (folder / os.fsdecode(name)).touch()
    (folder / "dangling").symlink_to("nowhere")
    (folder / "loop").symlink_to(".")
    code, events = run_job(copy, steps=STEPS + 2)
    assert code == ExitCode.FINISHED
    assert events["restore"][0]["step"] == STEPS
    left = {os.fsencode(each.name) for each in folder.iterdir()}
    assert {*odd, b"dangling", b"loop"} <= left
