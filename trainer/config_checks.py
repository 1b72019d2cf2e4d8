"""Checks of the settings against each other, before anything heavy is imported."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trainer.config import MATRIX_ROWS, bad_argument, cores
from trainer.data.places import local_files
from trainer.joblock import is_remote
from trainer.model_specs import CNN, SMALLEST_IMAGE

if TYPE_CHECKING:
    from trainer.config import Config

EMBEDDED_TRAIN_EXAMPLES = 4000
_POSITIVE = (
    "batch_size",
    "num_epochs",
    "cpu_replicas",
    "attempt",
    "learning_rate",
    "accumulate",
)
_NOT_NEGATIVE = (
    "steps",
    "checkpoint_every",
    "checkpoint_seconds",
    "lock_wait_seconds",
    "synthetic",
    "memory_mb",
    "image_size",
    "classes",
    "warmup_steps",
    "clip_norm",
    "eval_every",
    "early_stop",
)
_PROFILE = re.compile(r"(\d{1,9}):([1-9]\d{0,5})")


def check(config: Config) -> None:
    """Check settings that parsed.

    Raises:
        TrainerError: one is out of range, or contradicts another.
    """
    if not config.model_dir:
        raise bad_argument("--model_dir is missing", "give a folder or a gs:// URL for the run")
    if is_remote(config.model_dir) and not config.model_dir.startswith("gs://"):
        raise bad_argument(
            f"--model_dir {config.model_dir} is neither a folder nor a gs:// URL",
            "use an absolute path or gs://bucket/path",
        )
    if config.model_dir.startswith("gs://") and not config.model_dir[5:].partition("/")[0].strip():
        raise bad_argument(
            f"--model_dir {config.model_dir} names no bucket", "give gs://BUCKET/FOLDER"
        )
    _check_numbers(config)
    _check_training(config)
    _check_model(config)
    _check_files(config)
    _check_batch(config)
    profiled_steps(config.profile)


def _check_numbers(config: Config) -> None:
    for name in _POSITIVE:
        if not 0 < getattr(config, name) < 2**31:
            raise bad_argument(
                f"--{name} {getattr(config, name)} is out of range",
                f"use a number above 0 and below {2**31}",
            )
    for name in _NOT_NEGATIVE:
        if not 0 <= getattr(config, name) < 2**31:
            raise bad_argument(
                f"--{name} {getattr(config, name)} is out of range",
                f"use 0 or a number below {2**31}",
            )
    if not 0 <= config.seed < 2**31:
        raise bad_argument(f"--seed {config.seed} is out of range", "use 0 to 2147483647")
    if not 0.01 <= config.call_seconds <= 2:
        raise bad_argument(
            f"--call_seconds {config.call_seconds} is out of range",
            "use 0.01 to 2; a longer call would delay the reaction to a preemption notice",
        )
    if config.checkpoint_every == 0 and config.checkpoint_seconds == 0:
        raise bad_argument(
            "--checkpoint_every 0 and --checkpoint_seconds 0 leave no checkpoint",
            "set one of them; a preempted run without checkpoints starts again from step 0",
        )


def _check_training(config: Config) -> None:
    if not 0 <= config.final_rate <= 1:
        raise bad_argument(
            f"--final_rate {config.final_rate} is no share of the learning rate", "use 0 to 1"
        )
    if config.steps and config.warmup_steps >= config.steps:
        raise bad_argument(
            f"--warmup_steps {config.warmup_steps} leaves nothing of --steps {config.steps}",
            "warm up over a tenth of the steps or less",
        )
    if config.early_stop and not config.eval_every:
        raise bad_argument(
            "--early_stop needs --eval_every",
            "say how often to evaluate, such as once an epoch",
        )


def _check_model(config: Config) -> None:
    smallest = SMALLEST_IMAGE[config.model]
    if config.image_size and not smallest <= config.image_size <= 4096:
        raise bad_argument(
            f"--image_size {config.image_size} does not suit {config.model}",
            f"use {smallest} to 4096",
        )
    if config.classes == 1:
        raise bad_argument("--classes 1 leaves nothing to learn", "use 2 or more")
    if not config.embedded:
        return
    if config.model != "cnn":
        raise bad_argument(
            f"--model {config.model} cannot learn the embedded digits of 28 x 28 grey pixels",
            "give --train_files and --eval_files, or --synthetic 10000",
        )
    height, _, _ = CNN.image_shape
    if config.image_size not in (0, height) or config.classes not in (0, CNN.classes):
        raise bad_argument(
            "the embedded digits are 28 x 28 pixels of 10 classes",
            "leave --image_size and --classes away, or give --train_files or --synthetic",
        )


def _check_files(config: Config) -> None:
    if bool(config.train_files) != bool(config.eval_files):
        raise bad_argument(
            "--train_files and --eval_files belong together",
            "give both, or none for the embedded digits",
        )
    if config.synthetic and config.train_files:
        raise bad_argument("--synthetic and --train_files exclude each other", "give one of them")
    for name in ("train_files", "eval_files"):
        for pattern in getattr(config, name):
            if not is_remote(pattern):
                local_files(pattern, f"--{name}")


def _check_batch(config: Config) -> None:
    available = EMBEDDED_TRAIN_EXAMPLES if config.embedded else config.synthetic
    if available and config.batch_size > available:
        what = "embedded" if config.embedded else "synthetic"
        raise bad_argument(
            f"--batch_size {config.batch_size} is more than the {available} {what} examples",
            f"use at most {available}, or give --train_files",
        )
    replicas = cores(config.accelerator_type) if config.tpu not in ("none", "auto") else 0
    for count, what in ((config.cpu_replicas, "--cpu_replicas"), (replicas, "cores")):
        if count:
            check_division(config, count, what)


def check_division(config: Config, replicas: int, what: str = "replicas") -> None:
    """Check that each replica's part of the batch is whole, and whole in its accumulated parts.

    Raises:
        TrainerError: it is not.
    """
    if config.batch_size % replicas:
        raise bad_argument(
            f"--batch_size {config.batch_size} cannot be split over {replicas} {what}",
            f"use a multiple of {replicas}, best of {MATRIX_ROWS * replicas}",
        )
    each = config.batch_size // replicas
    if each % config.accumulate:
        raise bad_argument(
            f"--batch_size {config.batch_size} leaves {each} examples a replica, which cannot be "
            f"accumulated in {config.accumulate} parts",
            f"use a multiple of {replicas * config.accumulate}",
        )


def profiled_steps(text: str) -> tuple[int, int] | None:
    """Return the first step to trace and how many, or None.

    Raises:
        TrainerError: the text is not START:STEPS.
    """
    if not text:
        return None
    match = _PROFILE.fullmatch(text)
    if match is None:
        raise bad_argument(
            f"--profile {text} is not START:STEPS", "for example --profile 100:10; few steps do"
        )
    return int(match.group(1)), int(match.group(2))
