"""What is checked of a launch before anything is created: names, places, and whether they fit."""

from __future__ import annotations

import asyncio
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tpudash.domain.accelerator import load_catalog
from tpudash.domain.placement import check_placement
from tpudash.domain.recipes import RECIPES
from tpudash.domain.run import RUN_NAME_PATTERN
from tpudash.domain.runtimes import default_runtime, fitting_runtimes, misfit
from tpudash.errors import NotFoundError, UsageError
from tpudash.operations.changes import offering
from tpudash.operations.desk import nearest
from tpudash.operations.serving import check_serving

if TYPE_CHECKING:
    from tpudash.domain.accelerator import AcceleratorType
    from tpudash.domain.operation import LaunchRequest
    from tpudash.gateways.protocols import Cloud

LONGEST_NAME: Final = 40


@dataclass(frozen=True, slots=True)
class ZoneChoice:
    """Candidate zones that offer the type, and an image that fits."""

    zones: tuple[str, ...]
    runtime_version: str
    warnings: tuple[str, ...] = ()


def check_request(request: LaunchRequest) -> AcceleratorType:
    """Check what can be checked without asking anybody, and return the accelerator type.

    Raises:
        UsageError: Something in it can't be.
    """
    if not RUN_NAME_PATTERN.fullmatch(request.run):
        raise UsageError(
            f"{request.run!r} can't be the name of a run",
            detail=f"lower-case letters, digits and hyphens, a letter first, no hyphen last, "
            f"at most {LONGEST_NAME} characters",
            hint="choose another name, such as demo-1",
        )
    catalog = load_catalog()
    kind = catalog.find(request.accelerator_type)
    if kind is None:
        raise UsageError(
            f"unknown accelerator type {request.accelerator_type!r}",
            hint=nearest(request.accelerator_type, catalog.types) or "such as v2-8 or v5litepod-8",
        )
    if request.recipe not in RECIPES:
        raise UsageError(
            f"unknown recipe {request.recipe!r}",
            hint=nearest(request.recipe, RECIPES) or f"one of {', '.join(RECIPES)}",
        )
    if request.validate_first and not RECIPES[request.recipe].wants_tensorflow:
        raise UsageError(
            f"the recipe {request.recipe} has no tests to run before it trains",
            hint="leave --validate-first out, or use --recipe tensorflow",
        )
    if not kind.generation.in_tpu_api or not _runs_on(request, kind):
        raise UsageError(
            f"{kind.name} can't be used here",
            detail=f"{kind.generation.display} is not offered by the Cloud TPU API",
            hint="use v6e or an older generation",
        )
    _check_numbers(request)
    check_serving(request)
    check_placement(request)
    if not request.zones:
        raise UsageError("no zone is given", hint=f"such as {', '.join(kind.zones[:3])}")
    return kind


def _runs_on(request: LaunchRequest, kind: AcceleratorType) -> bool:
    return kind.generation.supports_tensorflow or not RECIPES[request.recipe].wants_tensorflow


def _check_numbers(request: LaunchRequest) -> None:
    wanted = {
        "the number of steps": request.steps,
        "the checkpoint interval": request.checkpoint_every_steps,
        "the cost limit": request.max_cost_usd,
        "the time that a request may wait": request.placement.valid_until_s,
    }
    for name, value in wanted.items():
        if value is not None and not 0 < value < math.inf:
            raise UsageError(f"{name} must be a number above 0, not {value}")
    if request.seed is not None and not 0 <= request.seed < 2**31:
        raise UsageError(f"the seed must be from 0 to {2**31 - 1}, not {request.seed}")


async def check_bucket(cloud: Cloud, bucket: str) -> str:
    """Return the bucket as it is named on a node: `gs://NAME`, or an absolute folder.

    Raises:
        UsageError: It can't be used from a node.
        NotFoundError: It does not exist.
    """
    if not bucket:
        raise UsageError("no bucket is given", hint="such as gs://my-bucket")
    if "://" in bucket and not bucket.startswith("gs://"):
        raise UsageError(
            f"{bucket!r} is neither gs://BUCKET nor a folder", hint="such as gs://my-bucket"
        )
    is_local = not bucket.startswith("gs://")
    named = _absolute(bucket) if is_local else bucket.rstrip("/")
    if is_local and not cloud.is_emulator:
        # Only nodes that are processes of this machine can see its folders.
        raise UsageError(
            f"a TPU VM can't see the folder {named} of this machine",
            hint="give a Cloud Storage bucket, such as gs://my-bucket",
        )
    if not await cloud.bucket.exists(named):
        make = f"mkdir -p {named}" if is_local else f"gcloud storage buckets create {named}"
        raise NotFoundError(f"the bucket {named} does not exist", hint=f"make it first: {make}")
    return named


def _absolute(folder: str) -> str:
    # Links are kept as they are written: the name goes into records that others read.
    return os.path.abspath(Path(folder).expanduser())  # noqa: PTH100


async def choose_zones(cloud: Cloud, request: LaunchRequest, kind: AcceleratorType) -> ZoneChoice:
    """Return the candidate zones that the project sees and that offer the type, with an image.

    Raises:
        UsageError: None of the zones will do, or the image does not fit.
    """
    having, warnings = await offering(cloud, kind.name, tuple(dict.fromkeys(request.zones)))
    images = await asyncio.gather(*map(cloud.tpu.list_runtime_versions, having))
    common = [name for name in images[0] if all(name in more for more in images[1:])]
    return ZoneChoice(having, _runtime(request, kind, common), warnings)


def _runtime(request: LaunchRequest, kind: AcceleratorType, available: list[str]) -> str:
    wanted = request.runtime_version
    where = " and ".join(request.zones)
    fitting = fitting_runtimes(kind, available)
    best = default_runtime(
        kind, available, wants_tensorflow=RECIPES[request.recipe].wants_tensorflow
    )
    if wanted is None:
        if best is None:
            raise UsageError(f"{where} lists no runtime version that fits {kind.name}")
        return best
    if wanted not in available:
        raise UsageError(
            f"unknown runtime version {wanted!r} in {where}",
            hint=nearest(wanted, fitting) or f"those that fit: {', '.join(fitting[:5])}",
        )
    reason = misfit(wanted, kind)
    if reason is not None:
        raise UsageError(
            f"runtime version {wanted} does not fit {kind.name}",
            detail=reason,
            hint=f"use {best}, or leave it out" if best else "",
        )
    return wanted
