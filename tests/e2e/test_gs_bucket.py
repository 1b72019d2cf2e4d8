"""A run whose bucket is `gs://`: bundle, record and checkpoints by the code paths of the cloud."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.e2e.conftest import ServedEmulator

STEPS = 400
LAUNCH = (
    "--accelerator", "v2-8", "--zone", "us-central1-b", "--spot", "--seed", "7",
    "--steps", str(STEPS), "--checkpoint-every", "40", "--batch-size", "256",
)  # fmt: skip


def read(served: ServedEmulator, path: str) -> Any:
    """Read what the storage face answers to a path of the JSON API."""
    url = f"http://{served.ready['storage_endpoint']}/storage/v1/{path}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


def names_in(served: ServedEmulator, bucket: str, prefix: str) -> list[str]:
    """Return the objects below a prefix, without it."""
    query = urllib.parse.urlencode({"prefix": prefix})
    found = read(served, f"b/{bucket}/o?{query}").get("items", [])
    return [item["name"].removeprefix(prefix) for item in found]


@pytest.mark.slow
@pytest.mark.trains
@pytest.mark.timeout(300)
def test_a_run_in_a_gs_bucket_is_preempted_resumed_and_finished(served: ServedEmulator) -> None:
    terminal, url = served.terminal, served.ready["gs_bucket"]
    bucket, folder = url.removeprefix("gs://"), "tpudash/runs/cloudy/"
    terminal.items("launch", "cloudy", *LAUNCH, "--bucket", url, "--yes")

    def run() -> dict[str, Any]:
        (found,) = [one for one in terminal.items("runs") if one["name"] == "cloudy"]
        return found

    wait_until(lambda: (run()["checkpoint_step"] or 0) >= 40, within=90, what="a checkpoint")
    assert terminal.run("emulator", "preempt", "cloudy-1", "--notice", "10s").returncode == 0
    preempted = run()
    assert preempted["state"] == "PREEMPTED"
    assert preempted["checkpoint_step"] == preempted["step"]
    terminal.items("resume", "cloudy", "--yes", timeout=60)
    wait_until(lambda: run()["state"] == "FINISHED", within=120, what="the run finishes")

    finished = run()
    assert (finished["step"], finished["steps_lost"]) == (STEPS, 0)
    assert finished["attempts"][1]["restored_step"] == preempted["checkpoint_step"]
    names = names_in(served, bucket, folder)
    assert {"run.json", "result.json", "attempts/1.json", "attempts/2.json"} <= set(names)
    assert sum(name.startswith("bundle/") for name in names) == 1, "the same code, sent once"
    assert any(name.startswith(f"checkpoints/ckpt-{STEPS}.") for name in names)
