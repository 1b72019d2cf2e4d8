"""The copy of the log in the run's folder: whole entries, bounded, kept over agents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.unit.trainer.node import fake_trainer, spec
from tests.unit.trainer.test_agent import FINISHES
from tpudash.domain.log import Severity
from tpudash.pollers.log_archive import parse_archive
from trainer.agent.folders import LocalFolder
from trainer.agent.log_copy import LogCopy, copy_name
from trainer.agent.metadata import NodeIdentity
from trainer.agent.spec import parse_spec

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.trainer.conftest import NodeFactory


def make_copy(folder: Path, worker: int = 0) -> LogCopy:
    node = NodeIdentity(
        project="demo",
        node="demo-2",
        zone="us-central1-b",
        accelerator_type="v2-8",
        worker=worker,
        workers=1,
    )
    value = spec(folder, ["true"])
    return LogCopy(LocalFolder(folder), parse_spec(json.dumps(value)), node, print)


def entry(number: int, **more: object) -> dict[str, object]:
    base = {"ts": "2026-12-01T08:00:00Z", "severity": "INFO", "stream": "stdout"}
    return {**base, "insert_id": f"i-{number}", "text": f"line {number}", **more}


def test_the_console_reads_what_the_agent_left(tmp_path: Path) -> None:
    copy = make_copy(tmp_path)
    copy.keep(entry(1))
    copy.keep(entry(2, severity="DEBUG"))
    copy.keep({**entry(3), "json": {"event": "step", "step": 7}})
    copy.write()
    first, third = parse_archive((tmp_path / copy_name(1, 0)).read_bytes())
    assert (first.text, first.insert_id, first.severity) == ("line 1", "i-1", Severity.INFO)
    assert (first.run, first.attempt) == ("demo", 1)
    assert (first.node_id, first.zone, first.worker_id) == ("demo-2", "us-central1-b", "0")
    assert (third.event, third.payload) == ("step", {"event": "step", "step": 7})


def test_it_is_bounded_and_keeps_the_newest(tmp_path: Path) -> None:
    copy = make_copy(tmp_path, worker=3)
    for number in range(5_000):
        copy.keep(entry(number, text=f"{number} " + "x" * 200))
    copy.write()
    path = tmp_path / copy_name(1, 3)
    assert path.stat().st_size < 512 * 1024
    assert parse_archive(path.read_bytes())[-1].text.startswith("4999 ")


def test_a_later_agent_adds_to_what_an_earlier_one_left(tmp_path: Path) -> None:
    for number in range(2):
        copy = make_copy(tmp_path)
        copy.keep(entry(number))
        copy.write()
        copy.write()
    found = parse_archive((tmp_path / copy_name(1, 0)).read_bytes())
    assert [one.text for one in found] == ["line 0", "line 1"]


def test_an_agent_leaves_its_log(make_node: NodeFactory, run_folder: Path) -> None:
    node = make_node(spec(run_folder, fake_trainer(run_folder, FINISHES)))
    assert node.start().wait(30) == 0, node.console()
    entries = parse_archive((run_folder / "attempts" / "1.log").read_bytes())
    assert [one.event for one in entries if one.event][-1] == "finish"
    assert {"plain text", "warned"} <= {one.text for one in entries}
    assert entries[-1].text.startswith("attempt 1 ended FINISHED")
