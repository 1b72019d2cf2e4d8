"""The agent as a process, with a small fake trainer, a metadata server and a log server."""

from __future__ import annotations

import json
import signal
import socket
from typing import TYPE_CHECKING, Any

import psutil

from tests.unit.trainer.node import LogServer, fake_trainer, record, spec
from tests.unit.trainer.test_runtime_metrics import served, tell
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.unit.trainer.conftest import NodeFactory

TRAINS_FOREVER = """
emit("start"); emit("stage", stage="import"); emit("restore", step=0, path=None, quarantined=[])
n = 0
while True:
    n += 1
    emit("step", step=n, target_step=10, loss=1.0 / n, accuracy=0.5, examples_per_second=9.0)
    time.sleep(0.05)
"""
FINISHES = """
emit("start"); emit("stage", stage="trace")
emit("restore", step=4, path="p", quarantined=["ckpt-6"], steps_lost=2)
print("plain text"); sys.stderr.write("warned\\n")
emit("step", step=10, target_step=10, loss=0.25, accuracy=0.9, examples_per_second=9.0)
emit("checkpoint", step=10)
emit("finish", step=10, metrics={"eval_accuracy": 0.8, "weights_sha256": "ab"}, export="e")
"""


def test_finished_run_leaves_result_record_and_logs(
    make_node: NodeFactory, run_folder: Path, logs: LogServer
) -> None:
    node = make_node(spec(run_folder, fake_trainer(run_folder, FINISHES)))
    assert node.start().wait(30) == 0, node.console()
    final = record(run_folder)
    assert final["state"] == "FINISHED"
    assert (final["restored_step"], final["steps_lost"], final["checkpoint_step"]) == (4, 2, 10)
    assert final["quarantined"] == ["ckpt-6"]
    assert final["exit_code"] == 0
    assert final["ended"].endswith("Z")
    result = json.loads((run_folder / "result.json").read_text())
    assert result["metrics"] == {
        "loss": 0.25,
        "accuracy": 0.9,
        "eval_accuracy": 0.8,
        "weights_sha256": "ab",
    }
    assert json.loads((run_folder / "run.json").read_text())["run"] == "demo"
    assert logs.events() == ["start", "stage", "restore", "step", "checkpoint", "finish"]
    assert logs.texts("stdout") == ["plain text"]
    assert logs.texts("stderr") == ["warned"]
    request = logs.requests[0]
    assert request.log_name == "projects/demo-project/logs/tpudash"
    assert request.resource.type == "tpu_worker"
    assert dict(request.resource.labels)["node_id"] == "demo-1"
    assert dict(logs.entries[0].labels)["tpudash-attempt"] == "1"
    assert len({entry.insert_id for entry in logs.entries}) == len(logs.entries)


def test_finished_attempt_is_not_run_again(make_node: NodeFactory, run_folder: Path) -> None:
    node = make_node(spec(run_folder, fake_trainer(run_folder, FINISHES)))
    assert node.start().wait(30) == 0
    assert node.start().wait(30) == 0
    assert (run_folder / "lives").read_text() == "x"


def test_preemption_notice_saves_and_records(
    make_node: NodeFactory, run_folder: Path, logs: LogServer
) -> None:
    node = make_node(spec(run_folder, fake_trainer(run_folder, TRAINS_FOREVER)))
    agent = node.start()
    node.wait_state("TRAINING")
    node.metadata.set("instance/preempted", "TRUE")
    assert agent.wait(20) == 75
    final = record(run_folder)
    assert (final["state"], final["exit_code"]) == ("PREEMPTED", 75)
    assert (run_folder / "stopped").read_text() == "stop the node is being preempted"
    assert logs.events()[-1] == "preempt"


def test_sigterm_of_the_agent_saves_and_records(make_node: NodeFactory, run_folder: Path) -> None:
    node = make_node(spec(run_folder, fake_trainer(run_folder, TRAINS_FOREVER)))
    agent = node.start()
    node.wait_state("TRAINING")
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(20) == 75
    assert record(run_folder)["state"] == "PREEMPTED"
    assert (run_folder / "stopped").read_text() == "stop SIGTERM"


def test_other_recipe_is_asked_by_sigterm(make_node: NodeFactory, run_folder: Path) -> None:
    command = fake_trainer(run_folder, TRAINS_FOREVER)[:-2]
    node = make_node(spec(run_folder, command))
    agent = node.start()
    node.wait_state("TRAINING")
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(20) == 75
    assert (run_folder / "stopped").read_text() == "SIGTERM"


def test_trainer_that_ignores_the_notice_is_killed_in_time(
    make_node: NodeFactory, run_folder: Path
) -> None:
    stubborn = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + TRAINS_FOREVER
    node = make_node(spec(run_folder, fake_trainer(run_folder, stubborn)[:-2]))
    agent = node.start(notice_s=6)
    node.wait_state("TRAINING")
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(20) == 75
    assert record(run_folder)["exit_code"] == -signal.SIGKILL


