"""The server's settings: one frozen dataclass, its flags, and their checks."""

from __future__ import annotations

import argparse
import dataclasses
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from trainer.config import bad_argument

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "python -m trainer.serve"
DEFAULT_PORT = 8501
"""The port of TensorFlow Serving's REST API."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}")
_EPILOG = (
    "Exit codes: 0 stopped and drained, 75 the same under a supervisor (--stop_on_stdin_eof), "
    "64 bad arguments, 66 no model that can be served, 69 no device or no TensorFlow, 70 defect."
)


def _flag(help_text: str, default: Any, **extra: Any) -> Any:
    return field(default=default, metadata={"help": help_text, **extra})


@dataclass(frozen=True)
class Settings:
    """Everything the server is told. Each field is a flag of the same name."""

    model: str = _flag(
        "folder or gs:// URL of a SavedModel, of numbered versions of one, or of a run, whose "
        "newest export is served (default: --model_dir)",
        "",
    )
    name: str = _flag("name in /v1/models/NAME (default: from the folder)", "")
    host: str = _flag("address to listen on", "127.0.0.1")
    port: int = _flag("port to listen on; 0 takes a free one", DEFAULT_PORT)
    tpu: str = _flag("auto (a local chip if there is one, else the CPU), none, or local", "auto")
    max_batch: int = _flag("most instances in one call of the model", 64)
    window_ms: float = _flag(
        "how long a call of the model waits for more requests; -1 means 0 on CPU, 2 on TPU",
        -1.0,
    )
    pad: str = _flag(
        "fill batches up to powers of two, so that a TPU compiles few shapes; auto means on TPU",
        "auto",
        choices=("auto", "yes", "no"),
    )
    max_body_mb: float = _flag("largest request body in megabytes; larger ones get 413", 16.0)
    max_queue: int = _flag("most instances that may wait; further requests get 429", 1024)
    timeout_seconds: float = _flag("longest time to an answer; later ones get 503", 10.0)
    drain_seconds: float = _flag(
        "on SIGTERM, how long to go on answering while /readyz says 503, so that load balancers "
        "notice; requests that have begun are answered in any case",
        1.0,
    )
    reload_seconds: float = _flag(
        "how often to look for a newer export; 0 means never, -1 means 5, or 30 on gs://", -1.0
    )
    report_seconds: float = _flag("how often to tell the figures as an event; 0 means never", 5.0)
    model_dir: str = _flag("folder of the run, as the agent gives it; used without --model", "")
    run: str = _flag("name of the run, copied into each event", "local")
    attempt: int = _flag("number of this life of the run, copied into each event", 1)
    stop_on_stdin_eof: bool = _flag(
        "drain and stop when stdin says `stop` or ends: a supervisor asks for it or died", False
    )

    @property
    def folder(self) -> str:
        """Where the exports are."""
        return self.model or self.model_dir

    @property
    def max_body_bytes(self) -> int:
        """Largest request body in bytes."""
        return int(self.max_body_mb * 2**20)

    @property
    def look_every_s(self) -> float:
        """Seconds between looks for a newer export; 0 for none. A look at a bucket costs money."""
        if self.reload_seconds >= 0:
            return self.reload_seconds
        return 30.0 if self.folder.startswith("gs://") else 5.0

    @property
    def model_name(self) -> str:
        """The name in /v1/models/NAME: as given, or the last telling part of the folder."""
        if self.name:
            return self.name
        parts = [part for part in self.folder.rstrip("/").split("/") if part]
        telling = [part for part in parts if not part.isdecimal() and part != "export"]
        return telling[-1] if telling and _NAME.fullmatch(telling[-1]) else "model"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise bad_argument(message, f"see {PROGRAM} --help")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser made from the fields of `Settings`."""
    parser = _Parser(
        prog=PROGRAM,
        description="Serve an exported model over HTTP: POST /v1/models/NAME:predict in the shape "
        "of TensorFlow Serving, GET /v1/models/NAME, /healthz, /readyz, and /metrics for "
        "Prometheus. A newer export is taken up without losing a request.",
        epilog=_EPILOG,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    for each in dataclasses.fields(Settings):
        text = each.metadata["help"].replace("%", "%%")
        if isinstance(each.default, bool):
            parser.add_argument(f"--{each.name}", action="store_true", help=text)
            continue
        choices = each.metadata.get("choices")
        kind = type(each.default)
        metavar = None if choices else {int: "N", float: "X"}.get(kind, "TEXT")
        parser.add_argument(
            f"--{each.name}",
            type=kind,
            default=each.default,
            choices=choices,
            metavar=metavar,
            help=text,
        )
    return parser


def parse(arguments: Sequence[str]) -> Settings:
    """Return the validated settings.

    Raises:
        TrainerError: a flag is unknown, malformed or out of range.
        SystemExit: --help was asked for.
    """
    settings = Settings(**vars(make_parser().parse_args(list(arguments))))
    if not settings.folder:
        raise bad_argument("no model was named", "give --model DIR")
    if settings.name and not _NAME.fullmatch(settings.name):
        raise bad_argument(
            f"--name {settings.name!r} cannot stand in a URL", "use letters, digits, _ . and -"
        )
    _check_range("port", settings.port, 0, 65535)
    _check_range("max_batch", settings.max_batch, 1, 65536)
    _check_range("max_queue", settings.max_queue, 1, 1_000_000)
    _check_range("max_body_mb", settings.max_body_mb, 0.001, 1024)
    _check_range("window_ms", settings.window_ms, -1, 1000)
    _check_range("timeout_seconds", settings.timeout_seconds, 0.01, 3600)
    _check_range("reload_seconds", settings.reload_seconds, -1, 86_400)
    for name in ("drain_seconds", "report_seconds"):
        _check_range(name, getattr(settings, name), 0, 3600)
    return settings


def _check_range(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise bad_argument(f"--{name} {value} is out of range", f"use {least} to {most}")
