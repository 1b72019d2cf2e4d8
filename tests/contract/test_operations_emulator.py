"""Operations against the real emulator through the real gateways; the trainer is played by hand."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.emulator_fixture import ZONE, Cloud, eventually, fast_settings, node_name, running_cloud
from tpudash.clock import SystemClock
from tpudash.domain.failure import ErrorClass
from tpudash.domain.operation import LaunchRequest, OperationProgress, OperationState
from tpudash.domain.run import RunState
from tpudash.errors import ExitCode, NotAllowedError, TpudashError, UnreachableError
from tpudash.gateways.connection import Connection, ConnectionOptions
from tpudash.operations.bundle import TrainerBundle
from tpudash.operations.course import Pace
from tpudash.operations.journal import Journal
from tpudash.operations.refusals import RefusedError
from tpudash.operations.service import Operations, OperationsOptions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from tpudash.domain.operation import Plan
    from tpudash.domain.run import Run

TPU = "google.cloud.tpu.v2.Tpu"
IDLE = TrainerBundle(b"no code", "0" * 64, "#!/bin/bash\nexec sleep 600\n")
"""A node that does nothing, so that these tests train nothing."""

QUICK = Pace(first_s=0.02, longest_s=0.1, settle_s=0.5, give_up_s=3.0)
SECOND_ZONE = "us-central1-c"


@dataclass
class Place:
    """An emulator and a state directory, and sessions on them."""

    cloud: Cloud
    folder: Path
    connection: Connection
    reports: list[OperationProgress] = field(default_factory=list)
    sessions: list[Operations] = field(default_factory=list)

    @property
    def bucket(self) -> Path:
        return self.folder / "emulator" / "bucket"

    @property
    def run_folder(self) -> Path:
        return self.bucket / "tpudash/runs/demo"

    def session(self, machine: str = "state") -> Operations:
        """Begin a session; on another machine, of whose settings it has nothing."""
        here = machine == "state"
        operations = Operations(
            self.connection,
            Journal(self.folder / machine, SystemClock()),
            rate=lambda kind, zone, scheduling: 1.35,
            report=self.reports.append,
            owner="alice",
            options=OperationsOptions(
                buckets=(str(self.bucket),) if here else (),
                make_bundle=lambda: IDLE,
                pace=QUICK,
            ),
        )
        self.sessions.append(operations)
        return operations

    def wish(self, zones: Sequence[str] = (ZONE,)) -> LaunchRequest:
        return LaunchRequest(
            run="demo",
            accelerator_type="v2-8",
            zones=tuple(zones),
            bucket=str(self.bucket),
            steps=600,
            checkpoint_every_steps=100,
        )

    async def ended(self, operations: Operations, plan: Plan) -> OperationProgress:
        begun = operations.start(plan)
        await operations._tasks[begun.operation_id]
        return operations._progress[begun.operation_id]

    async def launch(self) -> Operations:
        operations = self.session()
        plan = await operations.plan_launch(self.wish())
        progress = await self.ended(operations, plan)
        assert progress.state is OperationState.DONE, progress
        return operations

    async def run(self) -> Run:
        (found,) = (await self.session()._desk.survey(only="demo")).runs
        return found

    def record(self, attempt: int, **changes: Any) -> dict[str, Any]:
        now = datetime.now(UTC).isoformat()
        return {
            "schema": 1, "run": "demo", "attempt": attempt, "node": f"demo-{attempt}",
            "zone": ZONE, "state": "TRAINING", "started": now, "updated": now, "step": 340,
            "checkpoint_step": 300, "restored_step": 0, "target_step": 600, **changes,
        }  # fmt: skip

    def agent_writes(self, attempt: int, **changes: Any) -> None:
        path = self.run_folder / f"attempts/{attempt}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.record(attempt, **changes)))

    async def nodes(self) -> list[str]:
        listing = await (await self.connection.cloud()).tpu.list_nodes()
        return sorted(node.node_id for node in listing.nodes)

    async def counted(self, method: str) -> int:
        counters = await self.cloud.control.counters()
        return sum(count for name, count in counters.items() if name.endswith(f"/{method}"))


@asynccontextmanager
async def placed(folder: Path, **settings: Any) -> AsyncIterator[Place]:
    async with running_cloud(fast_settings(folder / "emulator", **settings)) as cloud:
        connection = Connection(ConnectionOptions(project="demo", endpoint=cloud.endpoint))
        place = Place(cloud, folder, connection)
        try:
            yield place
        finally:
            for operations in place.sessions:
                await operations.aclose()
            await connection.close()


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with placed(tmp_path) as it:
        yield it


async def test_launch_preempt_resume_delete(place: Place) -> None:
    operations = await place.launch()
    assert await place.nodes() == ["demo-1"]
    place.agent_writes(1)
    assert (await place.run()).state is RunState.TRAINING
    with pytest.raises(RefusedError, match="training at step 340"):
        await operations.plan_resume("demo")

    await place.cloud.control.preempt("demo-1", notice_s=0)
    assert (await place.run()).state is RunState.PREEMPTED
    plan = await operations.plan_resume("demo")
    assert (await place.ended(operations, plan)).state is OperationState.DONE
    assert await place.nodes() == ["demo-2"]
    place.agent_writes(2, restored_step=300, step=310)
    run = await place.run()
    assert (run.state, run.steps_lost, len(run.attempts)) == (RunState.TRAINING, 40, 2)

    plan = await operations.plan_delete(["demo"])
    assert (await place.ended(operations, plan)).state is OperationState.DONE
    assert await place.nodes() == []
    assert (await place.run()).state is RunState.DELETED
    plan = await operations.plan_delete(["demo"])
    assert (await place.ended(operations, plan)).state is OperationState.DONE
    assert await place.counted("CreateNode") == 2
    assert await place.counted("DeleteNode") == 2


async def test_the_node_carries_what_the_plan_showed(place: Place) -> None:
    operations = place.session()
    plan = await operations.plan_launch(place.wish())
    shown = next(step for step in plan.steps if step.call == f"{TPU}/CreateNode").request["node"]
    await place.ended(operations, plan)
    made = await place.cloud.get("demo-1")
    assert dict(made.labels) == shown["labels"]
    assert json.loads(made.metadata["tpudash-spec"]) == shown["metadata"]["tpudash-spec"]
    assert made.scheduling_config.spot
    assert made.metadata["startup-script"] == IDLE.startup_script
    written = json.loads((place.run_folder / "run.json").read_text())
    assert written == json.loads(made.metadata["tpudash-spec"])


async def test_a_run_in_a_gs_bucket_goes_its_whole_way(place: Place) -> None:
    url = "gs://tpudash-emulator"
    operations = place.session()
    request = replace(place.wish(), bucket=url)
    progress = await place.ended(operations, await operations.plan_launch(request))
    assert progress.state is OperationState.DONE, progress
    bucket = (await place.connection.cloud()).bucket
    folder = f"{url}/tpudash/runs/demo"
    spec = json.loads(await bucket.read(f"{folder}/run.json") or b"")
    assert spec["bundle"]["url"] == f"{folder}/bundle/{IDLE.sha256}.tar.gz"
    assert await bucket.read(spec["bundle"]["url"]) == IDLE.data
    assert json.loads((await place.cloud.get("demo-1")).metadata["tpudash-spec"]) == spec

    record = place.record(1)
    await bucket.write(f"{folder}/attempts/1.json", json.dumps(record).encode())
    for ending in ("index", "data-00000-of-00001"):
        await bucket.write(f"{folder}/checkpoints/ckpt-300.{ending}", b"x")
    await place.cloud.control.preempt("demo-1", notice_s=0)
    # Another machine, which has neither this journal nor a bucket in its settings.
    other = place.session("another-machine")
    plan = await other.plan_resume("demo")
    assert "Training goes on from the checkpoint of step 300 towards step 600." in plan.effects
    assert (await place.ended(other, plan)).state is OperationState.DONE
    assert await place.nodes() == ["demo-2"]
    (run,) = (await other._desk.survey(only="demo")).runs
    assert (run.state, len(run.attempts)) == (RunState.RESUMING, 1)
    assert await bucket.list(f"{folder}/bundle") == (spec["bundle"]["url"],)


async def test_a_session_that_is_cut_off_is_taken_up_by_another(tmp_path: Path) -> None:
    async with placed(tmp_path, create_s=0.5) as place:
        first = place.session()
        begun = first.start(await first.plan_launch(place.wish()))
        await eventually(lambda: first._progress[begun.operation_id].steps_done == 2, "asked")
        await first.aclose()

        second = place.session()
        (left,) = second.unfinished()
        assert left.operation_id == begun.operation_id
        second.follow(left.operation_id)
        await second._tasks[left.operation_id]
        assert second._progress[left.operation_id].state is OperationState.DONE
        assert await place.counted("CreateNode") == 1
        assert not second.unfinished()


async def test_an_answer_that_is_lost_on_the_way_makes_no_second_node(place: Place) -> None:
    await place.cloud.control.add_fault("drop", method=f"{TPU}/CreateNode", count=1)
    await place.launch()
    assert await place.counted("CreateNode") == 1
    assert await place.nodes() == ["demo-1"]


async def test_a_stock_out_moves_on_and_says_so(place: Place) -> None:
    visible = await (await place.connection.cloud()).tpu.list_accelerator_types(SECOND_ZONE)
    assert "v2-8" in visible
    await place.cloud.control.set_capacity(ZONE, "v2-8", 0)
    operations = place.session()
    plan = await operations.plan_launch(place.wish((ZONE, SECOND_ZONE)))
    progress = await place.ended(operations, plan)
    assert progress.state is OperationState.DONE
    assert SECOND_ZONE in progress.message
    assert any("no more capacity" in one.message for one in place.reports)


async def test_no_capacity_is_told_with_its_class(place: Place) -> None:
    await place.cloud.control.set_capacity(ZONE, "v2-8", 0)
    operations = place.session()
    progress = await place.ended(operations, await operations.plan_launch(place.wish()))
    assert progress.state is OperationState.FAILED
    assert progress.failure is not None
    assert progress.failure.error_class is ErrorClass.STOCKOUT
    assert await place.nodes() == []
    assert "STOCKOUT" in (await place.run()).reason


async def test_an_operation_that_ends_in_an_error_is_no_doubt(place: Place) -> None:
    fails = {"code": "INTERNAL", "message": "an internal error has occurred", "count": 1}
    await place.cloud.control.add_fault("operation-fails", method="create", **fails)
    operations = place.session()
    progress = await place.ended(operations, await operations.plan_launch(place.wish()))
    assert progress.state is OperationState.FAILED
    assert progress.failure is not None
    assert progress.failure.error_class is ErrorClass.INTERNAL
    assert (await place.run()).state is RunState.FAILED
    assert not operations.unfinished()
    await place.launch()
    await place.cloud.control.add_fault("operation-fails", method="delete", **fails)
    progress = await place.ended(operations, await operations.plan_delete(["demo"]))
    assert progress.state is OperationState.DONE, progress
    assert await place.nodes() == []
    assert await place.counted("DeleteNode") == 2


async def test_a_quota_stops_at_the_call(place: Place) -> None:
    await place.cloud.control.set_quota(ZONE, "TPUV2sPreemptiblePerProjectPerZoneForTPUAPI", 0)
    operations = place.session()
    plan = await operations.plan_launch(place.wish((ZONE, SECOND_ZONE)))
    progress = await place.ended(operations, plan)
    assert progress.failure is not None
    assert progress.failure.error_class is ErrorClass.QUOTA
    assert await place.nodes() == []


async def test_nothing_is_done_while_the_zone_does_not_answer(place: Place) -> None:
    operations = await place.launch()
    place.agent_writes(1)
    await place.cloud.control.preempt("demo-1", notice_s=0)
    await place.cloud.control.add_fault("unreachable-zone", zone=ZONE)
    assert "Unknown" in (await place.run()).reason
    with pytest.raises(UnreachableError):
        await operations.plan_resume("demo")
    await place.cloud.control.clear_faults()
    assert (await operations.plan_resume("demo")).nodes


async def test_an_expired_sign_in_is_never_taken_for_gone(place: Place) -> None:
    operations = await place.launch()
    plan = await operations.plan_delete(["demo"])
    await place.cloud.control.add_fault(
        "error", method=f"{TPU}/GetNode", code="UNAUTHENTICATED", message="expired"
    )
    progress = await place.ended(operations, plan)
    assert progress.state is OperationState.UNKNOWN
    assert await place.counted("DeleteNode") == 0
    assert len(operations.unfinished()) == 1
    await place.cloud.control.add_fault(
        "error", method=f"{TPU}/ListNodes", code="UNAUTHENTICATED", message="expired"
    )
    with pytest.raises(NotAllowedError):
        await operations.plan_resume("demo")


async def test_a_silent_service_is_asked_again_until_it_answers(place: Place) -> None:
    for method in ("GetNode", "DeleteNode"):
        await place.cloud.control.add_fault("error", method=f"{TPU}/{method}", count=2)
    operations = await place.launch()
    await place.cloud.control.add_fault("error", method=f"{TPU}/GetNode", count=4)
    plan = await operations.plan_delete(["demo"])
    assert (await place.ended(operations, plan)).state is OperationState.DONE
    assert await place.nodes() == []


async def test_a_name_that_is_taken_is_told_with_its_owner(place: Place) -> None:
    await place.cloud.create("demo-1", labels={"tpudash-owner": "bob"})
    with pytest.raises(RefusedError) as caught:
        await place.session().plan_launch(place.wish())
    assert "bob" in caught.value.detail


async def test_nodes_are_deleted_by_full_name_whoever_owns_them(place: Place) -> None:
    await place.cloud.create("theirs", labels={"tpudash-owner": "bob"})
    operations = place.session()
    with pytest.raises(RefusedError):
        await operations.plan_delete(["theirs"])
    plan = await operations.plan_delete([node_name("theirs")])
    assert (await place.ended(operations, plan)).state is OperationState.DONE
    assert await place.nodes() == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"accelerator_type": "v2-9"}, ExitCode.USAGE),
        ({"zones": ("us-central1-z",)}, ExitCode.USAGE),
        ({"runtime_version": "nope"}, ExitCode.USAGE),
        ({"run": "Nope"}, ExitCode.USAGE),
        ({"bucket": "/nowhere/at/all"}, ExitCode.NOT_FOUND),
    ],
)
async def test_bad_input_is_refused_within_two_seconds(
    place: Place, changes: dict[str, Any], code: ExitCode
) -> None:
    operations = place.session()
    request = replace(place.wish(), **changes)
    with pytest.raises(TpudashError) as caught:
        async with asyncio.timeout(2):
            await operations.plan_launch(request)
    assert caught.value.exit_code == code
    assert caught.value.hint
    assert await place.counted("CreateNode") == 0
    assert not place.run_folder.exists()


async def test_waiting_ends_with_the_first_step(place: Place) -> None:
    operations = place.session()
    begun = operations.start(await operations.plan_launch(place.wish()))
    waiting = asyncio.create_task(operations.wait(begun.operation_id))
    await eventually(
        lambda: any("not written yet" in one.message for one in place.reports), "READY"
    )
    place.agent_writes(1, state="STARTING", step=None, stage="import")
    await eventually(lambda: any("import" in one.message for one in place.reports), "import")
    assert not waiting.done()
    place.agent_writes(1, step=1)
    progress = await waiting
    assert (progress.state, progress.message) == (OperationState.DONE, "demo trains at step 1")


async def test_waiting_tells_why_a_run_failed(place: Place) -> None:
    operations = place.session()
    begun = operations.start(await operations.plan_launch(place.wish()))
    await operations._tasks[begun.operation_id]
    place.agent_writes(1, state="FAILED", error={"class": "HBM_OOM", "detail": "too much"})
    progress = await operations.wait(begun.operation_id)
    assert progress.state is OperationState.FAILED
    assert progress.failure is not None
    assert progress.failure.error_class is ErrorClass.HBM_OOM
    assert "too much" in progress.failure.evidence


async def test_an_old_record_on_a_ready_node_is_stalled(place: Place) -> None:
    await place.launch()
    place.agent_writes(1, updated=(datetime.now(UTC) - timedelta(minutes=3)).isoformat())
    assert (await place.run()).state is RunState.STALLED
