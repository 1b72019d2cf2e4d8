"""The log of our own process: a file in the state folder, never the terminal, without secrets."""

from __future__ import annotations

import logging
import re
from logging.handlers import RotatingFileHandler
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

LOG_BYTES: Final = 2_000_000
LOG_FILES: Final = 3
FORMAT: Final = "%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"
_SECRETS: Final = (
    (re.compile(r"ya29\.[\w.-]+"), "[token]"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}"), r"\1 [token]"),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"), "[token]"),
    (re.compile(r"\bAIza[\w-]{20,}"), "[key]"),
    (re.compile(r"\b(?:ghp|gho|hf|sk|glpat|wandb)[_-][A-Za-z0-9_-]{16,}"), "[token]"),
    (
        re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*-----|$)", re.DOTALL),
        "[key]",
    ),
    (
        re.compile(
            r"(?i)([\"']?[\w-]*(?:password|passwd|secret|api[_-]?key|(?:access|refresh|id)_token)"
            r"[\w-]*[\"']?\s*[=:]\s*)[\"']?[^\s\"',}&]+[\"']?"
        ),
        r"\1[secret]",
    ),
    (re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), "[e-mail]"),
)


def without_secrets(text: str) -> str:
    """Return a text in which tokens, keys, passwords and e-mail addresses are masked."""
    for pattern, mask in _SECRETS:
        text = pattern.sub(mask, text)
    return text


class RedactingFormatter(logging.Formatter):
    """Formats a record as one text, traceback included, and masks what is secret in it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's text without secrets."""
        return without_secrets(super().format(record))


def start_own_log(file: Path, level: str) -> None:
    """Send everything that is logged in this process to a file, and nothing to the terminal.

    A command that only reads goes on without a log when the file can't be written to; a screen
    and an act check the folder themselves before they begin.
    """
    handler: logging.Handler
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler = RotatingFileHandler(
            file, maxBytes=LOG_BYTES, backupCount=LOG_FILES - 1, encoding="utf-8"
        )
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(RedactingFormatter(FORMAT))
    root = logging.getLogger()
    for old in tuple(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)
    logging.captureWarnings(True)
    logging.raiseExceptions = False
    for noisy in ("asyncio", "grpc", "google", "urllib3"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, root.level))
