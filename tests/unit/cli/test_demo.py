"""The demo around its emulator: folders, locks, and what is refused before anything starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.waiting import wait_until
from tpudash import cli
from tpudash.commands import demo, demo_world
from tpudash.commands.demo_world import clean_up
from tpudash.domain.node import Scheduling
from tpudash.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path


def test_without_tensorflow_it_says_so_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TPUDASH_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(demo, "find_spec", lambda name: None)
    assert cli.run(["demo"]) == 2
    error = capsys.readouterr().err
    assert "TensorFlow is not installed" in error
    assert "tpudash[trainer]" in error
    assert not (tmp_path / "state").exists()


def test_the_first_run_is_a_spot_v2_8() -> None:
    request = demo.first_run("/b")
    assert (request.accelerator_type, request.zones, request.scheduling) == (
        "v2-8",
        ("us-central1-b",),
        Scheduling.SPOT,
    )


def test_the_emulator_lives_as_long_as_the_demo(tmp_path: Path) -> None:
    import psutil

    with demo_world.demo_world(tmp_path / "demo") as world:
        children = psutil.Process().children()
        (emulator,) = [one for one in children if "emulator" in one.cmdline()]
        assert world.endpoint.startswith("127.0.0.1:")
        assert world.folder.parent == tmp_path / "demo"
    wait_until(lambda: not emulator.is_running(), within=5, what="the emulator has ended")
    assert list((tmp_path / "demo").iterdir()) == []


def test_what_an_earlier_demo_left_is_removed_and_a_living_one_is_not(tmp_path: Path) -> None:
    dead, living = tmp_path / "world-dead", tmp_path / "world-living"
    for folder in (dead, living, tmp_path / "mine"):
        (folder / "emulator").mkdir(parents=True)
    with demo_world._take(living):
        clean_up(tmp_path)
    assert not dead.exists()
    assert living.exists()
    assert (tmp_path / "mine").exists()


def test_an_emulator_that_does_not_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho no good >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(program))
    with (
        pytest.raises(ConfigurationError, match="did not start") as caught,
        demo_world.demo_world(tmp_path / "demo"),
    ):
        pass
    assert caught.value.detail == "no good"
    assert list((tmp_path / "demo").iterdir()) == []
