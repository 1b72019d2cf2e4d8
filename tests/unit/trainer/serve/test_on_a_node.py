"""A server under the agent: what it is told, and what becomes of the attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.unit.trainer.node import LogServer, record, spec
from trainer.agent.metadata import NodeIdentity
from trainer.agent.recipe_command import full_command
from trainer.agent.spec import parse_spec

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.trainer.conftest import NodeFactory

NODE = NodeIdentity("p", "z", "api-1", 0, "v2-8")
FAKE_SERVER = """
import json, os, sys
def emit(event, **payload):
    print(json.dumps({"ts": "2026-12-01T00:00:00.000Z", "event": event, **payload}), flush=True)
emit("stage", stage="load")
emit("serve", ready=True, requests_per_second=3.0)
word = sys.stdin.readline()
emit("drain", reason=word.strip())
os._exit(75)
"""


def command(folder: Path, endpoint: str, *flags: str) -> list[str]:
    import json

    words = ["python3", "-m", "trainer.serve", "--model", "gs://b/m", *flags]
    parsed = parse_spec(json.dumps(spec(folder, words)))
    return full_command(parsed, NODE, last_step=-1, endpoint=endpoint)[1:]


def test_a_server_listens_on_the_network_only_where_there_is_one(tmp_path: Path) -> None:
    assert command(tmp_path, "")[-2:] == ["--host", "0.0.0.0"]
    assert command(tmp_path, "127.0.0.1:8470")[-2:] == ["--host", "127.0.0.1"]
    assert command(tmp_path, "[::1]:8470")[-2:] == ["--host", "::1"]
    assert command(tmp_path, "", "--host", "10.0.0.2").count("--host") == 1
    assert "--last_step" not in command(tmp_path, "")


def test_a_server_whose_node_goes_is_asked_to_drain_and_is_not_finished(
    make_node: NodeFactory, run_folder: Path, logs: LogServer
) -> None:
    path = run_folder / "server.py"
    path.write_text(FAKE_SERVER)
    words = ["python3", "-u", str(path), "-m", "trainer.serve", "--model", "m"]
    node = make_node(spec(run_folder, words, target_step=None))
    agent: Any = node.start()
    node.wait_state("SERVING")
    node.metadata.set("instance/preempted", "TRUE")
    assert agent.wait(30) == 75, node.console()
    assert record(run_folder)["state"] == "PREEMPTED"
    assert logs.events()[:2] == ["stage", "serve"]
    assert "drain" in logs.events()
