"""The real server in a process of its own: load, a reload in the middle, refusals, the drain."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from tests.unit.trainer.node import REPOSITORY
from tests.unit.trainer.serve.conftest import export
from tests.waiting import wait_until
from trainer.faults import ExitCode, TrainerError
from trainer.serve.exports import find_exports
from trainer.serve.server import listen
from trainer.serve.settings import parse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CLIENTS = 16


class Serving:
    """A running `python -m trainer.serve` of the folder of models, and its events."""

    def __init__(self, folder: Path, out: Path, *flags: str) -> None:
        self._out = out
        with out.open("wb") as stdout, out.with_suffix(".err").open("wb") as stderr:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "trainer.serve", "--model", str(folder)),
                    *("--port", "0", "--tpu", "none", "--reload_seconds", "0.1", *flags),
                ],
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
                cwd=REPOSITORY,
            )

    def events(self, kind: str) -> list[dict[str, Any]]:
        lines = self._out.read_text().splitlines()
        return [event for line in lines if (event := json.loads(line))["event"] == kind]

    def wait_event(self, kind: str, count: int = 1) -> dict[str, Any]:
        def found() -> bool:
            assert self.process.poll() is None, self._out.with_suffix(".err").read_text()
            return len(self.events(kind)) >= count

        wait_until(found, within=60, what=kind)
        return self.events(kind)[count - 1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.wait_event('start')['port']}"


@pytest.fixture
def serving(models: Path, tmp_path: Path) -> Iterator[Serving]:
    flags = ("--drain_seconds", "0.5", "--report_seconds", "0.3", "--max_body_mb", "0.01")
    started = Serving(models, tmp_path / "events", *flags)
    yield started
    started.process.kill()
    started.process.wait()


async def ask(http: aiohttp.ClientSession, x: object, path: str = "double") -> tuple[int, Any]:
    async with http.post(f"/v1/models/{path}:predict", json={"instances": [x]}) as response:
        return response.status, await response.json()


async def get(http: aiohttp.ClientSession, path: str) -> tuple[int, Any]:
    async with http.get(path) as response:
        return response.status, await response.json(content_type=None)


class Load:
    """Clients that ask without a pause, and keep whatever was not the right answer."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http
        self._going = True
        self.factors: set[float] = set()
        self.wrong: list[Any] = []
        self.answers = 0
        self._tasks = [asyncio.ensure_future(self._client(n)) for n in range(_CLIENTS)]

    async def _client(self, number: int) -> None:
        x = [float(number + 1)] * 4
        while self._going:
            status, content = await ask(self._http, x)
            self.answers += 1
            if status == 200:
                (y,) = content["predictions"]
                self.factors.add(y[0] / x[0])
            else:
                self.wrong.append((status, content))

    async def answered(self, more: int) -> None:
        """Wait for so many more answers."""
        enough = self.answers + more
        await asyncio.to_thread(
            lambda: wait_until(lambda: self.answers > enough, within=20, what="answers")
        )

    async def end(self) -> None:
        self._going = False
        await asyncio.gather(*self._tasks)


async def test_serving_under_load_reload_refusal_and_drain(serving: Serving, models: Path) -> None:
    async with aiohttp.ClientSession(serving.url) as http:
        assert (await get(http, "/healthz"))[0] == 200
        assert (await get(http, "/readyz"))[0] == 503
        assert (await ask(http, [1, 2, 3, 4]))[0] == 503
        await asyncio.to_thread(serving.wait_event, "ready")
        assert (await get(http, "/readyz"))[0] == 200
        load = Load(http)
        await load.answered(50)

        export(models, 2, factor=3)
        await asyncio.to_thread(serving.wait_event, "model", 2)
        export(models, 3, width=5)
        (models / "4").mkdir()
        (models / "4" / "saved_model.pb").write_bytes(b"garbage")
        await asyncio.to_thread(serving.wait_event, "warning", 2)
        await load.answered(50)

        status = (await get(http, "/v1/models/double"))[1]["model_version_status"]
        assert [(one["version"], one["state"]) for one in status] == [("2", "AVAILABLE")]
        assert await refusals(http) == [400, 404, 404, 405, 413, 415]
        serving.process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(serving.wait_event, "drain")
        assert (await get(http, "/readyz"))[0] == 503
        await load.end()
        assert load.wrong == []
        assert load.factors == {2, 3}
    assert await asyncio.to_thread(serving.process.wait, 20) == 0
    told = [each["message"] for each in serving.events("warning")]
    assert any("another model: input x of serving_default is float32 [n, 5]" in m for m in told)
    figures = [each for each in serving.events("serve") if each["requests_per_second"] > 10]
    assert figures
    assert all(0 < each["latency_p50_s"] <= each["latency_p99_s"] for each in figures)


