"""The trainer's settings: one frozen dataclass, its flags, and their checks."""

from __future__ import annotations

import argparse
import dataclasses
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from trainer.faults import ExitCode, TrainerError
from trainer.joblock import is_remote
from trainer.model_specs import MODELS

if TYPE_CHECKING:
    from collections.abc import Sequence

PRECISIONS = ("auto", "float32", "bfloat16")
PROGRAM = "python -m trainer"
SCHEDULES = ("constant", "linear", "cosine")
MATRIX_ROWS = 128
"""Rows that a TPU's matrix unit works on at once."""


def _flag(help_text: str, default: Any, **extra: Any) -> Any:
    return field(default=default, metadata={"help": help_text, **extra})


@dataclass(frozen=True)
class Config:
    """Everything a training job is told. Each field is a flag of the same name."""

    tpu: str = _flag(
        "which TPU: auto (use local chips if there are any, else the CPU), none, local, "
        "or a node's name",
        "auto",
    )
    model_dir: str = _flag(
        "folder or gs:// URL of the run: checkpoints/, quarantine/ and export/ go here", ""
    )
    model: str = _flag(
        "what to train: the small CNN of the digits, or ResNet-50 for benchmarks and photographs",
        "cnn",
        choices=MODELS,
    )
    image_size: int = _flag(
        "height and width of the model's images in pixels; 0 means 28 for cnn, 224 for resnet50", 0
    )
    classes: int = _flag("number of classes; 0 means 10 for cnn, 1000 for resnet50", 0)
    train_files: tuple[str, ...] = _flag(
        "TFRecord files or patterns to train on, also gs:// (default: the embedded 5,000 digits)",
        (),
    )
    eval_files: tuple[str, ...] = _flag(
        "TFRecord files or patterns to evaluate on; required with --train_files", ()
    )
    synthetic: int = _flag("train on so many synthetic images instead of files", 0)
    memory_mb: int = _flag(
        "training files that decode to more megabytes than this are streamed instead of kept", 512
    )
    batch_size: int = _flag("global batch size, split over all replicas", 256)
    num_epochs: int = _flag("passes over the training data; --steps overrides it", 30)
    steps: int = _flag("train up to this step in all; 0 means --num_epochs passes", 0)
    seed: int = _flag("seed of the weights and of the data order", 1)
    precision: str = _flag(
        "compute type: float32, bfloat16, or auto (bfloat16 on TPU and on CPUs where it is faster)",
        "auto",
        choices=PRECISIONS,
    )
    accumulate: int = _flag(
        "compute each step's gradient in so many parts of the batch, to need less memory", 1
    )
    learning_rate: float = _flag("highest learning rate of Adam", 0.001)
    schedule: str = _flag(
        "how the learning rate goes on after the warm-up: constant, or down to --final_rate of it "
        "at the last step along a line or a cosine",
        "constant",
        choices=SCHEDULES,
    )
    warmup_steps: int = _flag("raise the learning rate from near 0 over so many steps", 0)
    final_rate: float = _flag("share of the learning rate that is left at the last step", 0.0)
    clip_norm: float = _flag("scale gradients down to this global norm; 0 means never", 0.0)
    eval_every: int = _flag("also evaluate each so many steps; 0 means at the end only", 0)
    early_stop: int = _flag(
        "stop after so many evaluations without a lower held-out loss, and keep the best weights; "
        "0 means never",
        0,
    )
    checkpoint_every: int = _flag("save a checkpoint each so many steps; 0 means by time only", 0)
    checkpoint_seconds: float = _flag(
        "also save when so many seconds passed since the last one; 0 means by steps only", 30.0
    )
    call_seconds: float = _flag(
        "aim for device calls this long; several steps run in one call, at most 2 s", 0.5
    )
    cpu_replicas: int = _flag(
        "split the CPU into so many replicas, to try the code path of several cores", 1
    )
    accelerator_type: str = _flag(
        "type of the node, such as v2-8; used to judge the batch size against its cores", ""
    )
    profile: str = _flag(
        "trace steps START to START+STEPS, given as START:STEPS, into profile/ of the model_dir", ""
    )
    summaries: bool = _flag("also write TensorBoard summaries into summaries/", False)
    events: str = _flag(
        "also append the events to this local file (default: events.jsonl in a local model_dir; "
        "'none' turns it off)",
        "",
    )
    run: str = _flag("name of the run, copied into each event", "local")
    attempt: int = _flag("number of this life of the run, copied into each event", 1)
    last_step: int = _flag(
        "last step that an earlier life reported, to tell how many steps were lost; -1 unknown", -1
    )
    lock_wait_seconds: float = _flag(
        "how long to wait for another trainer of the same run to end", 60.0
    )
    stop_on_stdin_eof: bool = _flag(
        "save a checkpoint and stop when stdin ends, that is when the supervising process dies",
        False,
    )

    @property
    def embedded(self) -> bool:
        """Whether the digits that ship with the trainer are the data."""
        return not self.train_files and not self.synthetic

    def arguments(self) -> dict[str, Any]:
        """Return the settings as JSON values, for the `start` event."""
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in dataclasses.asdict(self).items()
        }


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise bad_argument(message, f"see {self.prog} --help")


