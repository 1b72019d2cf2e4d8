"""The log of our own process holds no secrets and never reaches the terminal."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from tpudash.commands.own_log import start_own_log, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _root_logger_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, raising = tuple(root.handlers), root.level, logging.raiseExceptions
    yield
    for handler in tuple(root.handlers):
        root.removeHandler(handler)
        if handler not in handlers:
            handler.close()
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(level)
    logging.raiseExceptions = raising
    logging.captureWarnings(False)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abcdef123456.xyz", "abcdef123456"),
        ("token ya29.a0AfH6SMB-xyz_123 used", "a0AfH6SMB"),
        ("signed in as alice.b+c@example.co.uk", "alice"),
        ('{"refresh_token": "1//0abc-def"}', "0abc-def"),
        ("password=hunter2 and more", "hunter2"),
        ("key AIzaSyA1234567890123456789012345678901", "SyA12345"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----", "MIIE"),
        ("WANDB_API_KEY: 0123456789abcdef", "0123456789abcdef"),
    ],
)
def test_secrets_are_masked(text: str, secret: str) -> None:
    assert secret in text
    assert secret not in without_secrets(text)


def test_what_is_no_secret_stays() -> None:
    text = "node projects/demo/locations/us-central1-b/nodes/demo-1 is READY at 127.0.0.1:4711"
    assert without_secrets(text) == text


def test_a_traceback_is_masked_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "state" / "tpudash.log"
    start_own_log(file, "INFO")
    try:
        _fail()
    except ValueError:
        logging.getLogger("tpudash.x").exception("failed for alice@example.com")
    text = file.read_text("utf-8")
    assert "ValueError" in text
    assert "abcdef123456" not in text
    assert "alice" not in text
    assert capfd.readouterr() == ("", "")


def test_a_folder_that_cannot_be_made_costs_the_log_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    start_own_log(tmp_path / "state" / "tpudash.log", "INFO")
    logging.getLogger("tpudash.x").warning("nobody hears this")


def _fail() -> None:
    raise ValueError("Bearer abcdef123456 was refused")
