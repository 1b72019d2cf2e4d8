"""The JAX recipe's real job: resume, damage, bad numbers, accumulation, and what it tells."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.unit.trainer.event_schema import check_schema
from tests.unit.trainer.jax_jobs import run_jax_job
from tests.unit.trainer.jobs import run_job, write_digits
from trainer.faults import ExitCode, TrainerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.trains


@pytest.fixture(scope="module", autouse=True)
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what was compiled between the jobs of this file."""
    import jax

    folder = str(tmp_path_factory.mktemp("compiled"))
    settings = {
        "jax_compilation_cache_dir": folder,
        "jax_persistent_cache_min_compile_time_secs": 0.0,
    }
    before = {name: getattr(jax.config, name) for name in settings}
    for name, value in settings.items():
        jax.config.update(name, value)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the folder of a run that went straight through, and its weights' digest."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    code, events = run_jax_job(folder, "--eval_every", "4")
    assert code == ExitCode.FINISHED
    check_schema(events)
    assert [event["step"] for event in events["eval"]] == [4, 6]
    return folder, events["finish"][0]["weights_sha256"]


@pytest.fixture
def copy(trained: tuple[Path, str], tmp_path: Path) -> Path:
    """Return a copy of that folder, to damage."""
    shutil.copytree(trained[0], tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    "source",
    [
        "digits",
        pytest.param("files", marks=pytest.mark.slow),
        "files --memory_mb 0",
        pytest.param(
            "--synthetic 64 --schedule cosine --warmup_steps 3 --clip_norm 1 --accumulate 2",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_interrupted_run_ends_with_the_same_weights(tmp_path: Path, source: str) -> None:
    flags = source.removeprefix("digits").split()
    if flags[:1] == ["files"]:
        flags = [*write_digits(tmp_path / "data").split(), *flags[1:]]
    _, straight = run_jax_job(tmp_path / "straight", *flags, steps=9, every=4)
    code, first = run_jax_job(tmp_path / "run", *flags, steps=9, every=4, stop_at=4)
    assert code == ExitCode.PREEMPTED
    assert first["preempt"][0]["step"] == 4
    check_schema(first)
    code, second = run_jax_job(tmp_path / "run", *flags, steps=9, every=4)
    assert code == ExitCode.FINISHED
    assert second["restore"][0]["step"] == 4
    assert "result will differ" not in str(second["warning"])
    (trace,) = (one for one in second["stage"] if one["stage"] == "trace")
    assert trace["input"]["source"] == ("files" if "--memory_mb" in flags else "memory")
    for kind in ("weights_sha256", "metrics"):
        assert second["finish"][0][kind] == straight["finish"][0][kind]


def newest(folder: Path) -> Path:
    """Return the largest file of the newest checkpoint."""
    files = [path for path in (folder / "checkpoints/ckpt-6").rglob("*") if path.is_file()]
    return max(files, key=lambda path: path.stat().st_size)


def truncate(folder: Path) -> None:
    path = newest(folder)
    os.truncate(path, path.stat().st_size // 2)


def flip(folder: Path) -> None:
    content = bytearray(newest(folder).read_bytes())
    content[len(content) // 2] ^= 0xFF
    newest(folder).write_bytes(content)


def lose_a_file(folder: Path) -> None:
    newest(folder).unlink()


def lose_the_folder(folder: Path) -> None:
    shutil.rmtree(folder / "checkpoints/ckpt-6")


def never_complete(folder: Path) -> None:
    (folder / "checkpoints/ckpt-6.json").unlink()


def garble_description(folder: Path) -> None:
    (folder / "checkpoints/ckpt-6.json").write_bytes(b"\x00{")


def empty_description(folder: Path) -> None:
    (folder / "checkpoints/ckpt-6.json").write_text("")


DAMAGES = [
    truncate,
    flip,
    lose_a_file,
    lose_the_folder,
    never_complete,
    garble_description,
    empty_description,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_newest_is_set_aside_and_training_falls_back(
    copy: Path, trained: tuple[Path, str], damage: Callable[[Path], None]
) -> None:
    damage(copy)
    (copy / "checkpoints/.staging-left").mkdir()
    code, events = run_jax_job(copy)
    assert code == ExitCode.FINISHED
    (restore,) = events["restore"]
    assert (restore["step"], restore["quarantined"]) == (4, ["ckpt-6"])
    assert restore["severity"] == "WARNING"
    assert list((copy / "quarantine/ckpt-6").iterdir())
    assert events["finish"][0]["weights_sha256"] == trained[1]
    assert not (copy / "checkpoints/.staging-left").exists()


def test_when_none_is_good_the_run_stops_and_leaves_all_as_it_is(copy: Path) -> None:
    for path in (copy / "checkpoints").rglob("manifest.ocdbt"):
        path.write_bytes(b"")
    before = sorted(str(path) for path in copy.rglob("*") if "checkpoints" in str(path))
    with pytest.raises(TrainerError) as caught:
        run_jax_job(copy)
    assert caught.value.error_class == "CKPT_INCOMPLETE"
    assert sorted(str(path) for path in copy.rglob("*") if "checkpoints" in str(path)) == before


def test_recipes_refuse_each_others_checkpoints(copy: Path, tmp_path: Path) -> None:
    with pytest.raises(TrainerError, match="JAX recipe") as caught:
        run_job(copy)
    assert caught.value.error_class == "VERSION"
    (copy / "checkpoints/ckpt-8.index").write_bytes(b"")
    with pytest.raises(TrainerError, match="TensorFlow recipe"):
        run_jax_job(copy)


def test_checkpoint_of_another_model_is_refused_with_a_sentence(copy: Path) -> None:
    flags = ("--synthetic", "64", "--classes", "7")
    with pytest.raises(TrainerError, match="belongs to another model") as caught:
        run_jax_job(copy, *flags)
    assert caught.value.error_class == "BAD_REQUEST"
    assert (copy / "checkpoints/ckpt-6.json").exists()


def test_another_number_of_devices_is_told(copy: Path) -> None:
    path = copy / "checkpoints/ckpt-6.json"
    path.write_text(path.read_text().replace('"devices": 1', '"devices": 4'))
    _, events = run_jax_job(copy)
    assert "devices was 4 in ckpt-6 and is 1 now" in str(events["warning"])


def test_only_the_newest_checkpoints_are_kept_and_they_are_orbax_own(
    trained: tuple[Path, str],
) -> None:
    import orbax.checkpoint as ocp

    _, events = run_jax_job(trained[0], steps=8)
    assert [event["step"] for event in events["checkpoint"]] == [8]
    names = sorted(path.name for path in (trained[0] / "checkpoints").iterdir())
    assert names == [f"ckpt-{step}{end}" for step in (4, 6, 8) for end in ("", ".json")]
    tree = ocp.PyTreeCheckpointer().restore(trained[0] / "checkpoints/ckpt-8")
    assert tree["weights/conv1/kernel"].shape == (3, 3, 1, 32)


def test_step_that_is_no_number_is_named_and_never_saved(tmp_path: Path) -> None:
    with pytest.raises(TrainerError) as caught:
        run_jax_job(tmp_path / "run", "--learning_rate", "2e9", steps=30, every=30)
    assert caught.value.exit_code == ExitCode.DEFECT
    assert "NaN or infinite at step" in caught.value.detail
    assert "no checkpoint exists yet" in caught.value.detail
    assert not list((tmp_path / "run/checkpoints").iterdir())


def test_run_stops_early_and_takes_the_best_weights(tmp_path: Path) -> None:
    flags = ["--learning_rate", "0.05", "--eval_every", "2", "--early_stop", "2"]
    code, events = run_jax_job(tmp_path / "run", *flags, steps=60, every=10)
    assert code == ExitCode.FINISHED
    (stop,) = events["early_stop"]
    assert stop["step"] < 60
    finish = events["finish"][0]
    assert finish["metrics"]["best_step"] == stop["best_step"]
    assert finish["metrics"]["eval_loss"] == pytest.approx(stop["best_loss"], rel=1e-5)


def test_accumulated_batch_equals_the_whole_one(tmp_path: Path) -> None:
    losses = [
        run_jax_job(tmp_path / parts, "--accumulate", parts, steps=4, every=4)[1]["finish"][0][
            "metrics"
        ]["eval_loss"]
        for parts in ("1", "4")
    ]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)


def test_trace_and_export_are_what_their_users_can_read(tmp_path: Path) -> None:
    from jax import export

    _, events = run_jax_job(tmp_path / "run", "--profile", "2:2", steps=6, every=6)
    assert Path(events["profile"][0]["path"]).stat().st_size > 0
    folder = Path(events["finish"][0]["export"])
    described = json.loads((folder / "model.json").read_text())
    assert (described["step"], described["image_shape"]) == (6, [28, 28, 1])
    served = export.deserialize(bytearray((folder / "model.stablehlo").read_bytes()))
    for count in (1, 3):
        answer: Any = served.call(np.zeros((count, 28, 28, 1), np.uint8))
        assert np.asarray(answer["probabilities"]).sum(-1) == pytest.approx(
            np.ones(count), abs=1e-5
        )
    with np.load(folder / "weights.npz") as weights:
        assert "conv1/kernel" in weights.files