async def refusals(http: aiohttp.ClientSession) -> list[int]:
    """Return the statuses of requests that must be refused, which metrics count too."""
    found = [(await ask(http, [1, 2]))[0], (await ask(http, [1] * 4, "other"))[0]]
    found.append((await ask(http, [1] * 4, "double/versions/9"))[0])
    found.append((await get(http, "/v1/models/double:predict"))[0])
    url = "/v1/models/double:predict"
    async with http.post(url, data=b"[" * 100_000) as response:
        found.append(response.status)
    async with http.post(url, data=b"x", headers={"content-encoding": "br"}) as response:
        found.append(response.status)
    async with http.get("/metrics") as response:
        text = await response.text()
    for name in ("model_latency_seconds_bucket", 'http_errors_total{code="413"} 1.0'):
        assert name in text
    return found


def test_a_supervised_server_stops_on_a_word_and_says_that_it_is_not_done(
    models: Path, tmp_path: Path
) -> None:
    server = Serving(models, tmp_path / "events", "--stop_on_stdin_eof", "--drain_seconds", "0")
    server.wait_event("start")
    assert server.process.stdin is not None
    server.process.stdin.write(b"stop the node goes\n")
    server.process.stdin.flush()
    assert server.process.wait(20) == 75
    assert server.events("drain")[0]["reason"] == "the node goes"


def test_a_folder_without_a_model_ends_the_server_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    server = Serving(tmp_path, tmp_path / "events")
    assert server.process.wait(60) == 66
    (error,) = server.events("error")
    assert error["detail"] == f"{tmp_path} holds checkpoints, but no exported model"
    said = (tmp_path / "events.err").read_text().splitlines()
    assert len([line for line in said if line.startswith("trainer: ")]) == 1


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["model.keras"], "holds a Keras file, but no SavedModel"),
        (["export/5.tmp/saved_model.pb"], "no exported model"),
        (["export/5/model.stablehlo", "checkpoints/x"], "none of the exports in .* a SavedModel"),
        ([], "no exported model"),
        (None, "there is no "),
    ],
)
def test_what_is_there_instead_of_a_model_is_told(
    names: list[str] | None, words: str, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    for name in names or ():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    if names == []:
        folder.mkdir()
    with pytest.raises(TrainerError, match=words) as told:
        find_exports(str(folder))
    assert told.value.exit_code == ExitCode.NO_INPUT


def test_the_newest_complete_export_of_a_run_is_found(tmp_path: Path) -> None:
    for name in ("9/saved_model.pb", "10/saved_model.pb", "11.tmp/saved_model.pb", "12/variables"):
        path = tmp_path / "export" / name
        path.parent.mkdir(parents=True)
        path.touch()
    for folder in (tmp_path, tmp_path / "export"):
        assert [export.version for export in find_exports(str(folder))] == [10, 9]
    assert find_exports(f"{tmp_path}/export/9/")[0].version == 9


def test_a_port_in_use_and_flags_out_of_range_are_bad_arguments() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(TrainerError, match="cannot listen on") as told:
            listen("127.0.0.1", taken.getsockname()[1])
    assert "choose another --port" in told.value.hint
    assert told.value.exit_code == ExitCode.BAD_ARGUMENTS
    for flags in ("--max_batch 0", "--port 70000", "--name a/b", "--bogus", "--timeout_seconds 0"):
        with pytest.raises(TrainerError) as told:
            parse(["--model", "m", *flags.split()])
        assert told.value.exit_code == ExitCode.BAD_ARGUMENTS
    assert parse(["--model", "gs://bucket/tpudash/runs/mnist/export/600"]).model_name == "mnist"
