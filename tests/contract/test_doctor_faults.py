"""Trouble that was put in on purpose: the checklist names its cause first."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.command_line import CommandLine
from tests.emulator_fixture import CALL, RUNTIME, ZONE, Cloud, node_name

if TYPE_CHECKING:
    from pathlib import Path

HBM_LINE = (
    "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 8.38G of 8.00G hbm. "
    "Exceeded hbm capacity by 385.25M."
)
LOCK_LINE = (
    "libtpu.so already in use by another process probably owned by another user. "
    'Run "$ sudo lsof -w /dev/accel0" to figure out which process is using the TPU.'
)
HOST_LINE = "[812.1] Memory cgroup out of memory: Killed process 991 (python3) total-vm:4000kB"
VERSION_LINE = "ConfigureDistributedTpuOp_DoWork not available in this library."
BUCKET_LINE = (
    "service-1@cloud-tpu.iam.gserviceaccount.com does not have storage.objects.create "
    "access to the Google Cloud Storage object."
)
API_OFF = (
    "Cloud TPU API has not been used in project 123 before or it is disabled. Enable it by "
    "visiting https://console.developers.google.com/apis/api/tpu.googleapis.com/overview then retry"
)


@pytest.fixture
def tpudash(emulator: Cloud, tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path, emulator.endpoint)


def stamp(**back: float) -> str:
    moment = datetime.now(UTC) - timedelta(**back)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class World:
    """One run as its agent would leave it: node, records and log."""

    def __init__(self, cloud: Cloud, folder: Path, name: str = "demo") -> None:
        self._cloud = cloud
        self._name = name
        self.bucket = folder / "bucket"
        self.url = self.bucket / "tpudash" / "runs" / name
        (self.url / "attempts").mkdir(parents=True)

    def spec(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "run": self._name,
            "owner": "alice",
            "attempt": 1,
            "project": "demo",
            "zone": ZONE,
            "bucket": str(self.bucket),
            "run_url": str(self.url),
            "recipe": {
                "name": "tensorflow-mnist",
                "command": ["python3", "-m", "trainer", "--steps", "600", "--batch_size", "1024"],
            },
            "target_step": 600,
            "accelerator_type": "v2-8",
            "runtime_version": RUNTIME,
            "scheduling": "spot",
            "created": stamp(hours=2),
        }

    async def begin(self, **record: Any) -> None:
        """Make the node, and write its agent's record."""
        spec = self.spec()
        (self.url / "run.json").write_text(json.dumps(spec))
        await self._cloud.create(
            f"{self._name}-1",
            scheduling_config={"spot": True},
            labels={
                "tpudash-run": self._name,
                "tpudash-owner": "alice",
                "tpudash-attempt": "1",
            },
            metadata={"tpudash-spec": json.dumps(spec)},
        )
        self.record(**record)

    def record(self, **changes: Any) -> None:
        fields = {
            "schema": 1,
            "run": self._name,
            "attempt": 1,
            "node": f"{self._name}-1",
            "zone": ZONE,
            "project": "demo",
            "accelerator_type": "v2-8",
            "state": "TRAINING",
            "started": stamp(hours=1),
            "updated": stamp(seconds=1),
            "restored_step": 0,
            "step": 450,
            "checkpoint_step": 400,
            "target_step": 600,
            **changes,
        }
        (self.url / "attempts" / "1.json").write_text(json.dumps(fields))

    async def log(self, *texts: str, stream: str = "stderr", severity: str = "ERROR") -> None:
        await self._write([{"text_payload": text} for text in texts], stream, severity)

    async def tell(self, event: str, **payload: Any) -> None:
        """Write one event of the agent."""
        await self._write([{"json_payload": {"event": event, **payload}}], "agent", "INFO")

    async def _write(self, payloads: list[dict[str, Any]], stream: str, severity: str) -> None:
        entries = [
            {
                "log_name": "projects/demo/logs/tpudash",
                "resource": {
                    "type": "tpu_worker",
                    "labels": {
                        "project_id": "demo",
                        "zone": ZONE,
                        "node_id": f"{self._name}-1",
                        "worker_id": "0",
                    },
                },
                "labels": {
                    "tpudash-run": self._name,
                    "tpudash-attempt": "1",
                    "stream": stream,
                },
                "severity": severity,
                "timestamp": datetime.now(UTC) - timedelta(seconds=30 - at),
                "insert_id": f"{self._name}-{at}-{stream}",
                **payload,
            }
            for at, payload in enumerate(payloads)
        ]
        await self._cloud.logging.write_log_entries(entries=entries, **CALL)