def test_killed_trainer_is_started_again(make_node: NodeFactory, run_folder: Path) -> None:
    body = "if life == 1:\n    emit('step', step=7)\n    os.kill(os.getpid(), 9)\n" + FINISHES
    node = make_node(spec(run_folder, fake_trainer(run_folder, body)))
    assert node.start().wait(30) == 0, node.console()
    assert record(run_folder)["restarts"] == 1
    assert (run_folder / "lives").read_text() == "xx"


def test_restarts_without_progress_are_bounded(make_node: NodeFactory, run_folder: Path) -> None:
    body = "emit('start'); os.kill(os.getpid(), 9)"
    node = make_node(spec(run_folder, fake_trainer(run_folder, body)))
    assert node.start(restarts=2).wait(30) == 65
    final = record(run_folder)
    assert (final["state"], final["restarts"]) == ("FAILED", 2)
    assert final["error"]["class"] == "HOST_OOM"


def test_fatal_exit_code_is_not_retried(make_node: NodeFactory, run_folder: Path) -> None:
    body = (
        "emit('error', detail='bad', hint='fix', **{'class': 'BAD_REQUEST'}); sys.stdout.flush()\n"
        "os._exit(64)"
    )
    node = make_node(spec(run_folder, fake_trainer(run_folder, body)))
    assert node.start().wait(30) == 65
    final = record(run_folder)
    assert (final["state"], final["exit_code"], final["restarts"]) == ("FAILED", 64, 0)
    assert final["error"] == {"class": "BAD_REQUEST", "detail": "bad", "hint": "fix"}


def test_abort_is_classified_from_stderr(make_node: NodeFactory, run_folder: Path) -> None:
    body = (
        "sys.stderr.write('F ConfigureDistributedTpuOp_DoWork not available in this library.\\n')\n"
        "sys.stderr.flush(); os.abort()"
    )
    node = make_node(spec(run_folder, fake_trainer(run_folder, body)))
    assert node.start().wait(30) == 65
    assert record(run_folder)["error"]["class"] == "VERSION"


def test_silent_start_is_stalled(make_node: NodeFactory, run_folder: Path, logs: LogServer) -> None:
    body = "emit('stage', stage='tpu_init')\nwhile True: time.sleep(1)"
    node = make_node(spec(run_folder, fake_trainer(run_folder, body)))
    assert node.start(start_deadline_s=0.5, restarts=0).wait(40) == 65
    assert record(run_folder)["error"]["class"] == "STALLED"
    classes = [entry.json_payload.get("class") for entry in logs.entries if entry.severity == 500]
    assert "STALLED" in classes


def test_killed_agent_stops_the_trainer_and_the_next_one_continues(
    make_node: NodeFactory, run_folder: Path
) -> None:
    body = "if life > 1:\n    " + FINISHES.strip().replace("\n", "\n    ") + "\n    sys.exit(0)\n"
    node = make_node(spec(run_folder, fake_trainer(run_folder, body + TRAINS_FOREVER)))
    agent = node.start()
    node.wait_state("TRAINING")
    trainer = psutil.Process(node.trainer_pid())
    agent.kill()
    agent.wait()
    wait_until(lambda: not trainer.is_running(), within=15, what="the trainer ends")
    assert (run_folder / "stopped").read_text() == "eof"
    assert node.start().wait(30) == 0, node.console()
    assert "continuing attempt 1" in node.console()
    names = sorted(path.name for path in (run_folder / "attempts").iterdir())
    assert names == ["1.json", "1.log"]


def test_second_agent_on_a_node_does_nothing(make_node: NodeFactory, run_folder: Path) -> None:
    node = make_node(spec(run_folder, fake_trainer(run_folder, TRAINS_FOREVER)))
    node.start()
    node.wait_state("TRAINING")
    assert node.start().wait(20) == 1
    assert (run_folder / "lives").read_text() == "x"


