"""What the launch form means: reading it, checking it, and saying what the run would cost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from tpudash.cost.estimate import hourly_rate
from tpudash.domain.accelerator import load_catalog
from tpudash.domain.node import Scheduling
from tpudash.domain.operation import LaunchRequest
from tpudash.domain.run import RUN_NAME_PATTERN
from tpudash.wording import format as fmt

if TYPE_CHECKING:
    from collections.abc import Collection

    from tpudash.cost.prices import PriceBook

DEFAULT_STEPS: Final = "600"
DEFAULT_CHECKPOINT_EVERY: Final = "100"
MOST_STEPS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FormValues:
    """The fields as they stand in the form."""

    run: str = ""
    zone: str = ""
    accelerator_type: str = ""
    runtime_version: str = ""
    scheduling: str = Scheduling.SPOT
    bucket: str = ""
    steps: str = DEFAULT_STEPS
    checkpoint_every: str = DEFAULT_CHECKPOINT_EVERY
    seed: str = ""
    max_cost: str = ""


def problems_of(values: FormValues, known_runs: Collection[str] = ()) -> dict[str, str]:
    """Return what is wrong, by field; an empty dictionary means that it can be planned."""
    found = {
        "run": _run_problem(values.run, known_runs),
        "zone": "" if values.zone else "choose a zone",
        "accelerator_type": "" if values.accelerator_type else "choose an accelerator type",
        "bucket": _bucket_problem(values.bucket),
        "steps": _whole_problem(values.steps, least=1),
        "checkpoint_every": _whole_problem(values.checkpoint_every, least=1),
        "seed": _whole_problem(values.seed, least=0, may_be_empty=True),
        "max_cost": _money_problem(values.max_cost),
    }
    return {field: problem for field, problem in found.items() if problem}


def request_of(values: FormValues) -> LaunchRequest:
    """Return the request that the form stands for; only for values without problems."""
    return LaunchRequest(
        run=values.run.strip(),
        accelerator_type=values.accelerator_type,
        zones=(values.zone,),
        bucket=values.bucket.strip().rstrip("/"),
        scheduling=Scheduling(values.scheduling),
        runtime_version=values.runtime_version or None,
        steps=int(values.steps),
        checkpoint_every_steps=int(values.checkpoint_every),
        seed=int(values.seed) if values.seed.strip() else None,
        max_cost_usd=float(values.max_cost) if values.max_cost.strip() else None,
    )


def summary_of(values: FormValues, book: PriceBook) -> str:
    """Return chips, hosts, memory, price and how long the budget would last, in a few lines."""
    kind = load_catalog().find(values.accelerator_type)
    if kind is None:
        return "Choose an accelerator type to see its size and price."
    hosts = (
        "1 host" if kind.hosts == 1 else f"{kind.hosts} hosts (it can't be stopped, only deleted)"
    )
    chips = "1 chip" if kind.chips == 1 else f"{kind.chips} chips"
    lines = [f"{kind.name}: {chips}, {hosts}, {kind.hbm_gib:g} GiB HBM"]
    scheduling = Scheduling(values.scheduling)
    rate = hourly_rate(kind.name, values.zone, scheduling, book) if values.zone else None
    price = book.price_for(kind.name, values.zone, scheduling) if values.zone else None
    if rate is None or price is None:
        lines.append("The price is not known here.")
        return "\n".join(lines)
    kind_of_price = "an example of a spot price" if price.is_example else "a list price"
    dated = f" of {price.as_of}" if price.as_of else ""
    lines.append(f"{fmt.dollars(rate)} an hour, by {kind_of_price}{dated}")
    if values.max_cost.strip() and not _money_problem(values.max_cost) and rate > 0:
        hours = float(values.max_cost) / rate
        lines.append(f"The budget lasts for {hours:.1f} hours.")
    return "\n".join(lines)


def _run_problem(name: str, known_runs: Collection[str]) -> str:
    name = name.strip()
    if not name:
        return "give the run a name"
    if not RUN_NAME_PATTERN.fullmatch(name):
        return "lower-case letter first, then letters, digits, hyphens; at most 40"
    if name in known_runs:
        return "there is a run of this name: {resume} resumes it, or choose another"
    return ""


def _bucket_problem(bucket: str) -> str:
    bucket = bucket.strip()
    if not bucket:
        return "gs://BUCKET, or a folder with the emulator"
    is_bucket = bucket.startswith("gs://") and len(bucket) > len("gs://")
    if not is_bucket and not PurePosixPath(bucket).is_absolute():
        return "must begin with gs:// or be an absolute folder"
    return ""


def _whole_problem(text: str, *, least: int, may_be_empty: bool = False) -> str:
    text = text.strip()
    if not text and may_be_empty:
        return ""
    if not (text.isascii() and text.isdigit() and least <= int(text) <= MOST_STEPS):
        return f"a whole number from {least}"
    return ""


def _money_problem(text: str) -> str:
    if not text.strip():
        return ""
    try:
        amount = float(text)
    except ValueError:
        return "an amount of US dollars, such as 25"
    return "" if 0 < amount < float("inf") else "an amount above 0"