async def first(tpudash: CommandLine, *arguments: str) -> dict[str, Any]:
    """Return the first row of the checklist."""
    items = (await tpudash("doctor", *arguments, "--json")).items
    return items[0]


def failed(error_class: str, detail: str) -> dict[str, Any]:
    return {
        "state": "FAILED",
        "ended": stamp(seconds=20),
        "exit_code": 70,
        "error": {"class": error_class, "detail": detail, "hint": ""},
    }


async def test_a_zone_without_capacity(
    emulator: Cloud, tpudash: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "bucket").mkdir()
    await emulator.control.add_fault("stock-out", zone=ZONE, accelerator_type="v2-8")
    bucket = str(tmp_path / "bucket")
    place = ("--accelerator", "v2-8", "--zone", ZONE, "--bucket", bucket)
    done = await tpudash("launch", "demo", *place, "--yes", "--wait")
    assert done.code == 5
    row = await first(tpudash, "demo")
    assert (row["check"], row["verdict"]) == ("run-created", "fail")
    assert "STOCKOUT" in row["evidence"]
    assert "no more capacity in the zone" in row["evidence"]
    assert row["group"] == "creation fails"
    assert "also offered in" in row["advice"]


async def test_a_quota_of_nothing(emulator: Cloud, tpudash: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "bucket").mkdir()
    await emulator.control.set_quota(
        "us-central1", "TPUV2sPreemptiblePerProjectPerRegionForTPUAPI", 0
    )
    bucket = str(tmp_path / "bucket")
    place = ("--accelerator", "v2-8", "--zone", ZONE, "--bucket", bucket)
    done = await tpudash("launch", "demo", *place, "--yes", "--wait")
    assert done.code == 5
    row = await first(tpudash, "demo")
    assert (row["check"], row["verdict"]) == ("quota-room", "fail")
    assert "TPUV2sPreemptiblePerProjectPerRegionForTPUAPI" in row["evidence"]


async def test_an_api_that_is_off(emulator: Cloud, tpudash: CommandLine) -> None:
    await emulator.control.add_fault(
        "error", method="ListNodes", code="PERMISSION_DENIED", message=API_OFF
    )
    items = (await tpudash("doctor", "--json")).items
    assert [row["check"] for row in items[:2]] == ["api-answers", "api-enabled"]
    assert "has not been used in project" in items[0]["evidence"]
    assert items[1]["command"].startswith("gcloud services enable tpu.googleapis.com")


async def test_a_stall(emulator: Cloud, tpudash: CommandLine, tmp_path: Path) -> None:
    await World(emulator, tmp_path).begin(updated=stamp(minutes=40))
    row = await first(tpudash)
    assert (row["check"], row["verdict"], row["subject"]) == ("run-stalled", "fail", "demo")
    assert "40 min ago" in row["evidence"]


@pytest.mark.parametrize(
    ("check", "error_class", "line", "is_over"),
    [
        ("out-of-memory", "HBM_OOM", HBM_LINE, True),
        ("out-of-memory", "HBM_OOM", HBM_LINE, False),
        ("out-of-memory", "HOST_OOM", HOST_LINE, False),
        ("device-free", "DEVICE_BUSY", LOCK_LINE, False),
        ("versions-agree", "VERSION", VERSION_LINE, True),
        ("tpu-reached", "CONNECT", "UNAVAILABLE: failed to connect to all addresses", False),
        ("bucket-usable", "BUCKET_ACCESS", BUCKET_LINE, False),
    ],
)
async def test_a_line_that_names_the_cause(
    emulator: Cloud,
    tpudash: CommandLine,
    tmp_path: Path,
    check: str,
    error_class: str,
    line: str,
    is_over: bool,
) -> None:
    world = World(emulator, tmp_path)
    await world.begin(**(failed(error_class, line) if is_over else {}))
    await world.log("I0000 some line before", line, "W0000 some line after")
    row = await first(tpudash, "--node", "demo-1")
    assert (row["check"], row["verdict"]) == (check, "fail")
    assert error_class in row["evidence"]
    assert row["advice"]


