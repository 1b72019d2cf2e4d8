"""What the real job does with its numbers: resume, accumulation, schedules, NaN, early stop."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.unit.trainer.event_schema import check_schema
from tests.unit.trainer.jobs import run_job, write_digits, write_examples
from trainer.faults import ExitCode, TrainerError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.trains


def digest(events: dict[str, list[dict[str, Any]]]) -> str:
    """Return the digest of the final weights."""
    return str(events["finish"][0]["weights_sha256"])


@pytest.mark.parametrize(
    "source",
    [
        "in memory",
        "streamed",
        pytest.param(
            "--synthetic 64 --schedule cosine --warmup_steps 3 --clip_norm 1 --accumulate 2",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_interrupted_run_ends_with_the_same_weights(tmp_path: Path, source: str) -> None:
    flags = source.split() if source.startswith("--") else write_digits(tmp_path / "data").split()
    if source == "streamed":
        flags += ["--memory_mb", "0"]
    _, straight = run_job(tmp_path / "straight", *flags, steps=11, every=3)
    assert [each["step"] for each in straight["checkpoint"]] == [3, 6, 9, 11]
    code, first = run_job(tmp_path / "run", *flags, steps=11, every=3, stop_at=3)
    assert code == ExitCode.PREEMPTED
    assert first["preempt"][0]["step"] == 3
    check_schema(first)
    code, second = run_job(tmp_path / "run", *flags, steps=11, every=3)
    assert code == ExitCode.FINISHED
    assert second["restore"][0]["step"] == 3
    check_schema(second)
    assert "result will differ" not in str(second["warning"])
    assert digest(second) == digest(straight)
    assert second["finish"][0]["metrics"] == straight["finish"][0]["metrics"]
    (trace,) = (one for one in second["stage"] if one["stage"] == "trace")
    assert trace["input"] == {
        "source": "files" if source == "streamed" else "memory",
        "cached": source != "streamed",
        "prefetch": True,
        "parallel_map": True,
    }


@pytest.mark.slow
def test_accumulated_batch_equals_the_whole_one(tmp_path: Path) -> None:
    losses = []
    for parts in (1, 4):
        _, events = run_job(tmp_path / str(parts), "--accumulate", str(parts), steps=8, every=8)
        losses.append(events["finish"][0]["metrics"]["eval_loss"])
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert losses[0] < 2.25


def test_step_that_is_no_number_is_named_and_never_saved(tmp_path: Path) -> None:
    _, before = run_job(tmp_path / "run", steps=4)
    with pytest.raises(TrainerError) as caught:
        run_job(tmp_path / "run", "--learning_rate", "2e9", steps=40)
    assert caught.value.exit_code == ExitCode.DEFECT
    assert "NaN or infinite at step" in caught.value.detail
    assert "the last good checkpoint is ckpt-" in caught.value.detail
    assert "--learning_rate" in caught.value.hint
    for path in (tmp_path / "run" / "checkpoints").glob("*.index"):
        import tensorflow as tf

        reader = tf.train.load_checkpoint(str(path.with_suffix("")))
        for name, shape in reader.get_variable_to_shape_map().items():
            if shape:
                assert np.isfinite(reader.get_tensor(name)).all(), path.name
    assert before["finish"]


def test_schedule_by_value() -> None:
    from trainer.schedule import Schedule
    from trainer.schedule_shape import ScheduleShape

    def rates(kind: str, steps: tuple[int, ...]) -> list[float]:
        made = Schedule(ScheduleShape(kind, 1.0, 4, 12, 0.2))
        return [round(made.at(step), 4) for step in steps]

    assert rates("constant", (0, 1, 3, 4, 99)) == [0.25, 0.5, 1.0, 1.0, 1.0]
    assert rates("linear", (0, 4, 8, 12, 99)) == [0.25, 1.0, 0.6, 0.2, 0.2]
    assert rates("cosine", (4, 8, 12, 99)) == [1.0, 0.6, 0.2, 0.2]


@pytest.mark.slow
def test_learning_rate_of_a_resumed_run_is_the_new_one(tmp_path: Path) -> None:
    run_job(tmp_path / "run", steps=2)
    _, events = run_job(tmp_path / "run", "--learning_rate", "0.5", steps=4)
    assert events["step"][-1]["learning_rate"] == 0.5
    assert any("learning_rate was 0.001" in each["message"] for each in events["warning"])
    _, gentle = run_job(tmp_path / "gentle", steps=2)
    assert gentle["step"][-1]["learning_rate"] == 0.001


@pytest.mark.slow
def test_early_stop_keeps_the_best_weights_over_a_restart(tmp_path: Path) -> None:
    flags = [*write_digits(tmp_path / "data").split(), "--eval_every", "4", "--early_stop", "2"]
    flags += ["--learning_rate", "0.03"]
    _, straight = run_job(tmp_path / "straight", *flags, steps=400, every=4)
    (stopped,) = straight["early_stop"]
    finish = straight["finish"][0]
    losses = {each["step"]: each["loss"] for each in straight["eval"]}
    assert stopped["step"] < 400
    assert min(losses, key=lambda step: losses[step]) == stopped["best_step"]
    assert finish["metrics"]["best_step"] == stopped["best_step"] == stopped["step"] - 8
    assert finish["metrics"]["eval_loss"] == losses[stopped["best_step"]]

    code, _ = run_job(tmp_path / "run", *flags, steps=400, every=4, stop_at=stopped["step"] - 4)
    assert code == ExitCode.PREEMPTED
    _, resumed = run_job(tmp_path / "run", *flags, steps=400, every=4)
    assert resumed["finish"][0]["metrics"] == finish["metrics"]
    assert len(list((tmp_path / "run" / "best").glob("*.index"))) == 1
    assert "early_stop" in resumed


@pytest.mark.slow
def test_trace_is_written_and_named(tmp_path: Path) -> None:
    _, events = run_job(tmp_path / "run", "--profile", "2:2", steps=6, every=6)
    (profile,) = events["profile"]
    assert (profile["first_step"], profile["steps"]) == (2, 2)
    assert (tmp_path / "run" / "profile").exists()
    with open(profile["path"], "rb") as trace:  # noqa: PTH123 - the path as it was told
        assert len(trace.read()) > 1000
    _, late = run_job(tmp_path / "run", "--profile", "2:2", steps=8, every=6)
    assert any("not traced" in each["message"] for each in late["warning"])


@pytest.mark.slow
def test_summaries_need_no_tensorboard(tmp_path: Path) -> None:
    import tensorflow as tf

    _, events = run_job(tmp_path / "run", "--summaries", steps=4, every=4)
    assert "tensorboard --logdir" in events["summaries"][0]["message"]
    (path,) = (tmp_path / "run" / "summaries").iterdir()
    tags = {
        value.tag
        for raw in tf.data.TFRecordDataset(str(path))
        for value in tf.compat.v1.Event.FromString(raw.numpy()).summary.value
    }
    assert {"loss", "accuracy", "eval_loss", "learning_rate"} <= tags


def test_other_data_and_fewer_steps_than_done_are_told(tmp_path: Path) -> None:
    """Other images in files of the same names, sizes and numbers of records."""
    flags = write_digits(tmp_path / "data").split()
    run_job(tmp_path / "run", *flags, steps=3, every=3)
    path = next((tmp_path / "data").glob("train*"))
    write_examples(path, [b"x" * 784] * 40, [1] * 40)
    _, events = run_job(tmp_path / "run", *flags, steps=2, every=3)
    told = " ".join(each["message"] for each in events["warning"])
    assert "data_digest was" in told
    assert "step 3 is done, which is more than the 2 steps asked for" in told
    assert events["finish"][0]["step"] == 3


@pytest.mark.slow
def test_folder_of_another_model_is_refused_and_left_alone(tmp_path: Path) -> None:
    run_job(tmp_path / "run", steps=2)
    before = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    flags = ["--model", "resnet50", "--image_size", "32", "--classes", "10", "--synthetic", "32"]
    with pytest.raises(TrainerError) as caught:
        run_job(tmp_path / "run", *flags, steps=2)
    assert "belongs to another model" in caught.value.detail
    assert "other shapes (cnn, this is resnet50)" in caught.value.detail
    with pytest.raises(TrainerError, match="cnn of another --image_size or --classes"):
        run_job(tmp_path / "run", "--synthetic", "32", "--classes", "7", steps=2)
    assert sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir()) == before


@pytest.mark.slow
def test_resnet50_is_the_usual_one() -> None:
    from trainer.model import build_model, flops_per_example
    from trainer.model_specs import model_spec

    model = build_model(model_spec("resnet50"))
    trained = sum(int(np.prod(weight.shape)) for weight in model.trainable_weights)
    assert trained == 25_557_032
    assert flops_per_example(model) / 6 == pytest.approx(4.09e9, rel=0.01)
    assert model.output_shape == (None, 1000)


@pytest.mark.slow
def test_performance_is_told_at_the_end(tmp_path: Path) -> None:
    _, events = run_job(tmp_path / "run", steps=6)
    performance = events["finish"][0]["performance"]
    assert performance["steps"] == 5
    assert performance["peak_memory_bytes"] > 10**8
    assert performance["step_time_p50_s"] <= performance["step_time_p99_s"]
    assert json.dumps(performance, allow_nan=False)
