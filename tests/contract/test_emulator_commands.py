"""`tpudash emulator ...` against a running emulator."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from tests.emulator_fixture import node_name
from tpudash.cli import run

if TYPE_CHECKING:
    import pytest

    from tests.emulator_fixture import Cloud


class Shell:
    """Runs commands beside the emulator's event loop."""

    def __init__(self, cloud: Cloud, capture: pytest.CaptureFixture[str]) -> None:
        self._endpoint = cloud.endpoint
        self._capture = capture

    async def run(self, *arguments: str) -> tuple[int, str, str]:
        """Return the exit code, stdout and stderr of `tpudash emulator ...`."""
        self._capture.readouterr()
        words = ["emulator", *arguments, "--endpoint", self._endpoint]
        code = await asyncio.to_thread(run, words)
        captured = self._capture.readouterr()
        return code, captured.out, captured.err

    async def json(self, *arguments: str) -> Any:
        """Return what a command that succeeds prints as JSON."""
        code, out, error = await self.run(*arguments, "--json")
        assert code == 0, error
        return json.loads(out)


async def test_preempt(emulator: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell(emulator, capsys)
    await emulator.create("a", scheduling_config={"spot": True})
    answer = await shell.json("preempt", "a", "--notice", "0s")
    assert answer == {"node": "a", "state": "PREEMPTED"}
    code, _, error = await shell.run("preempt", "none")
    assert code == 4
    assert "'none' was not found" in error
    code, _, error = await shell.run("preempt", node_name("a"))
    assert code == 2
    assert "PREEMPTED" in error
    code, _, _ = await shell.run("preempt", "a", "--notice", "soon")
    assert code == 2


async def test_maintenance(emulator: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    await emulator.create("a")
    shell = Shell(emulator, capsys)
    done = await shell.json("maintenance", "a", "--duration", "0s", "--outcome", "UNKNOWN")
    assert done["state"] == "UNKNOWN"


async def test_limits(emulator: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell(emulator, capsys)
    world = emulator.emulator.world
    await shell.json("capacity", "us-central1-b", "v2", "8")
    assert world.capacity.limits == {("us-central1-b", "v2"): 8}
    await shell.json("capacity", "us-central1-b", "v2", "none")
    assert world.capacity.limits == {}
    await shell.json("quota", "us-central1", "TPUV2sPerProjectPerRegionForTPUAPI", "0")
    assert list(world.quotas.limits.values()) == [0]
    code, _, error = await shell.run("capacity", "us-central1-b", "v2", "many")
    assert code == 2
    assert "whole number" in error


async def test_faults_and_counters(emulator: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell(emulator, capsys)
    added = await shell.json("fault", "latency", "--latency", "0s", "--count", "3")
    assert added["remaining"] == 3
    assert [rule["kind"] for rule in (await shell.json("fault"))["faults"]] == ["latency"]
    assert await shell.json("fault", "--clear", str(int(added["id"]))) == {"cleared": 1}
    code, _, error = await shell.run("fault", "error", "--details", "{")
    assert code == 2
    assert "JSON" in error
    await emulator.create("a")
    assert await shell.json("counters", "--reset") == {"google.cloud.tpu.v2.Tpu/CreateNode": 1}
    assert await shell.json("counters") == {}


async def test_environment(emulator: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell(emulator, capsys)
    variables = await shell.json("environment", "--project", "mine")
    wanted = emulator.emulator.addresses.environment()
    assert variables == {
        **wanted,
        "CLOUDSDK_CORE_PROJECT": "mine",
        "TPUDASH_ENDPOINT": emulator.endpoint,
    }
    _, out, _ = await shell.run("environment")
    assert f"export STORAGE_EMULATOR_HOST={wanted['STORAGE_EMULATOR_HOST']}" in out.splitlines()


async def test_a_fault_of_each_option(emulator: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell(emulator, capsys)
    skewed = await shell.json("fault", "clock-skew", "--skew", "-90s", "--after", "1m")
    assert (skewed["skew_s"], skewed["after_s"]) == (-90, 60)
    storm = await shell.json("fault", "preemption-storm", "--rate", "2", "--seed", "5")
    assert (storm["rate_per_hour"], storm["seed"]) == (2, 5)
    limited = await shell.json(
        "fault", "429", "--method", "ListNodes", "--every", "9s", "--for", "1s"
    )
    assert (limited["kind"], limited["code"]) == ("error", "RESOURCE_EXHAUSTED")
    code, _, error = await shell.run("fault", "stale-reads")
    assert code == 2
    assert "lag_s" in error


async def test_without_an_endpoint(
    emulator: Cloud, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TPUDASH_ENDPOINT", raising=False)
    assert await asyncio.to_thread(run, ["emulator", "counters"]) == 2
    assert "TPUDASH_ENDPOINT" in capsys.readouterr().err