def test_dead_log_endpoint_spools_and_delivers_later(
    make_node: NodeFactory, run_folder: Path
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{free.getsockname()[1]}"
    node = make_node(spec(run_folder, fake_trainer(run_folder, FINISHES)))
    assert node.start(endpoint).wait(40) == 0
    spool = node.dir / "log-spool.jsonl"
    assert '"finish"' in spool.read_text()
    server = LogServer(endpoint)
    try:
        assert node.start(endpoint).wait(30) == 0
        assert server.events()[-1] == "finish"
        assert spool.read_text() == ""
    finally:
        server.close()


def test_corrupt_files_are_set_aside(make_node: NodeFactory, run_folder: Path) -> None:
    (run_folder / "attempts").mkdir()
    (run_folder / "run.json").write_text("{torn")
    (run_folder / "attempts" / "1.json").write_text("[]")
    node = make_node(spec(run_folder, fake_trainer(run_folder, FINISHES)))
    assert node.start().wait(30) == 0
    assert (run_folder / "run.json.corrupt-1").read_text() == "{torn"
    assert (run_folder / "attempts" / "1.json.corrupt-1").read_text() == "[]"
    assert "run.json is corrupt" in node.console()
    assert json.loads((run_folder / "run.json").read_text())["attempt"] == 1


def test_earlier_attempt_tells_the_last_step(make_node: NodeFactory, run_folder: Path) -> None:
    (run_folder / "attempts").mkdir()
    (run_folder / "attempts" / "1.json").write_text(json.dumps({"schema": 1, "step": 42}))
    body = "open(os.path.join(folder, 'last'), 'w').write(arguments['--last_step'])\n" + FINISHES
    node = make_node(spec(run_folder, fake_trainer(run_folder, body), attempt=2))
    assert node.start().wait(30) == 0
    assert (run_folder / "last").read_text() == "42"


def test_node_of_an_older_attempt_stands_back(make_node: NodeFactory, run_folder: Path) -> None:
    (run_folder / "run.json").write_text(json.dumps({"schema": 1, "run": "demo", "attempt": 3}))
    node = make_node(spec(run_folder, fake_trainer(run_folder, FINISHES), attempt=2))
    assert node.start().wait(30) == 65
    assert not (run_folder / "lives").exists()
    assert "attempt 3 of demo exists" in node.console()


def test_other_workers_stand_by(make_node: NodeFactory, run_folder: Path, logs: LogServer) -> None:
    node = make_node(spec(run_folder, fake_trainer(run_folder, TRAINS_FOREVER)), 2)

    def beats() -> list[dict[str, Any]]:
        payloads = [dict(entry.json_payload or {}) for entry in logs.entries]
        return [one for one in payloads if one.get("event") == "host" and one.get("chips")]

    with served(lambda _, response, __: tell(response, 7.0)) as libtpu:
        agent = node.start(heartbeat_s=0.2, runtime_metrics=libtpu)
        wait_until(beats, within=20, what="a heartbeat with the chips' figures")
        agent.send_signal(signal.SIGTERM)
        assert agent.wait(20) == 75
    assert dict(beats()[0]["chips"][0])["duty_cycle_percent"] == 7.0
    vm = (beats()[0]["instance"], beats()[0]["instance_id"])
    assert vm == ("t1v-n-5db23080-w-2", "8123456782"), "so that the node's metrics are joined"
    assert not (run_folder / "lives").exists()
    written = {path.name for path in (run_folder / "attempts").iterdir()}
    assert written == {"1.2.log", "1.worker-2"}, "no record, but a sign that it is there"
    assert dict(logs.requests[0].resource.labels)["worker_id"] == "2"


def test_bad_spec_is_refused_in_a_line(make_node: NodeFactory, run_folder: Path) -> None:
    node = make_node(spec(run_folder, ["true"], schema=2))
    assert node.start().wait(20) == 65
    assert "schema 2; this agent understands up to 1" in node.console()


def test_agent_needs_no_google_package(
    run_folder: Path, make_node: NodeFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = make_node(spec(run_folder, fake_trainer(run_folder, FINISHES)))
    hidden = node.dir / "hidden"
    (hidden / "google" / "api_core").mkdir(parents=True)
    for package in (hidden / "google", hidden / "google" / "api_core"):
        (package / "__init__.py").write_text("raise ImportError('hidden')")
    monkeypatch.setenv("PYTHONPATH", str(hidden))
    assert node.start().wait(30) == 0, node.console()
    assert "google-cloud-logging is not installed" in node.console()
    assert '"finish"' in (node.dir / "log-spool.jsonl").read_text()


def test_strange_output_harms_nothing(
    make_node: NodeFactory, run_folder: Path, logs: LogServer
) -> None:
    body = (
        r"""
os.write(1, b'{"event": "step", "step": 1, "loss": NaN, "target_step": 10}\n')
os.write(1, b'{"event": "step", "step": "x"}\n{"event": "restore", "quarantined": 5}\n')
os.write(1, b'{"event": 3}\n{"event": "take"}\n{"event": "odd", "a": "\\ud800"}\n{broken\n')
os.write(1, b'\xff\xfe bytes\n' + b'y' * 200000 + b'\n')
"""
        + FINISHES
    )
    node = make_node(spec(run_folder, fake_trainer(run_folder, body)))
    assert node.start().wait(30) == 0, node.console()
    assert record(run_folder)["state"] == "FINISHED"
    assert logs.events()[-1] == "finish"
    texts = logs.texts("stdout")
    assert "{broken" in texts
    assert max(len(text) for text in texts) <= 16_000


def test_node_is_deleted_when_the_run_asks_for_it(
    make_node: NodeFactory, run_folder: Path, logs: LogServer
) -> None:
    command = fake_trainer(run_folder, FINISHES)
    node = make_node(spec(run_folder, command, delete_node_when_done=True))
    assert node.start().wait(30) == 0, node.console()
    assert logs.deleted == ["projects/demo-project/locations/us-central1-b/nodes/demo-1"]


def test_node_of_another_run_is_left_alone(
    make_node: NodeFactory, run_folder: Path, logs: LogServer
) -> None:
    logs.node_labels = {"tpudash-run": "other"}
    command = fake_trainer(run_folder, FINISHES)
    node = make_node(spec(run_folder, command, delete_node_when_done=True))
    assert node.start().wait(30) == 0
    assert logs.deleted == []
    assert "not labelled with the run demo" in node.console()
