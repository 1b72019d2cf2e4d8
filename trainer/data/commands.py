"""The commands of `python -m trainer.data`. TensorFlow is imported only once they may run."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from trainer.config import bad_argument
from trainer.faults import ExitCode, TrainerError, classify, one_line
from trainer.lean_import import import_tensorflow
from trainer.model_specs import MODELS, model_spec
from trainer.versions import preflight

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMATS = ("auto", "raw", "png", "keep")
COMPRESSIONS = ("none", "gzip")
_LARGEST_IMAGE = 4096
"""Height and width in pixels up to which the trainer takes images."""


@dataclass(frozen=True)
class ConvertOptions:
    """What `convert` is told.

    Attributes:
        source: an .npz file, a CSV file, or a folder with one folder of images a class.
        out: folder or gs:// URL for the files.
        shards: training files to write; 0 chooses by size.
        compression: none or gzip.
        held_out: share of the examples to hold out, if the source has no split of its own.
        seed: names the order of the examples, and which are held out.
        image_format: raw pixels, PNG, as they are, or what suits their size.
        image_size: resize images to this height and width in pixels; 0 leaves them.
        channels: 1 for grey, 3 for colour; 0 leaves them.
        overwrite: whether files of an earlier conversion are replaced.
    """

    source: str
    out: str
    shards: int
    compression: str
    held_out: float
    seed: int
    image_format: str
    image_size: int
    channels: int
    overwrite: bool


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise bad_argument(message, f"see {self.prog} --help")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of both commands."""
    parser = _Parser(prog="python -m trainer.data", description=__doc__, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    defaults = argparse.ArgumentDefaultsHelpFormatter
    convert = commands.add_parser(
        "convert",
        help="turn .npz, image folders or CSV into TFRecord files",
        description="Write train-*.tfrecord, eval-*.tfrecord and dataset.json, which holds the "
        "number of records of each file. Nothing appears in --out until all of it is written.",
        formatter_class=defaults,
        allow_abbrev=False,
    )
    convert.add_argument("source", help=".npz file, CSV file, or folder of class folders")
    convert.add_argument("--out", required=True, help="folder or gs:// URL to write to")
    convert.add_argument("--shards", type=int, default=0, help="training files; 0 means by size")
    convert.add_argument("--compression", choices=COMPRESSIONS, default="none", help="of each file")
    convert.add_argument(
        "--held_out",
        type=float,
        default=0.1,
        help="share to hold out for evaluation, unless the source has a split of its own",
    )
    convert.add_argument("--seed", type=int, default=1, help="names the order of the examples")
    convert.add_argument(
        "--image_format",
        choices=FORMATS,
        default="auto",
        help="raw pixels (fast to read), png, keep (files as they are), or raw if small else keep; "
        "but for keep, an alpha channel is replaced by white paper",
    )
    convert.add_argument("--image_size", type=int, default=0, help="resize to this; 0 means not")
    convert.add_argument("--channels", type=int, choices=(0, 1, 3), default=0, help="0 means as is")
    convert.add_argument("--overwrite", action="store_true", help="replace an earlier conversion")
    check = commands.add_parser(
        "check",
        help="read TFRecord files to their end and name what is wrong",
        formatter_class=defaults,
        allow_abbrev=False,
    )
    check.add_argument("files", nargs="+", help="files or patterns")
    check.add_argument("--model", choices=MODELS, default="cnn", help="the model they are for")
    check.add_argument("--image_size", type=int, default=0, help="0 means the model's own")
    check.add_argument("--classes", type=int, default=0, help="0 means the model's own")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; results go to stdout as JSON."""
    try:
        values = vars(make_parser().parse_args(list(arguments)))
        return _run(values.pop("command"), values)
    except TrainerError as fault:
        return _fail(fault)
    except OSError as error:
        known = classify(str(error))
        error_class = known.error_class if known else "BUCKET_ACCESS"
        hint = known.hint if known else "check the path and its permissions"
        return _fail(TrainerError(ExitCode.DEFECT, error_class, str(error), hint))


def _run(command: str, values: dict[str, Any]) -> int:
    if command == "check":
        spec = model_spec(values["model"], values["image_size"], values["classes"])
        preflight(needs_tpu=False)
        import_tensorflow()
        from trainer.data.checking import check_files

        reports = check_files(values["files"], spec)
        for report in reports:
            sys.stdout.write(json.dumps(report) + "\n")
        return ExitCode.FINISHED if all(each["ok"] for each in reports) else ExitCode.NO_INPUT
    options = ConvertOptions(**values)
    _validate(options)
    preflight(needs_tpu=False)
    import_tensorflow()
    from trainer.data.convert import convert

    content = convert(options)
    for note in content["notes"]:
        sys.stderr.write(f"trainer.data: {one_line(note)}\n")
    sys.stdout.write(json.dumps(content, indent=1) + "\n")
    return ExitCode.FINISHED


def _validate(options: ConvertOptions) -> None:
    if not 0 <= options.held_out < 1:
        raise bad_argument(f"--held_out {options.held_out} is no share", "use 0 to 0.9")
    if not 0 <= options.shards <= 100_000:
        raise bad_argument(f"--shards {options.shards} is out of range", "use 0 to 100000")
    if not 0 <= options.image_size <= _LARGEST_IMAGE:
        raise bad_argument(
            f"--image_size {options.image_size} is out of range", f"use 0 to {_LARGEST_IMAGE}"
        )
    if not 0 <= options.seed < 2**31:
        raise bad_argument(f"--seed {options.seed} is out of range", "use 0 to 2147483647")
    changes = options.image_size or options.channels
    if options.image_format == "keep" and changes:
        raise bad_argument(
            "--image_format keep cannot change --image_size or --channels",
            "use --image_format png or raw",
        )


def _fail(fault: TrainerError) -> int:
    sys.stderr.write(
        f"trainer.data: {fault.error_class}: {one_line(fault.detail)} ({fault.hint})\n"
    )
    return int(fault.exit_code)