def bad_argument(detail: str, hint: str) -> TrainerError:
    """Return the error of a wrong setting."""
    return TrainerError(ExitCode.BAD_ARGUMENTS, "BAD_REQUEST", detail, hint)


def _further_commands(program: str) -> str:
    if program != PROGRAM:
        return "python -m trainer.data converts and checks data."
    return (
        "Further commands: validate (check devices, data and storage before a run), benchmark "
        "(measure speed and memory), python -m trainer.data (convert and check data), and "
        "python -m trainer.serve (serve an exported model)."
    )


def make_parser(program: str = PROGRAM) -> argparse.ArgumentParser:
    """Return the parser made from the fields of `Config`."""
    parser = _Parser(
        prog=program,
        description="Train an image classifier on TPU or CPU, and survive being interrupted: the "
        f"same command continues from the newest good checkpoint. {_further_commands(program)}",
        epilog="Exit codes: 0 finished, 75 interrupted and saved, 64 bad arguments, 66 no input, "
        "69 no device or no TensorFlow, 70 defect.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    for each in dataclasses.fields(Config):
        name = f"--{each.name}"
        text = each.metadata["help"].replace("%", "%%")
        if isinstance(each.default, bool):
            parser.add_argument(name, action="store_true", help=text)
        elif isinstance(each.default, tuple):
            parser.add_argument(name, nargs="+", action="extend", default=[], help=text)
        else:
            kind = type(each.default)
            metavar = {int: "N", float: "X"}.get(kind, "TEXT")
            choices = each.metadata.get("choices")
            parser.add_argument(
                name,
                type=kind,
                default=each.default,
                choices=choices,
                metavar=None if choices else metavar,
                help=text,
            )
    return parser


def parse(arguments: Sequence[str], program: str = PROGRAM) -> Config:
    """Return the validated settings.

    Args:
        arguments: the command line without the program.
        program: how the command begins, for its help.

    Raises:
        TrainerError: a flag is unknown, malformed or out of range.
        SystemExit: --help was asked for.
    """
    from trainer.config_checks import check

    values = vars(make_parser(program).parse_args(list(arguments)))
    for name in ("train_files", "eval_files"):
        split = [
            part
            for item in values[name]
            for part in ([item] if Path(item).exists() else item.split(","))
            if part
        ]
        values[name] = tuple(split)
    config = Config(**values)
    check(config)
    return config


def cores(accelerator_type: str) -> int | None:
    """Return the number of replicas of a TPU type, or None if the type is not understood.

    The number in the name counts TensorCores up to v5p, chips of one core for v5e and v6e. The two
    cores of a v4 or v5p chip act as one device ("megacore").
    """
    match = re.fullmatch(r"(v\d+[a-z]*)-(\d+)", accelerator_type)
    if match is None:
        return None
    number = int(match.group(2))
    return max(1, number // 2) if match.group(1) in ("v4", "v5p") else number


def batch_advice(batch_size: int, accelerator_type: str) -> list[str]:
    """Return advice about a batch size that suits the matrix unit badly; empty if it is fine."""
    count = cores(accelerator_type) or 1
    best = MATRIX_ROWS * count
    where = f" of a {accelerator_type} ({count} cores)" if count > 1 else ""
    if count > 1 and batch_size % count:
        return [f"batch {batch_size} cannot be split evenly over the cores{where}: use {best}"]
    if batch_size % best:
        each = batch_size // count
        advice = (
            f"batch {batch_size} is {each} a core{where}; the matrix unit works on "
            f"{MATRIX_ROWS} rows, so a multiple of {best} wastes nothing"
        )
        return [advice]
    return []


def events_path(config: Config) -> Path | None:
    """Return the local file that events are appended to, or None."""
    if config.events == "none":
        return None
    if config.events:
        return Path(config.events)
    return None if is_remote(config.model_dir) else Path(config.model_dir) / "events.jsonl"
