"""Runs the real training job in this process."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from trainer.config import parse
from trainer.events import EventWriter
from trainer.stopping import StopRequest

if TYPE_CHECKING:
    from pathlib import Path

    from trainer.faults import ExitCode

Events = dict[str, list[dict[str, Any]]]


def stop_after_save(engine: Any, step: int, stop: StopRequest) -> Any:
    """Have an engine ask to stop when it saves a step, as a notice in the middle would."""
    save = engine.save

    def save_and_stop(at: int, extra: dict[str, Any], *, wait: bool) -> Any:
        done = save(at, extra, wait=wait)
        if at >= step:
            stop.ask("test")
        return done

    engine.save = save_and_stop
    return engine


def run_job(
    model_dir: Path, *arguments: str, steps: int = 6, every: int = 2, stop_at: int = 10**9
) -> tuple[ExitCode, Events]:
    """Run the job and return its exit code and its events by kind.

    Args:
        model_dir: folder of the run.
        *arguments: further flags.
        steps: target.
        every: steps between checkpoints.
        stop_at: ask to stop when a checkpoint of this step or later is being saved.
    """
    from trainer.job import Job
    from trainer.tensorflow_engine import make_engine

    config = parse(
        f"--model_dir {model_dir} --batch_size 16 --precision float32 --tpu none "
        f"--checkpoint_every {every} --steps {steps}".split()
        + list(arguments)
    )
    model_dir.mkdir(exist_ok=True, parents=True)
    path = model_dir.parent / f"{model_dir.name}.events"
    path.unlink(missing_ok=True)
    null = os.open(os.devnull, os.O_WRONLY)
    stop = StopRequest()
    events = EventWriter(run="r", attempt=1, stdout=null, file=path)

    def make() -> Any:
        return stop_after_save(make_engine(config, events, None), stop_at, stop)

    try:
        code = Job(config, events, stop, make).execute()
    finally:
        os.close(null)
        found = events_in(path)
    return code, found


def events_in(path: Path) -> Events:
    """Return the events of a file by kind."""
    found: Events = {}
    for line in path.read_text().splitlines():
        event = json.loads(line)
        found.setdefault(event["event"], []).append(event)
    return found


def write_examples(
    path: Path, images: list[bytes] | np.ndarray[Any, Any], labels: list[int]
) -> None:
    """Write a TFRecord file of raw images, or of whatever bytes are given as images."""
    import tensorflow as tf

    options = tf.io.TFRecordOptions(compression_type="GZIP" if path.suffix == ".gz" else "")
    with tf.io.TFRecordWriter(str(path), options) as writer:
        for image, label in zip(images, labels, strict=True):
            content = image if isinstance(image, bytes) else image.tobytes()
            features = {
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[content])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(label)])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())


def write_digits(folder: Path, files: int = 3, each: int = 40) -> str:
    """Write real digits as training and evaluation files. Returns the flags that name them."""
    from trainer.data.embedded import read_embedded

    images, labels = read_embedded()
    order = np.random.default_rng(1).permutation(len(labels))
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        chosen = order[number * each : (number + 1) * each]
        write_examples(folder / f"train-{number}", images[chosen], labels[chosen].tolist())
    write_examples(folder / "eval", images[order[-32:]], labels[order[-32:]].tolist())
    return f"--train_files {folder}/train-* --eval_files {folder}/eval"
