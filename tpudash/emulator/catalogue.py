"""What the cloud offers: accelerator types, zones and runtime versions, read from data files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

_TENSORFLOW_PREFIX = "tpu-vm-tf-"
PLAIN_RUNTIMES = ("tpu-ubuntu2204-base", "tpu-vm-base")
"""Images without a framework, in every zone; many scripts in the field still name the older."""


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One accelerator type; counts are whole slices unless said otherwise."""

    name: str
    generation: str
    chips: int
    cores: int
    hosts: int
    chips_per_host: int
    topology: str
    zones: frozenset[str]

    @property
    def multi_host(self) -> bool:
        """Whether the slice spans more than one TPU VM."""
        return self.hosts > 1


@dataclass(frozen=True, slots=True)
class Generation:
    """One TPU generation."""

    name: str
    api_type: int
    """Value of AcceleratorConfig.Type in `google.cloud.tpu.v2`."""

    counts_cores: bool
    """Whether type names and quotas count TensorCores; else chips."""


_API_TYPES = {"V2": 2, "V3": 4, "V4": 7, "V5LITE_POD": 9, "V5P": 10, "V6E": 11}


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Everything on offer, by name."""

    accelerators: dict[str, Accelerator]
    generations: dict[str, Generation]
    zones: tuple[str, ...]
    runtimes: dict[str, tuple[str, ...]]
    """Runtime versions by zone."""

    def accelerators_in(self, zone: str) -> list[Accelerator]:
        """Return the accelerator types that a zone lists, in table order."""
        return [item for item in self.accelerators.values() if zone in item.zones]

    def find_by_topology(self, api_type: int, topology: str, zone: str) -> Accelerator | None:
        """Return the type that an AcceleratorConfig names, or None."""
        for item in self.accelerators_in(zone):
            generation = self.generations[item.generation]
            if generation.api_type == api_type and item.topology == topology:
                return item
        return None


def needs_tensorflow(runtime_version: str) -> bool:
    """Return whether an image is one with TensorFlow installed."""
    return runtime_version.startswith(_TENSORFLOW_PREFIX)


def _tensorflow_runtimes(table: dict[str, Any]) -> list[str]:
    """List the TensorFlow images; an image for pods has a sibling for single hosts."""
    names = [*table["tensorflow_documented"], *table["tensorflow_seen_in_public_projects"]]
    siblings = [name.replace("-pod", "") for name in names if "-pod" in name]
    return sorted({*names, *siblings})


def _offered(runtime: str, generations: set[str]) -> bool:
    if runtime.endswith("-v5e-and-v6"):
        return bool(generations & {"v5e", "v6e"})
    if runtime.endswith("-v4"):
        return "v4" in generations
    if runtime.endswith("-v5p-and-below"):
        return bool(generations & {"v2", "v3", "v4", "v5p"})
    return True


def _runtimes_by_zone(
    accelerators: dict[str, Accelerator], zones: tuple[str, ...], table: dict[str, Any]
) -> dict[str, tuple[str, ...]]:
    tensorflow = _tensorflow_runtimes(table)
    by_zone = {}
    for zone in zones:
        generations = {item.generation for item in accelerators.values() if zone in item.zones}
        names = {name for name in tensorflow if _offered(name, generations)}
        names |= {table["pytorch_jax"][name] for name in generations}
        by_zone[zone] = tuple(sorted({*names, *PLAIN_RUNTIMES}))
    return by_zone


@cache
def load_catalogue() -> Catalogue:
    """Read the bundled tables."""
    text = resources.files("tpudash.domain").joinpath("data/accelerators.json").read_text("utf-8")
    data = json.loads(text)
    accelerators = {}
    for row in data["types"]:
        accelerators[row["name"]] = Accelerator(
            name=row["name"],
            generation=row["generation"],
            chips=row["chips"],
            cores=row["cores"],
            hosts=row["hosts"],
            chips_per_host=row["chips_per_host"],
            topology=row["topology"],
            zones=frozenset(row["zones_api_seen"]) | frozenset(row["zones_documented"]),
        )
    generations = {
        name: Generation(
            name=name,
            api_type=_API_TYPES[row["api_type_enum"]],
            counts_cores=row["suffix_counts"] == "cores",
        )
        for name, row in data["generations"].items()
        if row.get("api_type_enum") in _API_TYPES
    }
    zones = tuple(sorted({zone for item in accelerators.values() for zone in item.zones}))
    runtimes = _runtimes_by_zone(accelerators, zones, data["runtimes"])
    return Catalogue(accelerators, generations, zones, runtimes)
