"""Parts of the JAX recipe that need no training: settings, workers, records, orders, versions."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.trainer.jobs import write_digits, write_examples
from tests.unit.trainer.node import REPOSITORY
from trainer.data.embedded import read_embedded
from trainer.data.example import decode
from trainer.faults import ExitCode, TrainerError
from trainer.jax_recipe.examples import RecordExamples
from trainer.jax_recipe.main import WorkerEvents, parse_for_jax
from trainer.jax_recipe.order import epoch_order
from trainer.jax_recipe.versions import preflight
from trainer.jax_recipe.workers import Workers
from trainer.model_specs import CNN

if TYPE_CHECKING:
    from pathlib import Path


def test_nothing_of_the_recipe_needs_tensorflow() -> None:
    modules = ["engine", "main", "export", "tracing"]
    imports = ", ".join(f"trainer.jax_recipe.{name}" for name in modules)
    code = f"import sys; sys.modules['tensorflow'] = sys.modules['keras'] = None; import {imports}"
    subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=True, timeout=60)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--model resnet50 --synthetic 64 --batch_size 64", "only in the TensorFlow recipe"),
        ("--summaries", "only by the TensorFlow recipe"),
        ("--tpu my-node", "uses the chips there"),
        ("--batch_size 0", "is out of range"),
        ("--bogus", "unrecognized"),
    ],
)
def test_what_the_recipe_lacks_is_refused_in_one_line(flags: str, words: str) -> None:
    with pytest.raises(TrainerError, match=words) as caught:
        parse_for_jax(["--model_dir", "/x", *flags.split()])
    assert caught.value.exit_code == ExitCode.BAD_ARGUMENTS


GOOD = {"jax": "0.10.2", "jaxlib": "0.10.2", "optax": "0.2.8", "orbax-checkpoint": "0.12.8"}


@pytest.mark.parametrize(
    ("changes", "tpu", "words"),
    [
        ({"jax": None}, False, "jax not installed"),
        ({"orbax-checkpoint": None, "optax": None}, False, "optax, orbax-checkpoint not"),
        ({"jaxlib": "0.9.0"}, False, "do not belong together"),
        ({}, True, "libtpu is not installed"),
        ({"libtpu": "0.0.52"}, True, "libtpu 0.0.52 is not the 0.0.40 that jax 0.10.2 needs"),
    ],
)
def test_versions_are_judged_before_anything_is_imported(
    changes: dict[str, str | None], tpu: bool, words: str
) -> None:
    versions = {**GOOD, **changes}
    with pytest.raises(TrainerError, match=words) as caught:
        preflight(needs_tpu=tpu, remote=False, version=versions.get, libtpu_of_jax=lambda: "0.0.40")
    assert (caught.value.exit_code, caught.value.error_class) == (ExitCode.NO_DEVICE, "VERSION")


def test_fitting_and_untested_versions() -> None:
    assert preflight(needs_tpu=False, remote=False, version=GOOD.get)[1] == []
    newer = {**GOOD, "jax": "0.12.0", "jaxlib": "0.12.0", "libtpu": "0.0.40.1"}
    (warning,) = preflight(
        needs_tpu=True, remote=False, version=newer.get, libtpu_of_jax=lambda: "0.0.40"
    )[1]
    assert "untested" in warning
    with pytest.raises(TrainerError, match="gcsfs"):
        preflight(needs_tpu=False, remote=True, version=GOOD.get)


def workers(index: int, count: int, key: str, patience_s: float = 20.0) -> Workers:
    return Workers(index, count, "127.0.0.1", key, patience_s)


def test_workers_meet_whoever_comes_first(tmp_path: Path) -> None:
    key = str(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        others = [pool.submit(workers(index, 4, key).meet) for index in (3, 1, 2)]
        first = pool.submit(workers(0, 4, key).meet)
        places = {future.result(30) for future in (first, *others)}
    (place,) = places
    assert place.startswith("127.0.0.1:")
    assert place != f"127.0.0.1:{workers(0, 4, key).port}"


def test_missing_workers_are_named_to_all(tmp_path: Path) -> None:
    key = str(tmp_path)
    with ThreadPoolExecutor(2) as pool:
        there = [pool.submit(workers(index, 4, key, 1.0).meet) for index in (0, 2)]
        for future in there:
            with pytest.raises(TrainerError, match="of 4 workers, 1, 3 did not come") as caught:
                future.result(30)
            assert caught.value.error_class == "PARTIAL_SLICE"


def test_stranger_is_no_worker(tmp_path: Path) -> None:
    class Stranger(Workers):
        port = workers(0, 2, str(tmp_path)).port

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(workers(0, 2, str(tmp_path), 1.5).meet)
        other = pool.submit(Stranger(1, 2, "127.0.0.1", "another run", 1.0).meet)
        with pytest.raises(TrainerError, match="of 2 workers, 1 did not come"):
            first.result(30)
        with pytest.raises(TrainerError, match="did not answer"):
            other.result(30)


@pytest.mark.parametrize(
    "environment",
    [
        {"TPUDASH_WORKER": "2", "TPUDASH_WORKERS": "2", "TPUDASH_COORDINATOR": "10.0.0.1"},
        {"TPUDASH_WORKER": "x"},
        {"TPUDASH_WORKERS": "2"},
    ],
)
def test_contradicting_environment_is_refused(environment: dict[str, str]) -> None:
    with pytest.raises(TrainerError) as caught:
        Workers.from_environment(environment, "k")
    assert caught.value.exit_code == ExitCode.BAD_ARGUMENTS


def test_workers_of_real_hosts_meet_at_one_port() -> None:
    told = {"TPUDASH_WORKER": "1", "TPUDASH_WORKERS": "2", "TPUDASH_COORDINATOR": "10.0.0.1"}
    assert Workers.from_environment(told, "k").port == 8476
    assert Workers.from_environment({}, "k").count == 1


def test_other_workers_leave_it_to_the_first_to_tell_of_steps(tmp_path: Path) -> None:
    path = tmp_path / "events"
    null = (tmp_path / "null").open("wb")
    events = WorkerEvents(2, run="r", attempt=1, stdout=null.fileno(), file=path)
    for step in range(5):
        events.emit("step", f"step {step}", step=step, loss=1.0)
        events.emit("checkpoint", "saved", step=step)
    events.emit("warning", "something", severity="WARNING")
    events.emit("finish", "finished", step=5, metrics={})
    told = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(each["event"], each.get("step")) for each in told] == [
        ("worker", 0), ("warning", None), ("worker", 5),
    ]  # fmt: skip
    assert {each["worker"] for each in told} == {2}
    null.close()


def test_order_is_a_permutation_that_no_version_changes() -> None:
    assert epoch_order(1, 0, 8).tolist() == PINNED
    for epoch in range(3):
        assert sorted(epoch_order(5, epoch, 101)) == list(range(101))
    assert epoch_order(1, 0, 8).tolist() != epoch_order(1, 1, 8).tolist()
    assert epoch_order(1, 0, 8).tolist() != epoch_order(2, 0, 8).tolist()


PINNED = [3, 5, 2, 7, 0, 6, 1, 4]


def test_records_are_read_as_tensorflow_wrote_them(tmp_path: Path) -> None:
    write_digits(tmp_path, files=2, each=20)
    examples = RecordExamples([str(tmp_path / "train-0"), str(tmp_path / "train-1")], CNN)
    assert examples.count == 40
    images, labels = read_embedded()
    order = np.random.default_rng(1).permutation(len(labels))[:40]
    numbers = [25, 3, 39]
    found_images, found_labels = examples.take(np.array(numbers))
    assert np.array_equal(found_images, images[order[numbers]])
    assert np.array_equal(found_labels, labels[order[numbers]])


def test_compressed_records_are_read_like_others(tmp_path: Path) -> None:
    write_digits(tmp_path, files=1, each=20)
    path, packed = tmp_path / "train-0", tmp_path / "train-0.tfrecord.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for mine, theirs in zip(
        RecordExamples([str(packed)], CNN).all(),
        RecordExamples([str(path)], CNN).all(),
        strict=True,
    ):
        assert np.array_equal(mine, theirs)
    whole = packed.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0xFF
    for damaged in (whole[:-20], b"no gzip", bytes(flipped)):
        packed.write_bytes(damaged)
        with pytest.raises(TrainerError, match="no readable GZIP file") as caught:
            RecordExamples([str(packed)], CNN)
        assert str(packed) in caught.value.detail


def flip_a_pixel(content: bytearray) -> bytearray:
    content[200] ^= 1
    return content


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda content: content[:-9], "cut short"),
        (flip_a_pixel, "corrupted record"),
        (lambda content: bytearray(b"\xff" * 40), "corrupted record: its length"),
        (lambda content: bytearray(b"abc"), "cut short"),
    ],
)
def test_damaged_file_is_named(tmp_path: Path, damage: Any, words: str) -> None:
    write_digits(tmp_path, files=1, each=3)
    path = tmp_path / "train-0"
    path.write_bytes(damage(bytearray(path.read_bytes())))
    with pytest.raises(TrainerError, match=words) as caught:
        RecordExamples([str(path)], CNN).all()
    assert str(path) in caught.value.detail
    assert caught.value.exit_code == ExitCode.NO_INPUT


@pytest.mark.parametrize(
    ("image", "label", "words"),
    [
        (b"\x89PNG....", 1, "encoded picture"),
        (b"x" * 10, 1, "the image has 10 values"),
        (b"x" * 784, 10, "label is not in 0 to 9 but 10"),
    ],
)
def test_record_that_does_not_fit_is_told(
    tmp_path: Path, image: bytes, label: int, words: str
) -> None:
    write_examples(tmp_path / "f", [image], [label])
    with pytest.raises(TrainerError, match=words):
        RecordExamples([str(tmp_path / "f")], CNN).all()


@given(st.binary(max_size=300))
def test_any_bytes_are_an_example_or_no_input(content: bytes) -> None:
    try:
        image, label = decode("f", content, CNN)
    except TrainerError as fault:
        told = fault
    else:
        assert image.shape == CNN.image_shape
        assert 0 <= label < 10
        return
    assert told.exit_code == ExitCode.NO_INPUT
    assert told.detail.startswith("f: ")
