"""Reading commands against the emulator: envelopes, tables, and what cannot be read."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from google.cloud import tpu_v2

from tests.contract.command_line import CommandLine
from tests.emulator_fixture import CALL

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.emulator_fixture import Cloud

NODE = "projects/demo/locations/us-central1-b/nodes/plain-1"
SPOT = tpu_v2.SchedulingConfig(spot=True)


@pytest.fixture
def tpudash(emulator: Cloud, tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path, emulator.endpoint)


async def write_log(
    cloud: Cloud,
    texts: list[str],
    *,
    events: Sequence[dict[str, Any]] = (),
    run: str = "demo",
    node: str = "demo-1",
    back_s: float = 0,
) -> None:
    now = datetime.now(UTC) - timedelta(seconds=back_s)
    payloads: list[dict[str, Any]] = [
        *({"text_payload": text} for text in texts),
        *({"json_payload": event} for event in events),
    ]
    entries = [
        {
            "log_name": "projects/demo/logs/tpudash",
            "resource": {
                "type": "tpu_worker",
                "labels": {
                    "project_id": "demo",
                    "zone": "us-central1-b",
                    "node_id": node,
                    "worker_id": "0",
                },
            },
            "labels": {"tpudash-run": run, "tpudash-attempt": "1", "stream": "stdout"},
            "severity": "INFO",
            "timestamp": now + timedelta(milliseconds=at),
            "insert_id": f"{run}-{now.timestamp()}-{at}",
            **payload,
        }
        for at, payload in enumerate(payloads)
    ]
    await cloud.logging.write_log_entries(entries=entries, **CALL)


async def test_an_empty_project_is_empty_and_not_an_error(tpudash: CommandLine) -> None:
    for command in ("nodes", "requests", "runs"):
        done = await tpudash(command, "--json")
        assert done.items == []
        table = await tpudash(command)
        assert (table.code, table.out) == (0, "")
        assert table.err.startswith("no ")


async def test_nodes_carry_every_promised_field(emulator: Cloud, tpudash: CommandLine) -> None:
    await emulator.create("plain-1", labels={"team": "blue"}, scheduling_config=SPOT)
    done = await tpudash("nodes", "--json")
    (item,) = done.items
    assert item["name"] == NODE
    expected: dict[str, Any] = {
        "zone": "us-central1-b",
        "state": "READY",
        "accelerator_type": "v2-8",
        "chips": 4,
        "hosts": 1,
        "scheduling": "spot",
        "run": None,
        "labels": {"team": "blue"},
    }
    assert {name: item[name] for name in expected} == expected
    assert item["cost_per_hour_usd"] == pytest.approx(1.35)
    assert item["cost_accrued_usd"] >= 0
    assert item["age_s"] >= 0
    assert item["create_time"].endswith("Z")
    assert {"health", "runtime_version"} <= item.keys()
    assert done.envelope["as_of"].endswith("Z")
    assert "emulator" in done.envelope["source"]
    table = await tpudash("nodes")
    header, row = table.out.splitlines()
    assert header.split()[:3] == ["NAME", "ZONE", "STATE"]
    assert row.split()[:3] == ["plain-1", "us-central1-b", "READY"]


async def test_an_unknown_price_is_null_and_not_nothing(
    emulator: Cloud, tpudash: CommandLine
) -> None:
    place = "projects/demo/locations/us-east1-d"
    await emulator.create("plain-1", parent=place, accelerator_type="v3-8", scheduling_config=SPOT)
    (item,) = (await tpudash("nodes", "--json")).items
    assert item["cost_per_hour_usd"] is None
    assert item["cost_accrued_usd"] is None
    assert item["cost_is_lower_bound"] is True


async def test_a_zone_that_is_silent_is_named(emulator: Cloud, tpudash: CommandLine) -> None:
    await emulator.create("plain-1")
    await emulator.control.add_fault("unreachable-zone", zone="europe-west4-a")
    done = await tpudash("nodes", "--json")
    assert any("europe-west4-a" in one for one in done.envelope["unreachable"])
    assert [item["name"] for item in done.items] == [NODE]
    table = await tpudash("nodes")
    assert "europe-west4-a" in table.err


async def test_hostile_text_stays_text(emulator: Cloud, tpudash: CommandLine) -> None:
    await emulator.create("plain-1")
    await write_log(emulator, ["\x1b[2J[bold]x\r\x07", "a\nb"], node="plain-1", run="other")
    done = await tpudash("logs", "plain-1")
    assert done.code == 0, done.err
    assert "\x1b" not in done.out
    assert "[bold]x" in done.out
    assert len(done.out.splitlines()) == 2


async def test_cost_adds_up(emulator: Cloud, tpudash: CommandLine) -> None:
    await emulator.create("plain-1", scheduling_config=SPOT)
    await emulator.create("plain-2", scheduling_config=SPOT)
    items = (await tpudash("cost", "--json")).items
    total = items[-1]
    assert total["kind"] == "total"
    assert total["cost_per_hour_usd"] == pytest.approx(2.7)
    node = items[0]
    assert node["price"]["source"]
    assert node["price"]["per_chip_hour_usd"] > 0


async def test_logs_are_listed_in_order_and_limited(emulator: Cloud, tpudash: CommandLine) -> None:
    await emulator.create("demo-1", labels={"tpudash-run": "demo"})
    await write_log(emulator, [f"line {number}" for number in range(20)])
    items = (await tpudash("logs", "demo", "--json", "--limit", "5")).items
    assert [item["text"] for item in items] == [f"line {number}" for number in range(15, 20)]
    first = items[0]
    assert (first["run"], first["attempt"], first["node"], first["worker"]) == (
        "demo",
        1,
        "demo-1",
        "0",
    )
    await write_log(emulator, ["an old line"], back_s=7200)
    recent = await tpudash("logs", "demo", "--since", "1h")
    assert "an old line" not in recent.out
    assert "an old line" in (await tpudash("logs", "demo")).out


async def test_following_streams_and_ends_with_the_node(
    emulator: Cloud, tpudash: CommandLine
) -> None:
    await emulator.create("plain-1")
    await write_log(emulator, ["before"], node="plain-1", run="other")
    process = await tpudash.start("logs", "plain-1", "--follow", "--json")
    assert process.stdout is not None
    async with asyncio.timeout(20):
        first = json.loads(await process.stdout.readline())
        assert first["text"] == "before"
        await write_log(emulator, ["now 1", "now 2"], node="plain-1", run="other")
        texts = [json.loads(await process.stdout.readline())["text"] for _ in range(2)]
        assert texts == ["now 1", "now 2"]
        await emulator.delete("plain-1")
        assert await process.stdout.read() == b"", "each entry once"
        assert await process.wait() == 0


async def test_metrics_of_a_node_have_units(emulator: Cloud, tpudash: CommandLine) -> None:
    tpudash.environment["TPUDASH_INTERVALS_METRICS"] = "1"
    await emulator.create("plain-1", metadata={"startup-script": "sleep 600"})
    async with asyncio.timeout(60):
        memory: dict[str, Any] = {"points": []}
        while not memory["points"]:
            await emulator.control.publish_metrics()
            items = (await tpudash("metrics", "plain-1", "--json")).items
            by_name = {item["metric"]: item for item in items}
            memory = by_name["tpu.googleapis.com/memory/usage"]
    assert (memory["unit"], memory["node"], memory["worker"]) == ("By", NODE, "0")
    assert memory["points"][-1]["value"] == memory["value"]
    assert memory["reason"] is None
    duty = by_name["tpu.googleapis.com/accelerator/duty_cycle"]
    assert (duty["value"], duty["reason"]) == (None, "no workload")
    assert (await tpudash("metrics", "plain-1")).out.startswith("NODE")
    table = (await tpudash("metrics", "plain-1", "--csv")).out.splitlines()
    assert table[0] == "time,node,run,worker,metric,measure,unit,value,step,attempt"
    assert any("host_memory_used_bytes,By," in row for row in table[1:])
    assert by_name["derived/idle_s"]["value"] == 0.0, "younger than what counts as idle"


async def test_what_follows_from_a_runs_figures_is_told_with_its_units(
    emulator: Cloud, tpudash: CommandLine
) -> None:
    await emulator.create("demo-1", labels={"tpudash-run": "demo", "tpudash-attempt": "1"})
    slow, fast = ({"examples_per_second": rate, "input_wait_fraction": 0.5} for rate in (50, 100))
    chips = [{"duty_cycle_percent": 0.5, "hbm_used_bytes": 2**30}, {"duty_cycle_percent": 0.75}]
    events: list[dict[str, Any]] = [
        {"event": "stage", "stage": "trace", "flops_per_example": 1e9},
        *({"event": "step", "step": at, **fast} for at in range(6)),
        *({"event": "step", "step": at, **slow} for at in range(6, 12)),
        {"event": "host", "cpu_fraction": 0.25, "chips": chips},
    ]
    await write_log(emulator, [], events=events, back_s=60)
    items = (await tpudash("metrics", "demo-1", "--json")).items
    value = {item["metric"]: (item["value"], item["unit"]) for item in items}
    assert value["derived/mean_input_wait_fraction"] == (0.5, "1")
    assert value["derived/share_of_best_pace"] == (0.5, "1")
    share, unit = value["derived/model_flops_utilization"]
    assert (round(share * 4 * 46e12), unit) == (50e9, "1")
    assert value["tpu.googleapis.com/accelerator/duty_cycle"] == (0.625, "%")
    assert value["tpu.googleapis.com/accelerator/memory_used"] == (2.0**30, "By")
    assert value["derived/idle_wasted_usd"] == (0.0, "USD")
    csv = (await tpudash("metrics", "demo-1", "--csv")).out
    assert ",derived/share_of_best_pace,share_of_best_pace,1,0.5," in csv


async def test_doctor_says_what_is_and_what_is_not_known(
    emulator: Cloud, tpudash: CommandLine
) -> None:
    await emulator.create("plain-1")
    items = (await tpudash("doctor", "--json")).items
    assert items
    assert {item["verdict"] for item in items} <= {"pass", "warn", "fail", "unknown", "n/a"}


async def test_what_does_not_exist_is_4_and_near_misses_are_named(
    emulator: Cloud, tpudash: CommandLine
) -> None:
    await emulator.create("plain-1")
    for command in ("metrics", "logs"):
        done = await tpudash(command, "plain-2")
        assert done.is_refusal(4), done
        assert "plain-1" in done.err


@pytest.mark.parametrize("name", ["Upper", "-x", "a b", "a/b", 'a"b', "", "a" * 64])
async def test_a_name_that_is_none_goes_into_no_filter(tpudash: CommandLine, name: str) -> None:
    done = await tpudash("logs", "--", name)
    assert done.is_refusal(2), done


@pytest.mark.parametrize("since", ["soon", "-5m", "9999999d"])
async def test_a_time_that_is_none_is_refused(tpudash: CommandLine, since: str) -> None:
    done = await tpudash("logs", "demo", f"--since={since}")
    assert done.is_refusal(2), done


@pytest.mark.parametrize("command", ["nodes", "requests", "runs", "cost"])
async def test_an_endpoint_that_does_not_answer_is_one_line_soon(
    tpudash: CommandLine, command: str
) -> None:
    tpudash.environment["TPUDASH_ENDPOINT"] = "127.0.0.1:9"
    done = await tpudash(command, "--json")
    assert done.is_refusal(1), done
    assert "127.0.0.1:9" in done.err
    assert done.seconds < 4, "2 s on a machine that has nothing else to do"


async def test_an_endpoint_that_swallows_everything_is_one_line_soon(
    tpudash: CommandLine,
) -> None:
    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(swallow, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    tpudash.environment["TPUDASH_ENDPOINT"] = f"127.0.0.1:{port}"
    done = await tpudash("nodes", "--json")
    server.close()
    assert done.is_refusal(1), done
    assert done.seconds < 4, "2 s on a machine that has nothing else to do"


@pytest.mark.parametrize(
    "endpoint", ["tpu.googleapis.com:443", "10.0.0.1:80", "nonsense", "127.0.0.1:notaport"]
)
async def test_only_loopback_is_spoken_to_in_plaintext(tpudash: CommandLine, endpoint: str) -> None:
    tpudash.environment["TPUDASH_ENDPOINT"] = endpoint
    done = await tpudash("nodes")
    assert done.is_refusal(2), done


async def test_without_a_project_nothing_is_asked(tpudash: CommandLine) -> None:
    del tpudash.environment["TPUDASH_PROJECT"]
    done = await tpudash("nodes", "--json")
    assert done.is_refusal(2), done
    assert "--project" in done.err


async def test_options_may_stand_before_or_after_the_command(
    emulator: Cloud, tpudash: CommandLine
) -> None:
    del tpudash.environment["TPUDASH_PROJECT"], tpudash.environment["TPUDASH_ENDPOINT"]
    where = ("--project", "demo", "--endpoint", emulator.endpoint)
    assert (await tpudash(*where, "nodes", "--json")).items == []
    assert (await tpudash("nodes", "--json", *where)).items == []


async def test_a_command_with_json_imports_no_screen_and_no_tensorflow(
    emulator: Cloud, tpudash: CommandLine
) -> None:
    code = (
        "import sys; from tpudash import cli; code = cli.run(['nodes', '--json']);"
        "bad = [n for n in ('textual', 'tensorflow', 'tpudash.operations', 'tpudash.emulator')"
        " if n in sys.modules];"
        "sys.exit(f'{code} {bad}' if code or bad else 0)"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        code,
        env=tpudash.environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await process.communicate()
    assert process.returncode == 0, err.decode()
