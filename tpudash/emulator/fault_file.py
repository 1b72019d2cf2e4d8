"""Faults from a file: a list of rules, or an object with `faults`, in JSON or YAML.

Each rule has the fields of the control service's Fault call, e.g.
`{"kind": "stock-out", "zone": "us-central1-b", "after_s": 60, "for_s": 120, "every_s": 600}`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from tpudash.emulator.errors import ApiError
from tpudash.emulator.fault_rules import Fault, parse_fault
from tpudash.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path


def load_faults(path: Path) -> list[Fault]:
    """Read a file of faults.

    Raises:
        ConfigurationError: It cannot be read, or a rule makes no sense; says which.
    """
    try:
        content: Any = yaml.safe_load(path.read_text("utf-8"))  # JSON is YAML too
    except (OSError, UnicodeDecodeError) as error:
        raise _refused(path, getattr(error, "strerror", None) or str(error)) from error
    except yaml.YAMLError as error:
        raise _refused(path, f"neither JSON nor YAML: {' '.join(str(error).split())}") from error
    rules = content
    if isinstance(content, dict):
        unknown = set(content) - {"faults"}
        if unknown:
            raise _refused(path, f"unknown key: {', '.join(sorted(map(str, unknown)))}")
        rules = content.get("faults")
    if not isinstance(rules, list):
        raise _refused(path, "it must hold a list of faults")
    return [_rule(path, number, rule) for number, rule in enumerate(rules, start=1)]


def _rule(path: Path, number: int, rule: object) -> Fault:
    if not isinstance(rule, dict):
        raise _refused(path, f"fault {number}: not an object")
    try:
        return parse_fault({str(key): value for key, value in rule.items()})
    except ApiError as error:
        raise _refused(path, f"fault {number}: {error}") from error


def _refused(path: Path, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"the faults in {path} cannot be used",
        detail=reason,
        hint="each fault has a kind and what it needs; see: tpudash emulator fault --help",
    )
