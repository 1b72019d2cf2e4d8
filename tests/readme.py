"""Regenerates what the README shows of the product: `python -m tests.readme`.

The picture is the real console over a store filled by hand, at a fixed time; the tables come from
the registries that the product itself uses.
"""

from __future__ import annotations

import asyncio
import math
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from tests.tui.conftest import run_console_under_test
from tests.tui.factories import (
    NOW,
    ZONE,
    add_logs,
    connect,
    list_nodes,
    list_requests,
    make_attempt,
    make_entry,
    make_node,
    make_request,
    make_run,
    read_runs,
    report_source,
)
from tpudash.config.themes import find_theme
from tpudash.domain.finding import Finding, Verdict
from tpudash.domain.metric import MetricPoint, MetricSeries
from tpudash.domain.node import Scheduling
from tpudash.domain.run import RunState
from tpudash.store.changes import FindingsMade, SeriesRead
from tpudash.store.snapshot import SOURCES
from tpudash.store.store import Store
from tpudash.tui.settings import ConsoleSettings

if TYPE_CHECKING:
    from tpudash.domain.log import LogEntry

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PICTURE = ROOT / ".github" / "console.svg"
SIZE = (158, 44)
STEPS = 600


def tables() -> dict[str, str]:
    """Return the generated parts of the README by the name of their marker."""
    from tpudash.tui.actions import keys_table

    return {"keys": keys_table()}


def with_tables(text: str) -> str:
    """Return the README's text with every generated part as it should be."""
    for name, table in tables().items():
        begin, end = f"<!-- {name}: generated -->", f"<!-- {name}: end -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if not pattern.search(text):
            msg = f"README.md has no part {begin} ... {end}"
            raise ValueError(msg)
        body = f"{begin}\n{table.strip()}\n{end}"
        text = pattern.sub(lambda _, body=body: body, text)  # type: ignore[misc]
    return text


def make_picture_world() -> Store:
    """A morning's work: one run training, one preempted, one node that nobody uses."""
    store = Store()
    connect(store)
    begun = NOW - timedelta(minutes=9)
    demo, vision = make_node("demo-1", create_time=begun), make_node("vision-1", run="vision")
    stray = make_node("stray", run=None, scheduling=Scheduling.ON_DEMAND)
    list_nodes(store, demo, vision, stray, at=begun)
    vision = replace(vision, state="PREEMPTED")
    list_nodes(store, demo, vision, stray, at=NOW - timedelta(minutes=4))
    list_requests(store, make_request())
    attempt = make_attempt(state="TRAINING", started=begun, step=410, checkpoint_step=400)
    lost = make_attempt(
        run="vision", state="PREEMPTED", started=begun, ended=NOW - timedelta(minutes=4)
    )
    read_runs(
        store,
        make_run(
            reason="It trains on node demo-1 (last heard 0 s ago at step 410).",
            attempts=(attempt,),
            step=410,
            checkpoint_step=400,
            loss=0.0812,
            examples_per_second=3_120.0,
        ),
        make_run("vision", RunState.PREEMPTED, step=320, checkpoint_step=300, attempts=(lost,)),
    )
    for source in SOURCES:
        report_source(store, source)
    for step in range(5, 411, 5):
        add_logs(store, step_entry(step))
        if step % 100 == 0:
            add_logs(store, checkpoint_entry(step))
    points = tuple(
        MetricPoint(NOW - timedelta(seconds=20 * back), 78 + 9 * math.sin(back))
        for back in range(25, -1, -1)
    )
    kinds = ("accelerator/duty_cycle", "cpu/utilization")
    series = (
        MetricSeries(f"tpu.googleapis.com/{kind}", "demo-1", ZONE, "0", "%", points)
        for kind in kinds
    )
    store.apply(SeriesRead(tuple(series), NOW))
    store.apply(FindingsMade(picture_findings()))
    return store


def checkpoint_entry(step: int) -> LogEntry:
    """Return the log entry of one checkpoint."""
    path = f"gs://my-bucket/tpudash/runs/demo/checkpoints/ckpt-{step}"
    payload = {
        "event": "checkpoint", "step": step, "path": path, "seconds": 0.08, "bytes": 1_469_208,
    }  # fmt: skip
    return make_entry(
        step * 1.3 - 532, f"saved step {step}", stream="event", payload=payload, attempt=1
    )


def step_entry(step: int) -> LogEntry:
    """Return the log entry of one training step."""
    loss = 2.3 * math.exp(-step / 60) + 0.08 + 0.02 * math.sin(step)
    payload = {
        "event": "step",
        "step": step,
        "target_step": STEPS,
        "loss": loss,
        "accuracy": 1 - loss / 2.6,
        "examples_per_second": 3_000 + 160 * math.sin(step),
        "step_time_s": 0.082,
        "input_wait_fraction": 0.03 + 0.01 * math.sin(step / 9),
    }
    return make_entry(
        step * 1.3 - 533, f"step {step}/{STEPS}", stream="event", payload=payload, attempt=1
    )


def picture_findings() -> tuple[Finding, ...]:
    """Return the rows of the checklist that fit the picture's world."""
    return (
        Finding(
            "run-has-node",
            "Run has a living node",
            Verdict.FAIL,
            "vision-1 is PREEMPTED; the newest checkpoint is at step 300, 20 steps are lost.",
            subject="vision",
            advice="Resume it: R.",
            action="resume",
            as_of=NOW,
        ),
        Finding(
            "node-has-run",
            "Node belongs to a run",
            Verdict.WARN,
            "stray is READY and belongs to no run; it costs $4.50/h.",
            subject="stray",
            action="delete",
            as_of=NOW,
        ),
        Finding("sources", "Google's services answer", Verdict.PASS, "all answered", as_of=NOW),
        Finding("progress", "Run is making progress", Verdict.PASS, "", subject="demo", as_of=NOW),
    )


async def draw() -> str:
    """Return the console's picture as SVG."""
    settings = ConsoleSettings(project="demo", theme="dark", themes=(find_theme("dark"),))
    world = make_picture_world()
    async with run_console_under_test(world, size=SIZE, settings=settings) as console:
        await console.until(lambda: "demo" in console.screen_text)
        return console.app.export_screenshot(title="tpudash")


def main() -> None:
    """Write the picture and the tables."""
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(asyncio.run(draw()), "utf-8")
    README.write_text(with_tables(README.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
