"""The state folder: damaged files are set aside, one emulator at a time, one line on refusal."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from tpudash.emulator.settings import EmulatorSettings
from tpudash.emulator.state_dir import StateDirLock
from tpudash.emulator.world.state_file import StateFile
from tpudash.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 12, 1, tzinfo=UTC)


def test_a_damaged_file_is_set_aside_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "state.sqlite3"
    path.write_bytes(b"this is no database, whatever its name says" * 100)
    state = StateFile(path, NOW)
    assert list(state.load("node")) == []
    state.close()
    (aside,) = tmp_path.glob("state.sqlite3.corrupt-*")
    assert aside.read_bytes().startswith(b"this is no database")
    error = capsys.readouterr().err
    assert str(path) in error
    assert str(aside) in error


def test_a_torn_page_is_noticed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "state.sqlite3"
    state = StateFile(path, NOW)
    for number in range(500):
        state.put("node", f"n{number}", b"x" * 200)
    state.close()
    data = bytearray(path.read_bytes())
    data[4096 * 3 : 4096 * 6] = b"\xff" * (4096 * 3)
    path.write_bytes(data)
    again = StateFile(path, NOW)
    assert list(again.load("node")) == []
    again.close()
    assert "set aside" in capsys.readouterr().err


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite3"
    state = StateFile(path, NOW)
    state.put("node", "n", b"x")
    state._database.execute("PRAGMA user_version=99")
    state.close()
    with pytest.raises(ConfigurationError, match="newer emulator"):
        StateFile(path, NOW)
    assert path.exists()


def test_a_second_emulator_is_refused(tmp_path: Path) -> None:
    settings = EmulatorSettings(state_dir=tmp_path / "state")
    with (
        StateDirLock(settings),
        pytest.raises(ConfigurationError, match="another emulator uses"),
    ):
        StateDirLock(settings)
    StateDirLock(settings).close()


def serve(*options: str) -> tuple[int, str, float]:
    """Run `tpudash emulator serve` that is expected to refuse; return code, stderr, seconds."""
    began = time.monotonic()
    command = [sys.executable, "-m", "tpudash", "emulator", "serve", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    return done.returncode, done.stderr, time.monotonic() - began


def test_a_port_in_use_is_refused_in_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, error, _ = serve("--state-dir", str(tmp_path / "state"), "--port", port)
    assert code == 2
    assert f"port {port} of 127.0.0.1 cannot be used" in error
    assert "--port" in error
    assert "Traceback" not in error


def test_an_unwritable_folder_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    code, error, _ = serve("--state-dir", str(file / "below"))
    assert code == 2
    assert "cannot be written to" in error
    assert "--state-dir" in error
    assert "Traceback" not in error
