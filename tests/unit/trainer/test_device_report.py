"""What the agent tells of the chips, and the tests it has the trainer make."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from trainer.agent import device_report, self_check

if TYPE_CHECKING:
    from pathlib import Path


def host(folder: Path, *, devices: tuple[str, ...] = (), lock: bool = False) -> dict[str, Path]:
    places = {name: folder / name for name in ("devices", "processes", "temporary")}
    for place in places.values():
        place.mkdir()
    for name in devices:
        path = places["devices"] / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    if lock:
        (places["temporary"] / "libtpu_lockfile").write_text("")
    return places


def holder(places: dict[str, Path], pid: int, device: str) -> None:
    folder = places["processes"] / str(pid)
    (folder / "fd").mkdir(parents=True)
    (folder / "comm").write_text("python3\n")
    (folder / "fd" / "7").symlink_to(places["devices"] / device)


def test_a_host_without_chips(tmp_path: Path) -> None:
    found = device_report.report(**host(tmp_path))
    assert (found["event"], found["files"], found["holders"]) == ("devices", [], [])
    assert found["lock_is_stale"] is False


def test_chips_that_somebody_holds(tmp_path: Path) -> None:
    places = host(tmp_path, devices=("accel0", "accel1", "vfio/0", "vfio/vfio"), lock=True)
    holder(places, 77, "accel0")
    found = device_report.report(**places)
    assert len(found["files"]) == 3
    assert found["holders"] == [{"pid": 77, "command": "python3"}]
    assert found["lock_is_stale"] is False
    assert found["lock_file"].endswith("libtpu_lockfile")


def test_a_lock_that_nobody_holds_is_stale(tmp_path: Path) -> None:
    found = device_report.report(**host(tmp_path, devices=("accel0",), lock=True))
    assert found["lock_is_stale"] is True
    assert "stale lock" in found["message"]


def test_without_a_process_file_system_nothing_is_claimed(tmp_path: Path) -> None:
    places = host(tmp_path, devices=("accel0",), lock=True)
    places["processes"].rmdir()
    found = device_report.report(**places)
    assert (found["holders"], found["lock_is_stale"]) == (None, False)


def test_only_the_bundled_trainer_can_be_asked_to_test_itself() -> None:
    given = ["/usr/bin/python3", "-m", "trainer", "--steps", "5", "--stop_on_stdin_eof"]
    assert self_check.command_of(given) == [*given[:3], "validate", "--steps", "5"]
    assert self_check.command_of(["python3", "-u", "x.py", "-m", "trainer"]) is None


def test_the_tests_end_by_themselves_or_in_time() -> None:
    lines: list[str] = []
    command = [sys.executable, "-c", "print('one'); import sys; sys.exit(3)"]
    code = self_check.run(
        command, {}, limit_s=20, on_line=lambda _, line: lines.append(line), cancelled=lambda: False
    )
    assert (code, lines) == (3, ["one"])
    endless = [sys.executable, "-c", "import time; time.sleep(60)"]
    over = self_check.run(
        endless, {}, limit_s=0.3, on_line=lambda *_: None, cancelled=lambda: False
    )
    assert over is None
    stopped = self_check.run(
        endless, {}, limit_s=20, on_line=lambda *_: None, cancelled=lambda: True
    )
    assert stopped is None
