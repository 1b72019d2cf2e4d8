"""The command `python -m trainer benchmark`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from trainer.benchmark.digits import write_digits
from trainer.benchmark.processes import TimedTrainer, plain_loop, preemption_cycle
from trainer.config import PRECISIONS, bad_argument
from trainer.faults import ExitCode, TrainerError, one_line
from trainer.model_specs import MODELS
from trainer.peaks import peak_flops
from trainer.versions import cpu_has_bfloat16, preflight

if TYPE_CHECKING:
    from collections.abc import Sequence

_RUN_SECONDS_GOALS = {"first_step_s": 5.0, "preempted_to_stepping_s": 8.0}
_CHECKPOINT_GOAL_S = 0.03
"""How long the training may wait for a checkpoint, which is written beside it."""
_SPEED_GOALS = {True: 1.7, False: 1.1}
"""How much faster than the plain loop, where bfloat16 is fast and where it is not."""
_MEMORY_GOAL = 0.65
_ACCURACY_GOAL = 0.01


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise bad_argument(message, f"see {self.prog} --help")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser."""
    parser = _Parser(
        prog="python -m trainer benchmark",
        description="Train for a while in real processes and print one JSON object: examples/s, "
        "step times, waiting for input, memory, MFU where the chip's peak is known, time to the "
        "first step, cost of a checkpoint, and of a preemption. The small CNN is compared with "
        "the plain loop that guides show, one after the other on the same data.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--model", choices=MODELS, default="cnn", help="what to train")
    parser.add_argument("--image_size", type=int, default=0, help="0 means the model's own")
    parser.add_argument("--batch_size", type=int, default=256, help="global batch")
    parser.add_argument("--epochs", type=int, default=3, help="passes over the examples")
    parser.add_argument("--examples", type=int, default=60_000, help="examples in a pass")
    parser.add_argument("--rounds", type=int, default=1, help="repeat and take the median of each")
    parser.add_argument("--precision", choices=PRECISIONS, default="auto", help="compute type")
    parser.add_argument("--tpu", default="auto", help="which TPU; none for the CPU")
    parser.add_argument("--accelerator_type", default="", help="such as v2-8, to tell MFU")
    parser.add_argument("--no_compare", action="store_true", help="leave the plain loop out")
    parser.add_argument("--folder", default="", help="for its runs; default: a temporary one")
    parser.add_argument("--out", default="", help="also write the JSON to this file")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark and return its exit code."""
    try:
        options = make_parser().parse_args(list(arguments))
        if min(options.batch_size, options.epochs, options.examples, options.rounds) < 1:
            raise bad_argument(
                "--batch_size, --epochs, --examples or --rounds is out of range", "use 1 or more"
            )
        if options.batch_size > options.examples:
            raise bad_argument("--batch_size is more than --examples", "use a smaller one")
        versions = preflight(needs_tpu=False)[0]
        with tempfile.TemporaryDirectory(dir=options.folder or None) as folder:
            report = _run(options, Path(folder))
        report["machine"]["tensorflow"] = f"{versions.wheel} {versions.tensorflow}"
        text = json.dumps(report, indent=1)
        if options.out:
            Path(options.out).write_text(text + "\n", "utf-8")
        sys.stdout.write(text + "\n")
    except TrainerError as fault:
        sys.stderr.write(
            f"trainer benchmark: {fault.error_class}: {one_line(fault.detail)} ({fault.hint})\n"
        )
        return int(fault.exit_code)
    except OSError as error:
        sys.stderr.write(f"trainer benchmark: BUCKET_ACCESS: {error} (choose another --folder)\n")
        return int(ExitCode.DEFECT)
    return int(ExitCode.FINISHED)


def _say(text: str) -> None:
    sys.stderr.write(f"trainer benchmark: {text}\n")


def _run(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    compares = options.model == "cnn" and not options.no_compare and not options.image_size
    data = folder / "digits.npz"
    if options.model == "cnn":
        _say(f"preparing {options.examples} examples")
        write_digits(data, options.examples, seed=1)
        _convert(data, folder / "records")
    load_before = round(os.getloadavg()[0], 2)
    ours, plain = [], []
    for number in range(options.rounds):
        _say(f"round {number + 1} of {options.rounds}: the trainer")
        result = _train(options, folder, number)
        ours.append(result)
        if compares:
            _say(f"round {number + 1} of {options.rounds}: the plain loop")
            plain.append(plain_loop(data, options.epochs, options.batch_size, folder))
    _say("preempting a run and starting it again")
    cycle = preemption_cycle(_flags_of_cycle(options, folder), after_step=20)
    middle = _middle(ours)
    saves = [
        *cycle.pop("checkpoints"),
        *(save for each in ours for save in each.pop("checkpoints")),
    ]
    cycle["checkpoint_held_s"] = _median([save["held_s"] for save in saves])
    cycle["checkpoint_written_s"] = _median([save["seconds"] for save in saves])
    report: dict[str, Any] = {
        "schema": 1,
        "machine": {**_machine(), "load_average_before": load_before},
        "settings": {
            name: getattr(options, name)
            for name in ("model", "batch_size", "epochs", "examples", "precision", "rounds")
        },
        "trainer": {**middle, "mfu": _mfu(middle, options.accelerator_type)},
        "reactions": cycle,
    }
    if plain:
        report["plain_loop"] = _middle(plain)
        report["comparison"] = _comparison(middle, report["plain_loop"])
    report["goals"] = _goals(report)
    return report


def _middle(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the result whose speed is the median, the slower one of two."""
    by_speed = sorted(results, key=lambda each: each["examples_per_second"] or 0.0)
    return by_speed[(len(by_speed) - 1) // 2]


def _convert(data: Path, out: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trainer.data", "convert", str(data), "--out", str(out)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise TrainerError(ExitCode.NO_INPUT, "BAD_REQUEST", last, "see the message above")


def _common_flags(options: argparse.Namespace) -> list[str]:
    flags = ["--model", options.model, "--image_size", str(options.image_size)]
    flags += ["--batch_size", str(options.batch_size), "--precision", options.precision]
    flags += ["--tpu", options.tpu]
    if options.accelerator_type:
        flags += ["--accelerator_type", options.accelerator_type]
    return flags


def _train(options: argparse.Namespace, folder: Path, number: int) -> dict[str, Any]:
    """Train in a process of its own and return its figures."""
    flags = [*_common_flags(options), "--model_dir", str(folder / f"run-{number}")]
    if options.model == "cnn":
        records = folder / "records"
        flags += ["--train_files", f"{records}/train-*", "--eval_files", f"{records}/eval-*"]
    else:
        flags += ["--synthetic", str(options.examples)]
    trainer = TimedTrainer([*flags, "--num_epochs", str(options.epochs)])
    try:
        finish = trainer.finish()
    finally:
        trainer.close()
    performance = finish.get("performance") or {}
    return {
        **performance,
        "steps_per_second": _ratio(performance.get("examples_per_second"), options.batch_size),
        "first_step_s": round(trainer.seconds_to_first_step or 0.0, 3),
        "compute_type": _compute_type(options),
        "eval_loss": finish["metrics"]["eval_loss"],
        "eval_accuracy": finish["metrics"]["eval_accuracy"],
        "checkpoints": trainer.of_kind("checkpoint"),
    }


def _flags_of_cycle(options: argparse.Namespace, folder: Path) -> list[str]:
    flags = [*_common_flags(options), "--model_dir", str(folder / "cycle"), "--steps", "1000000"]
    if options.model != "cnn" or options.image_size:
        flags += ["--synthetic", str(options.examples)]
    return [*flags, "--checkpoint_seconds", "1"]


def _compute_type(options: argparse.Namespace) -> str:
    if options.precision != "auto":
        return str(options.precision)
    on_tpu = options.accelerator_type or options.tpu not in ("none", "auto")
    return "bfloat16" if on_tpu or cpu_has_bfloat16() else "float32"


def _comparison(ours: dict[str, Any], plain: dict[str, Any]) -> dict[str, Any]:
    return {
        "speed_ratio": _ratio(ours["examples_per_second"], plain["examples_per_second"]),
        "cpu_time_ratio": _ratio(
            plain["cpu_seconds_per_1000_examples"], ours["cpu_seconds_per_1000_examples"]
        ),
        "memory_ratio": _ratio(ours["peak_memory_bytes"], plain["peak_memory_bytes"]),
        "accuracy_difference": round(ours["eval_accuracy"] - plain["eval_accuracy"], 4),
    }


def _goals(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return each goal with what was measured; they are set for the CNN on two CPU cores."""
    if report["settings"]["model"] != "cnn":
        return []
    reactions = report["reactions"]
    goals = [
        _goal(name, reactions[name], limit, at_most=True)
        for name, limit in _RUN_SECONDS_GOALS.items()
    ]
    held = reactions["checkpoint_held_s"]
    goals.append(_goal("checkpoint_held_s", held, _CHECKPOINT_GOAL_S, at_most=True))
    compared = report.get("comparison")
    if compared:
        fast = report["trainer"]["compute_type"] == "bfloat16"
        speed = _SPEED_GOALS[fast]
        goals.append(_goal("speed_ratio", compared["speed_ratio"], speed, at_most=False))
        goals.append(_goal("memory_ratio", compared["memory_ratio"], _MEMORY_GOAL, at_most=True))
        lost = -compared["accuracy_difference"]
        goals.append(_goal("accuracy_lost", lost, _ACCURACY_GOAL, at_most=True))
    return goals


def _goal(name: str, value: float | None, limit: float, *, at_most: bool) -> dict[str, Any]:
    met = value is not None and (value <= limit if at_most else value >= limit)
    return {
        "name": name,
        "value": value,
        "at_most" if at_most else "at_least": limit,
        "met": met,
    }


def _mfu(figures: dict[str, Any], accelerator_type: str) -> float | None:
    peak = peak_flops(accelerator_type)
    rate, flops = figures.get("examples_per_second"), figures.get("flops_per_example")
    if not (peak and rate and flops):
        return None
    return round(float(rate) * float(flops) / peak, 4)


def _ratio(one: float | None, other: float | None) -> float | None:
    return round(one / other, 3) if one and other else None


def _median(values: list[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return round(statistics.median(known), 4) if known else None


def _machine() -> dict[str, Any]:
    return {
        "system": platform.platform(),
        "cpu_count": os.cpu_count(),
        "cpu_has_bfloat16": cpu_has_bfloat16(),
        "load_average": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
    }