async def test_a_stale_lock(emulator: Cloud, tpudash: CommandLine, tmp_path: Path) -> None:
    world = World(emulator, tmp_path)
    await world.begin(**failed("UNCLASSIFIED", "the trainer ended with code 1"))
    await world.log(LOCK_LINE)
    await world.tell(
        "devices",
        files=["/dev/accel0"],
        holders=[],
        lock_file="/tmp/libtpu_lockfile",
        lock_is_stale=True,
    )
    row = await first(tpudash, "demo")
    assert (row["check"], row["verdict"]) == ("device-free", "fail")
    assert "/tmp/libtpu_lockfile is there, and nobody holds the chips" in row["evidence"]
    assert "stale: remove it" in row["advice"]


async def test_memory_of_the_chip_is_told_in_figures(
    emulator: Cloud, tpudash: CommandLine, tmp_path: Path
) -> None:
    world = World(emulator, tmp_path)
    await world.begin()
    await world.log(HBM_LINE)
    row = await first(tpudash, "demo")
    assert "Used 8.38G of 8.00G hbm" in row["evidence"]
    assert "With more memory per chip in us-central1-b: v3-8" in row["advice"]


async def test_a_preemption(emulator: Cloud, tpudash: CommandLine, tmp_path: Path) -> None:
    world = World(emulator, tmp_path)
    await world.begin()
    await emulator.control.preempt(node_name("demo-1"), 0.1)
    world.record(state="PREEMPTED", ended=stamp(seconds=1), exit_code=75)
    row = await first(tpudash)
    assert (row["check"], row["verdict"], row["subject"]) == ("run-preempted", "fail", "demo")
    assert "the newest checkpoint is step 400, so 50 steps lost" in row["evidence"]
    assert row["command"] == "tpudash resume demo"
    assert row["action"] == "resume"


async def test_a_resume_that_began_from_zero(
    emulator: Cloud, tpudash: CommandLine, tmp_path: Path
) -> None:
    world = World(emulator, tmp_path)
    await world.begin(state="PREEMPTED", ended=stamp(minutes=9))
    second = json.loads((world.url / "attempts" / "1.json").read_text())
    second |= {"attempt": 2, "node": "demo-2", "state": "TRAINING", "ended": None, "step": 5}
    second |= {"checkpoint_step": None, "started": stamp(minutes=5), "updated": stamp(seconds=1)}
    (world.url / "attempts" / "2.json").write_text(json.dumps(second))
    await emulator.create(
        "demo-2",
        labels={"tpudash-run": "demo", "tpudash-owner": "alice", "tpudash-attempt": "2"},
        metadata={"tpudash-spec": json.dumps({**world.spec(), "attempt": 2})},
    )
    items = (await tpudash("doctor", "--json")).items
    row = items[0]
    assert (row["check"], row["verdict"]) == ("resumed-from-zero", "fail")


async def test_every_row_says_what_it_rests_on(
    emulator: Cloud, tpudash: CommandLine, tmp_path: Path
) -> None:
    await World(emulator, tmp_path).begin()
    items = (await tpudash("doctor", "--json")).items
    keys = [(row["check"], row["subject"]) for row in items]
    assert len(keys) == len(set(keys))
    for row in items:
        assert row["evidence"], row
        assert row["why"].endswith("."), row
        assert row["group"], row
        if row["verdict"] in {"warn", "fail"}:
            assert row["advice"], row
        if row["verdict"] == "pass":
            assert row["as_of"] is not None, row
            assert row["age_s"] < 60, row
