"""The startup script under bash, with a bundle in a local folder."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.trainer.node import REPOSITORY, LogServer, fake_trainer, record, spec
from tests.unit.trainer.test_agent import FINISHES, TRAINS_FOREVER
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.trainer.conftest import Node, NodeFactory

SCRIPT = REPOSITORY / "trainer" / "startup.sh"


def bundle(folder: Path) -> dict[str, str]:
    """Make a bundle of the trainer and return its part of the spec."""
    path = folder / "bundle.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(REPOSITORY / "trainer", "trainer")
    return {"url": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def start_script(node: Node, **environment: str) -> subprocess.Popen[bytes]:
    """Run the script as a node does at boot."""
    node.dir.mkdir(exist_ok=True)
    tools = node.dir / "image"
    tools.mkdir(exist_ok=True)
    if not (tools / "python3").exists():
        (tools / "python3").write_text(f'#!/bin/bash\nexec {sys.executable} "$@"\n')
        (tools / "python3").chmod(0o755)
    script = node.dir / "startup-script"
    script.write_text(SCRIPT.read_text())
    with (node.dir / "console.log").open("ab") as console:
        return subprocess.Popen(
            ["bash", str(script)],
            cwd=node.dir,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            start_new_session=True,
            env={
                "PATH": f"{tools}:{os.environ['PATH']}",
                "HOME": str(node.dir),
                "GCE_METADATA_HOST": node.metadata.host,
                "TPUDASH_ENDPOINT": f"127.0.0.1:{node.logs.port}",
                "TPUDASH_NODE_DIR": str(node.dir),
                "TPUDASH_AGENT_FLUSH_S": "0.1",
                **environment,
            },
        )


def run_spec(folder: Path, body: str, **changes: Any) -> dict[str, Any]:
    """Return a spec with a bundle whose recipe runs a fake trainer."""
    return spec(folder, fake_trainer(folder, body), bundle=bundle(folder), **changes)


def test_script_runs_the_agent_from_the_bundle_to_the_end(
    make_node: NodeFactory, run_folder: Path, logs: LogServer
) -> None:
    node = make_node(run_spec(run_folder, FINISHES))
    assert start_script(node).wait(60) == 0, node.console()
    assert record(run_folder)["state"] == "FINISHED", node.console()
    assert "startup script begins" in node.console().splitlines()[0]
    assert any("unpacked the bundle" in line for line in logs.texts("startup"))
    assert start_script(node).wait(60) == 0
    assert "the bundle is already here" in node.console()
    assert (run_folder / "lives").read_text() == "x"
    assert not (node.dir / "startup.lock").exists()


def test_script_passes_sigterm_on_and_waits(make_node: NodeFactory, run_folder: Path) -> None:
    node = make_node(run_spec(run_folder, TRAINS_FOREVER))
    script = start_script(node)
    node.wait_state("TRAINING")
    os.killpg(script.pid, signal.SIGTERM)
    assert script.wait(20) == 0, node.console()
    assert record(run_folder)["state"] == "PREEMPTED"
    assert "the agent stopped" in node.console()


def test_script_starts_a_killed_agent_again(make_node: NodeFactory, run_folder: Path) -> None:
    node = make_node(run_spec(run_folder, TRAINS_FOREVER))
    script = start_script(node)
    node.wait_state("TRAINING")
    assert start_script(node).wait(20) == 0
    assert "another startup script runs" in node.console()
    agent = next(
        child for child in _children(script.pid) if "trainer.agent" in " ".join(child.cmdline())
    )
    agent.kill()
    wait_until(
        lambda: (run_folder / "lives").read_text() == "xx", within=40, what="a second trainer"
    )
    assert (run_folder / "stopped").read_text() == "eof"
    node.wait_state("TRAINING")
    os.killpg(script.pid, signal.SIGTERM)
    assert script.wait(20) == 0


def test_script_refuses_a_bundle_with_another_sum(make_node: NodeFactory, run_folder: Path) -> None:
    wrong = run_spec(run_folder, FINISHES)
    wrong["bundle"]["sha256"] = "0" * 64
    node = make_node(wrong)
    assert start_script(node).wait(60) == 1
    assert "BUCKET_ACCESS: the bundle" in node.console()
    assert not (run_folder / "lives").exists()


def _children(pid: int) -> list[Any]:
    import psutil

    return list(psutil.Process(pid).children(recursive=True))


PACKAGES = {
    ("tensorflow-mnist", "tpu", "1"): ["tensorflow-tpu==2.19.1"],
    ("tensorflow-mnist", "cpu", "1"): ["tensorflow-cpu>=2.18,<2.22"],
    ("tensorflow-mnist", "tpu", "4"): ["google-api-python-client"],
    ("jax-mnist", "tpu", "4"): ["jax[tpu]>=0.6,<0.11", "-f", "orbax-checkpoint>=0.11.10"],
    ("jax-mnist", "cpu", "1"): ["jax>=0.6,<0.11", "optax>=0.2.4"],
    ("custom", "any", "1"): [],
}


@pytest.mark.parametrize(("recipe", "kind", "workers"), PACKAGES)
def test_script_installs_what_the_recipe_wants(
    tmp_path: Path, recipe: str, kind: str, workers: str
) -> None:
    """On a real TPU VM, with a pip that only says what it was asked for."""
    python = tmp_path / "bin/python3"
    python.parent.mkdir()
    python.write_text(
        "#!/bin/bash\n"
        'bin="${@: -1}/bin"\n'
        'if [ "$2" = venv ]; then mkdir -p "$bin"; cp "$0" "$bin/python3"; exit; fi\n'
        f'if [ "$2" = pip ]; then printf "%s\\n" "$@" > {tmp_path}/asked; exit; fi\n'
        f'if [ "$1" = - ] && [ "$2" = {kind} ]; then exit 1; fi\n'
        f'exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    (tmp_path / "spec.json").write_text(json.dumps({"recipe": {"name": recipe}}))
    functions = SCRIPT.read_text().partition('mkdir -p "$NODE_DIR"')[0]
    steps = f'say() {{ :; }}\nPYTHON={python}\nWORKERS={workers}\nFRAMEWORK="$(framework)"\n'
    done = subprocess.run(
        ["bash", "-c", f"{functions}\n{steps}install_packages {kind}"],
        env={"PATH": f"{python.parent}:{os.environ['PATH']}", "TPUDASH_NODE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    asked = (tmp_path / "asked").read_text().splitlines()
    assert set(PACKAGES[recipe, kind, workers]) <= set(asked)
    assert "google-cloud-logging" in asked
    others = {"tensorflow-mnist": "jax", "jax-mnist": "tensorflow", "custom": "jax"}
    assert not any(word.startswith(others[recipe]) for word in asked)
