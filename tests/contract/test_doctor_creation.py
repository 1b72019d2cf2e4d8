"""Launches that fail for a reason that was put in on purpose: the checklist names it first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.contract.command_line import CommandLine
from tests.contract.test_doctor_faults import World, first
from tests.emulator_fixture import ZONE, Cloud

if TYPE_CHECKING:
    from pathlib import Path

QUOTA: Final = "TPUV2sPreemptiblePerProjectPerRegionForTPUAPI"
NO_ROOM: Final = (
    f"Quota limit '{QUOTA}' has been exceeded. Limit: 8 in region us-central1. [EID: 0x7]"
)
DENIED: Final = "Permission 'tpu.nodes.create' denied on 'projects/demo/locations/us-central1-b'"
OFF: Final = (
    "Cloud TPU API has not been used in project 123 before or it is disabled. Enable it by visiting"
    " https://console.developers.google.com/apis/api/tpu.googleapis.com/overview?project=123 then"
    " retry."
)
NO_BILLING: Final = (
    "This API method requires billing to be enabled. Please enable billing on project #123 by"
    " visiting https://console.developers.google.com/billing/enable?project=123 then retry."
)
TRIAL: Final = "Free trial accounts are not eligible to use Cloud TPU. Upgrade to a paid account."
RUNTIME: Final = (
    'Cloud TPU received an invalid argument. The field "TensorflowVersion" cannot be "2.4". '
    "[EID: 0x7]"
)
TYPE: Final = (
    "Cloud TPU received a bad request. the accelerator v2-8 was not found in zone us-central1-b "
    "[EID: 0x7]"
)
LOCATION: Final = "Location us-central1-b is not found or access is unauthorized."


@pytest.fixture
def tpudash(emulator: Cloud, tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path, emulator.endpoint)


QUICK: Final = (
    ("RESOURCE_EXHAUSTED", NO_ROOM, "quota-room", QUOTA, "Free what holds it"),
    ("PERMISSION_DENIED", DENIED, "run-created", "PERMISSION", "tpu.nodes.create"),
    ("PERMISSION_DENIED", OFF, "run-created", "API_OFF", "gcloud services enable"),
    ("FAILED_PRECONDITION", TRIAL, "billing-on", "Free trial", "upgrade a free trial"),
    ("INVALID_ARGUMENT", TYPE, "run-created", "BAD_REQUEST", "accelerator-types list"),
)
SLOW: Final = (
    ("PERMISSION_DENIED", NO_BILLING, "billing-on", "billing", "Link an open account"),
    ("INVALID_ARGUMENT", RUNTIME, "run-created", "BAD_REQUEST", "versions list"),
    ("PERMISSION_DENIED", LOCATION, "run-created", "LOCATION", "us-central1-b"),
)
"""What the cloud answers, the check that comes first, words of its evidence, and what helps."""


@pytest.mark.parametrize(
    "case", [*QUICK, *(pytest.param(case, marks=pytest.mark.slow) for case in SLOW)]
)
async def test_a_creation_that_is_refused(
    emulator: Cloud, tpudash: CommandLine, tmp_path: Path, case: tuple[str, ...]
) -> None:
    code, message, check, words, helps = case
    (tmp_path / "bucket").mkdir()
    await emulator.control.add_fault("error", method="CreateNode", code=code, message=message)
    bucket = str(tmp_path / "bucket")
    place = ("--accelerator", "v2-8", "--zone", ZONE, "--bucket", bucket)
    done = await tpudash("launch", "demo", *place, "--yes", "--wait")
    assert done.code in {1, 2, 3, 5}, done.err
    row = await first(tpudash)
    assert (row["check"], row["verdict"]) == (check, "fail"), row
    assert words in row["evidence"]
    assert helps in f"{row['advice']} {row['command']}"
    assert row["group"] == "creation fails"
    assert "EID" not in row["evidence"]


async def test_a_run_whose_zone_never_offers_its_type(
    emulator: Cloud, tpudash: CommandLine, tmp_path: Path
) -> None:
    await waiting(
        emulator, tmp_path, accelerator_type="v4-8", runtime_version="tpu-ubuntu2204-base"
    )
    row = await first(tpudash, "demo")
    assert (row["check"], row["verdict"]) == ("type-offered", "fail"), row
    assert f"{ZONE} does not offer v4-8" in row["evidence"]
    assert "v4-8 is offered in" in row["advice"]


async def test_a_run_whose_runtime_is_for_another_type(
    emulator: Cloud, tpudash: CommandLine, tmp_path: Path
) -> None:
    await waiting(emulator, tmp_path, runtime_version="v2-alpha-tpuv6e")
    row = await first(tpudash, "demo")
    assert (row["check"], row["verdict"]) == ("type-offered", "fail"), row
    assert "v2-alpha-tpuv6e on v2-8" in row["evidence"]


async def waiting(emulator: Cloud, tmp_path: Path, **spec: Any) -> None:
    """Write the records of a run that was begun elsewhere and has no node."""
    world = World(emulator, tmp_path)
    (world.url / "run.json").write_text(json.dumps({**world.spec(), **spec}))
    settings = tmp_path / "state"
    settings.mkdir(exist_ok=True)
    journal = {
        "schema": 1,
        "time": "2026-12-01T00:00:00+00:00",
        "event": "spec",
        "operation": "launch-1",
        "spec": json.dumps({**world.spec(), **spec}),
    }
    (settings / "operations-local.jsonl").write_text(json.dumps(journal) + "\n")


async def test_stock_outs_of_earlier_sessions_are_remembered(
    emulator: Cloud, tpudash: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "bucket").mkdir()
    await emulator.control.add_fault("stock-out", zone=ZONE, accelerator_type="v2-8")
    place = ("--accelerator", "v2-8", "--zone", ZONE, "--bucket", str(tmp_path / "bucket"))
    assert (await tpudash("launch", "demo", *place, "--yes", "--wait")).code == 5
    items = (await tpudash("doctor", "--json")).items
    (row,) = [one for one in items if one["check"] == "zone-history"]
    assert row["verdict"] == "warn"
    assert f"{ZONE}: 1 attempt without capacity" in row["evidence"]
