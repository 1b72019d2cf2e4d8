"""The monitored resources of Cloud TPU and of its audit log, by type, with their labels."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any


def load_metrics_table() -> dict[str, Any]:
    """Return the bundled table of metrics and resources."""
    text = resources.files("tpudash.emulator").joinpath("data/metrics.json").read_text("utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


def _load() -> dict[str, tuple[str, ...]]:
    table = load_metrics_table()
    known = {
        name: tuple(row["labels"]) for name, row in table["resources"].items() if "labels" in row
    }
    return {**known, "gce_instance": ("project_id", "instance_id", "zone")}


MONITORED_RESOURCES = _load()
