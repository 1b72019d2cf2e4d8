"""What each event of a trainer must say, whatever its framework."""

from __future__ import annotations

from typing import Any

COMMON = {"ts": str, "seq": int, "run": str, "attempt": int, "event": str, "severity": str}
NUMBER = (int, float)
FIELDS: dict[str, dict[str, Any]] = {
    "start": {"versions": dict, "arguments": dict, "device": dict, "pid": int},
    "stage": {"stage": str},
    "restore": {"step": int, "quarantined": list, "steps_lost": int},
    "step": {
        "step": int,
        "target_step": int,
        "epoch": int,
        "loss": NUMBER,
        "accuracy": NUMBER,
        "examples_per_second": NUMBER,
        "step_time_s": NUMBER,
        "input_wait_fraction": NUMBER,
        "device_fraction": NUMBER,
        "learning_rate": NUMBER,
    },
    "checkpoint": {"step": int, "path": str, "seconds": NUMBER, "bytes": int},
    "eval": {"step": int, "loss": NUMBER, "accuracy": NUMBER, "examples": int},
    "preempt": {"step": int, "reason": str, "seconds": NUMBER},
    "warning": {},
    "finish": {
        "step": int,
        "metrics": dict,
        "export": str,
        "weights_sha256": str,
        "performance": dict,
    },
}


def check_schema(events: dict[str, list[dict[str, Any]]]) -> None:
    """Fail for an event that lacks a field, or has one of another type."""
    everything = [event for kind in events.values() for event in kind]
    assert sorted(event["seq"] for event in everything) == list(range(1, len(everything) + 1))
    for event in everything:
        wanted = {**COMMON, "message": str, **FIELDS.get(event["event"], {})}
        for name, kind in wanted.items():
            assert isinstance(event.get(name), kind), (event["event"], name, event.get(name))
        assert "\n" not in event["message"]
