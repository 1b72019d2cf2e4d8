"""What the agent can be told through its environment, and its exit codes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.agent.runtime_metrics import ADDRESS as RUNTIME_METRICS

if TYPE_CHECKING:
    from collections.abc import Mapping


class AgentExit(IntEnum):
    """How the agent ends; any other code means that it crashed and is to be started again."""

    FINISHED = 0
    FAILED = 65
    STOPPED = 75


@dataclass(frozen=True)
class Settings:
    """The agent's settings; all times in seconds."""

    node_dir: Path = Path("/var/lib/tpudash")
    """Local working directory: spool, lock, process id of the trainer. `TPUDASH_NODE_DIR`."""
    endpoint: str = ""
    """host:port that serves the APIs in plaintext; empty on the real cloud. `TPUDASH_ENDPOINT`."""
    start_deadline_s: float = 300.0
    """Longest silence of the trainer before its first step."""
    stall_s: float = 600.0
    """Longest silence of the trainer after its first step."""
    notice_s: float = 30.0
    """Time between a preemption notice and the end of the node."""
    heartbeat_s: float = 15.0
    """Interval of the host's figures and of the agent's sign of life."""
    roll_call_s: float = 180.0
    """How long the agents of a slice may take to start, one later than another."""
    restarts: int = 3
    """How often the trainer is started again without progress between."""
    backoff_s: float = 2.0
    """Wait before the first restart; doubled each time."""
    spool_bytes: int = 16 * 2**20
    """Most disk space for log entries that could not be sent."""
    self_check_s: float = 120.0
    """Longest time for the trainer's tests of itself after a failure; 0 for none."""
    flush_s: float = 0.5
    """Interval at which log entries are sent."""
    runtime_metrics: str = RUNTIME_METRICS
    """host:port where libtpu serves figures of the chips. `TPUDASH_AGENT_RUNTIME_METRICS`."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Read the settings.

        Raises:
            ValueError: a value is no number.
        """

        def number(name: str, default: float) -> float:
            text = environment.get(f"TPUDASH_AGENT_{name}", "")
            return float(text) if text else default

        return cls(
            node_dir=Path(environment.get("TPUDASH_NODE_DIR") or cls.node_dir),
            endpoint=environment.get("TPUDASH_ENDPOINT", ""),
            start_deadline_s=number("START_DEADLINE_S", cls.start_deadline_s),
            stall_s=number("STALL_S", cls.stall_s),
            notice_s=number("NOTICE_S", cls.notice_s),
            heartbeat_s=number("HEARTBEAT_S", cls.heartbeat_s),
            roll_call_s=number("ROLL_CALL_S", cls.roll_call_s),
            restarts=int(number("RESTARTS", cls.restarts)),
            backoff_s=number("BACKOFF_S", cls.backoff_s),
            spool_bytes=int(number("SPOOL_BYTES", cls.spool_bytes)),
            self_check_s=number("SELF_CHECK_S", cls.self_check_s),
            flush_s=number("FLUSH_S", cls.flush_s),
            runtime_metrics=environment.get("TPUDASH_AGENT_RUNTIME_METRICS") or cls.runtime_metrics,
        )
