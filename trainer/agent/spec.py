"""The run's spec, as it stands in the node's metadata key `tpudash-spec`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from trainer.agent.cost_cap import read_amount

SCHEMA = 1
_RUN_NAME = re.compile(r"[a-z](?:[a-z0-9-]{0,38}[a-z0-9])?")


class SpecError(Exception):
    """The spec cannot be used; the text says why, in one line."""


@dataclass(frozen=True)
class Spec:
    """What the agent needs of a spec; `raw` keeps everything, known or not.

    With `validate_first` each attempt begins with the trainer's tests of itself, and ends there if
    one fails.
    """

    run: str
    attempt: int
    run_url: str
    command: tuple[str, ...]
    environment: dict[str, str]
    workers: str
    target_step: int | None
    delete_node_when_done: bool
    raw: dict[str, Any]
    max_cost_usd: float | None = None
    cost_per_hour_usd: float | None = None
    requested: str | None = None
    validate_first: bool = False

    def runs_on(self, worker: int) -> bool:
        """Say whether the recipe's command runs on that worker."""
        return self.workers == "all" or worker == 0


def parse_spec(text: str) -> Spec:
    """Return the spec.

    Raises:
        SpecError: it is no JSON, of a newer schema, or lacks something.
    """
    try:
        raw = json.loads(text)
    except ValueError as error:
        raise SpecError(f"tpudash-spec is not JSON: {error}") from error
    if not isinstance(raw, dict):
        raise SpecError("tpudash-spec is not a JSON object")
    schema = raw.get("schema")
    if not isinstance(schema, int) or schema > SCHEMA:
        raise SpecError(
            f"tpudash-spec has schema {schema!r}; this agent understands up to {SCHEMA}"
        )
    recipe = _member(raw, "recipe", dict)
    run = _member(raw, "run", str)
    if not _RUN_NAME.fullmatch(run):
        raise SpecError(f"run {run!r} is not a valid run name")
    workers = recipe.get("workers", "first")
    if workers not in ("first", "all"):
        raise SpecError(f"recipe.workers {workers!r} is neither first nor all")
    attempt = _member(raw, "attempt", int)
    if attempt < 1:
        raise SpecError(f"attempt {attempt} is not positive")
    target = raw.get("target_step")
    return Spec(
        run=run,
        attempt=attempt,
        run_url=_member(raw, "run_url", str).rstrip("/"),
        command=_command(recipe),
        environment=_environment(recipe),
        workers=workers,
        target_step=target if isinstance(target, int) else None,
        delete_node_when_done=bool(raw.get("delete_node_when_done", False)),
        raw=raw,
        max_cost_usd=read_amount(raw, "max_cost_usd"),
        cost_per_hour_usd=read_amount(raw, "cost_per_hour_usd"),
        validate_first=bool(raw.get("validate_first", False)),
        requested=requested if isinstance(requested := raw.get("attempt_started"), str) else None,
    )


def _member(raw: dict[str, Any], key: str, kind: type) -> Any:
    value = raw.get(key)
    if not isinstance(value, kind) or isinstance(value, bool) or value in ("", {}):
        raise SpecError(f"tpudash-spec: {key} is missing or not {kind.__name__}")
    return value


def _command(recipe: dict[str, Any]) -> tuple[str, ...]:
    command = recipe.get("command")
    if not isinstance(command, list) or not command:
        raise SpecError("tpudash-spec: recipe.command is missing or no list")
    if not all(isinstance(part, str) for part in command):
        raise SpecError("tpudash-spec: recipe.command holds something that is no text")
    return tuple(command)


def _environment(recipe: dict[str, Any]) -> dict[str, str]:
    environment = recipe.get("environment") or {}
    if not isinstance(environment, dict):
        raise SpecError("tpudash-spec: recipe.environment is no object")
    return {str(key): str(value) for key, value in environment.items()}
