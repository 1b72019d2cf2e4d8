"""Accelerator types: chips, cores, hosts and memory, from a dated table and not from the name.

The suffix of a type counts cores for v2, v3, v4 and v5p, but chips for v5litepod and v6e, so a
figure is taken from the table wherever the type is in it.
Source: https://cloud.google.com/tpu/docs/supported-tpu-configurations
"""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Generation:
    """What all types of one TPU generation share.

    Attributes:
        hbm_gib_per_chip: GiB of high-bandwidth memory on each chip.
        bf16_tflops_per_chip: Peak TFLOP/s in bfloat16, or None where unknown.
        in_tpu_api: Whether the Cloud TPU API offers it at all (TPU7x and later it does not).
    """

    name: str
    display: str
    hbm_gib_per_chip: float
    bf16_tflops_per_chip: float | None
    in_tpu_api: bool
    supports_tensorflow: bool


@dataclass(frozen=True, slots=True)
class AcceleratorType:
    """One accelerator type, such as `v2-8`.

    Attributes:
        chips: TPU chips of the whole slice.
        cores: TensorCores of the whole slice.
        hosts: TPU VMs, each of which is one worker.
        zones: Zones in which Google documents the type, or in which its API was seen to list it.
    """

    name: str
    generation: Generation
    chips: int
    cores: int
    hosts: int
    topology: str
    hbm_gib: float
    zones: tuple[str, ...]

    @property
    def is_slice(self) -> bool:
        """Whether it spans several hosts; such a node can't be stopped, only deleted."""
        return self.hosts > 1


@dataclass(frozen=True, slots=True)
class AcceleratorCatalog:
    """All accelerator types of the bundled table, by name."""

    types: Mapping[str, AcceleratorType]
    generations: Mapping[str, Generation]

    def find(self, name: str) -> AcceleratorType | None:
        """Return the type, or None if the table does not know it."""
        return self.types.get(name)

    def nearest(self, name: str) -> tuple[str, ...]:
        """Return up to three known types whose names look like this one."""
        return tuple(difflib.get_close_matches(name, self.types, n=3, cutoff=0.5))

    def in_zone(self, zone: str) -> tuple[AcceleratorType, ...]:
        """Return the types that the table places in a zone, smallest first."""
        found = (kind for kind in self.types.values() if zone in kind.zones)
        return tuple(sorted(found, key=lambda kind: (kind.generation.name, kind.chips)))

    @property
    def zones(self) -> tuple[str, ...]:
        """Every zone that the table knows."""
        return tuple(sorted({zone for kind in self.types.values() for zone in kind.zones}))


@cache
def load_catalog() -> AcceleratorCatalog:
    """Read the bundled table (`accelerators.json`; its `_meta` names the sources)."""
    text = files("tpudash.domain").joinpath("data/accelerators.json").read_text("utf-8")
    data: dict[str, Any] = json.loads(text)
    generations = {
        name: Generation(
            name=name,
            display=row["display"],
            hbm_gib_per_chip=float(row["hbm_gib_per_chip"]),
            bf16_tflops_per_chip=row["bf16_tflops_per_chip"],
            in_tpu_api=bool(row["cloud_tpu_api"]),
            supports_tensorflow=bool(row["tensorflow"]),
        )
        for name, row in data["generations"].items()
    }
    types = {
        row["name"]: AcceleratorType(
            name=row["name"],
            generation=generations[row["generation"]],
            chips=row["chips"],
            cores=row["cores"],
            hosts=row["hosts"],
            topology=row["topology"] or "",
            hbm_gib=float(row["hbm_gib_total"]),
            zones=tuple(sorted({*(row["zones_api_seen"] or ()), *(row["zones_documented"] or ())})),
        )
        for row in data["types"]
    }
    return AcceleratorCatalog(types, generations)
