"""The command line of a recipe as it runs on this node: what the spec says, and what fits to it."""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainer.agent.metadata import NodeIdentity
    from trainer.agent.spec import Spec

_TRAINERS = frozenset({("-m", "trainer"), ("-m", "trainer.jax_recipe")})
_SERVER = ("-m", "trainer.serve")


def is_trainer(command: Sequence[str]) -> bool:
    """Whether a command is a bundled trainer, which understands more than --model_dir."""
    return bool(_TRAINERS & set(pairwise(command)))


def is_server(command: Sequence[str]) -> bool:
    """Whether a command is the bundled server of models."""
    return _SERVER in pairwise(command)


def full_command(spec: Spec, node: NodeIdentity, *, last_step: int, endpoint: str) -> list[str]:
    """Return the whole command line.

    Args:
        spec: what to run.
        node: where it runs.
        last_step: the last step that an earlier life reported, or -1.
        endpoint: host:port of a local cloud, or "".
    """
    command = list(spec.command)
    if command[0] in ("python", "python3"):
        command[0] = sys.executable
    command += ["--model_dir", spec.run_url]
    trains, serves = is_trainer(spec.command), is_server(spec.command)
    if trains or serves:
        command += ["--run", spec.run, "--attempt", str(spec.attempt), "--stop_on_stdin_eof"]
    if trains:
        command += ["--last_step", str(last_step)]
        if node.accelerator_type and "--accelerator_type" not in command:
            command += ["--accelerator_type", node.accelerator_type]
    if serves and "--host" not in command:
        # A node of a local cloud is a process of this machine and no business of the network's.
        command += ["--host", endpoint.rpartition(":")[0].strip("[]") or "0.0.0.0"]  # noqa: S104
    return command


def full_environment(spec: Spec, node: NodeIdentity, *, last_step: int) -> dict[str, str]:
    """Return the environment of the command: this process's, the spec's, and who and where it is.

    Args:
        spec: the run's spec.
        node: the worker that it runs on.
        last_step: last step that an earlier life reported, or -1.
    """
    return {
        **os.environ,
        "PYTHONUNBUFFERED": "1",
        **spec.environment,
        "TPUDASH_RUN": spec.run,
        "TPUDASH_ATTEMPT": str(spec.attempt),
        "TPUDASH_MODEL_DIR": spec.run_url,
        "TPUDASH_NODE": node.node,
        "TPUDASH_WORKER": str(node.worker),
        "TPUDASH_WORKERS": str(node.workers),
        "TPUDASH_COORDINATOR": node.coordinator,
        "TPUDASH_LAST_STEP": str(last_step),
    }
