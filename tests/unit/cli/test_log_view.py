"""Files and pipes on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.waiting import wait_until
from tpudash.cli import root
from tpudash.clock import SystemClock
from tpudash.commands.log_pipe import LogPipe
from tpudash.commands.state import CliState
from tpudash.store.log_ring import LogRing


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(root, ["logs", *arguments], obj=CliState())
    return result.exit_code, result.stdout


def piped(written: bytes, *arguments: str) -> str:
    command = [sys.executable, "-m", "tpudash", "logs", "-", *arguments]
    done = subprocess.run(command, input=written, capture_output=True, timeout=60, check=True)
    return done.stdout.decode()


def test_a_file_is_printed_clean_from_its_last_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\ntwo\n10%\r100%\n\x1b[31mred\x1b[0m")
    assert run("--file", str(path), "-n", "3") == (0, "two\n100%\nred\n")
    assert run("--file", str(path)) == (0, "one\ntwo\n100%\nred\n")


def test_severities_and_json_of_a_pipe() -> None:
    written = b"I1201 08:00:00.1 7 a.cc:1] fine\nE1201 08:00:01.1 7 a.cc:1] bad\n"
    assert piped(written, "--severity", "error").splitlines() == ["E1201 08:00:01.1 7 a.cc:1] bad"]
    items = [json.loads(line) for line in piped(written + b"no time\n", "--json").splitlines()]
    assert [item["severity"] for item in items] == ["INFO", "ERROR", "DEFAULT"]
    assert items[0]["timestamp"].endswith("-12-01T08:00:00.100000Z")
    assert items[2]["timestamp"] is None


@pytest.mark.parametrize("arguments", [(), ("name", "--file", "x")])
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    assert run(*arguments)[0] != 0


@given(
    st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20), max_size=20)
)
def test_the_last_lines_are_the_last_lines(lines: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "log"
        path.write_text("".join(f"{line}\n" for line in lines))
        assert run("--file", str(path), "-n", "3", "--plain")[1].splitlines() == lines[-3:]


def test_a_pipe_feeds_the_log_and_shows_its_unfinished_line() -> None:
    reading, writing = os.pipe()
    ring = LogRing()
    pipe = LogPipe(reading, ring, SystemClock())
    os.write(writing, b"same\nsame\n 45%|##")
    wait_until(lambda: bool(pipe.take_in()) or len(ring) == 2, within=10, what="two lines")
    assert [entry.text for entry in ring] == ["same", "same"]
    wait_until(lambda: pipe.partial == " 45%|##", within=10, what="the bar")
    os.write(writing, b"\r100%|####")
    os.close(writing)
    wait_until(lambda: pipe.is_over, within=10, what="the end")
    pipe.take_in()
    assert [entry.text for entry in ring][-1] == "100%|####"
    os.close(reading)
