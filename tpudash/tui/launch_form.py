"""What the launch form means: its fields, checking them, and saying what the run would cost."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from tpudash.cost.estimate import hourly_rate
from tpudash.domain.accelerator import load_catalog
from tpudash.domain.durations import parse_duration
from tpudash.domain.node import Scheduling
from tpudash.domain.operation import LaunchRequest
from tpudash.domain.placement import check_placement
from tpudash.domain.recipes import DEFAULT_RECIPE
from tpudash.domain.run import RUN_NAME_PATTERN, Placement
from tpudash.errors import UsageError
from tpudash.wording import format as fmt

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tpudash.cost.prices import PriceBook

DEFAULT_STEPS: Final = "600"
DEFAULT_CHECKPOINT_EVERY: Final = "100"
MOST_STEPS: Final = 1_000_000_000
AT_ONCE: Final = "at once (CreateNode)"
QUEUED: Final = "queued resource"
GUARANTEED: Final = "queued, guaranteed"
YES, NO = "yes", "no"
_ZONE: Final = re.compile(r"[a-z]+-[a-z]+[0-9]+-[a-z]")


@dataclass(frozen=True, slots=True, kw_only=True)
class FormValues:
    """The fields as they stand in the form."""

    run: str = ""
    recipe: str = DEFAULT_RECIPE
    accelerator_type: str = ""
    zone: str = ""
    scheduling: str = Scheduling.SPOT
    runtime_version: str = ""
    bucket: str = ""
    steps: str = DEFAULT_STEPS
    checkpoint_every: str = DEFAULT_CHECKPOINT_EVERY
    max_cost: str = ""
    more_zones: str = ""
    asked: str = AT_ONCE
    valid_until: str = ""
    reservation: str = ""
    service_account: str = ""
    network: str = ""
    subnetwork: str = ""
    external_ips: str = YES
    tags: str = ""
    labels: str = ""
    seed: str = ""
    delete_when_done: str = NO
    validate_first: str = NO


LABELS: Final[Mapping[str, str]] = {
    "run": "run name",
    "recipe": "recipe",
    "accelerator_type": "accelerator",
    "zone": "zone",
    "scheduling": "scheduling",
    "runtime_version": "runtime",
    "bucket": "bucket",
    "steps": "steps",
    "checkpoint_every": "checkpoint every",
    "max_cost": "budget cap in $",
    "more_zones": "more zones",
    "asked": "ask for it",
    "valid_until": "queue at most",
    "reservation": "reservation",
    "service_account": "service account",
    "network": "network",
    "subnetwork": "subnetwork",
    "external_ips": "external address",
    "tags": "network tags",
    "labels": "labels",
    "seed": "seed",
    "delete_when_done": "delete at end",
    "validate_first": "test first",
}
"""Every field by its name, in the order of the form."""
HOLDERS: Final[Mapping[str, str]] = {
    "run": "a name of your own",
    "bucket": "gs://BUCKET",
    "max_cost": "none",
    "more_zones": "tried next when it is full: us-east1-d, ...",
    "valid_until": "no end; such as 6h or 2d",
    "reservation": "none; its name",
    "service_account": "the project's own",
    "network": "default",
    "subnetwork": "the network's own",
    "tags": "none; such as allow-ssh, tpu",
    "labels": "none; such as team=vision, cost=lab",
    "seed": "any",
}
"""What an empty field means, or what may stand in it."""
CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "asked": (AT_ONCE, QUEUED, GUARANTEED),
    "external_ips": (YES, NO),
    "delete_when_done": (NO, YES),
    "validate_first": (NO, YES),
}
"""Fields whose choices never change; the first one is where they begin."""


def problems_of(values: FormValues, known_runs: Collection[str] = ()) -> dict[str, str]:
    """Return what is wrong, by field; an empty dictionary means that it can be planned."""
    found = {
        "run": _run_problem(values.run, known_runs),
        "zone": "" if values.zone else "choose a zone",
        "accelerator_type": "" if values.accelerator_type else "choose an accelerator type",
        "bucket": _bucket_problem(values.bucket),
        "steps": _whole_problem(values.steps, least=1),
        "checkpoint_every": _whole_problem(values.checkpoint_every, least=1),
        "max_cost": _money_problem(values.max_cost),
        "more_zones": _zones_problem(values.more_zones),
        "valid_until": _duration_problem(values.valid_until),
        "labels": _labels_problem(values.labels),
        "seed": _whole_problem(values.seed, least=0, may_be_empty=True),
    }
    problems = {field: problem for field, problem in found.items() if problem}
    return problems or _placement_problem(values)


def request_of(values: FormValues) -> LaunchRequest:
    """Return the request that the form stands for; only for values without problems."""
    return LaunchRequest(
        run=values.run.strip(),
        accelerator_type=values.accelerator_type,
        zones=tuple(dict.fromkeys((values.zone, *words_in(values.more_zones)))),
        bucket=values.bucket.strip().rstrip("/"),
        scheduling=Scheduling(values.scheduling),
        runtime_version=values.runtime_version or None,
        steps=int(values.steps),
        checkpoint_every_steps=int(values.checkpoint_every),
        seed=int(values.seed) if values.seed.strip() else None,
        delete_node_when_done=values.delete_when_done == YES,
        validate_first=values.validate_first == YES,
        max_cost_usd=float(values.max_cost) if values.max_cost.strip() else None,
        placement=_placement_of(values),
        recipe=values.recipe,
    )


def _placement_of(values: FormValues) -> Placement:
    wait = values.valid_until.strip()
    return Placement(
        queued=values.asked != AT_ONCE,
        guaranteed=values.asked == GUARANTEED,
        valid_until_s=parse_duration(wait).total_seconds() if wait else None,
        reservation=values.reservation.strip() or None,
        service_account=values.service_account.strip() or None,
        network=values.network.strip() or None,
        subnetwork=values.subnetwork.strip() or None,
        tags=tuple(dict.fromkeys(words_in(values.tags))),
        external_ips=values.external_ips != NO,
        labels=_labels_of(values.labels),
    )


def words_in(text: str) -> tuple[str, ...]:
    """Return the words of a list with commas or blanks."""
    return tuple(text.replace(",", " ").split())


def _labels_of(text: str) -> dict[str, str]:
    pairs = (word.partition("=") for word in words_in(text))
    return {key: value for key, _, value in pairs}


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
        why = ": reserved capacity costs what its commitment says"
        is_reserved = scheduling is Scheduling.RESERVED
        lines.append(f"The price is not known here{why if is_reserved else ''}.")
        return "\n".join([*lines, *_cap_without_price(values)])
    kind_of_price = "an example of a spot price" if price.is_example else "a list price"
    dated = f" of {price.as_of}" if price.as_of else ""
    lines.append(f"{fmt.dollars(rate)} an hour, by {kind_of_price}{dated}")
    if values.max_cost.strip() and not _money_problem(values.max_cost) and rate > 0:
        hours = float(values.max_cost) / rate
        lines.append(f"The budget lasts for {hours:.1f} hours.")
    return "\n".join(lines)


def _cap_without_price(values: FormValues) -> list[str]:
    is_capped = values.max_cost.strip() and not _money_problem(values.max_cost)
    return ["Without a price nobody can hold the run to its cap."] if is_capped else []


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


def _zones_problem(text: str) -> str:
    wrong = next((word for word in words_in(text) if not _ZONE.fullmatch(word)), None)
    return "" if wrong is None else f"{wrong} is no zone, such as us-central1-b"


def _duration_problem(text: str) -> str:
    if not text.strip():
        return ""
    try:
        wait = parse_duration(text)
    except UsageError as error:
        return error.hint
    return "" if wait else "more than 0"


def _labels_problem(text: str) -> str:
    wrong = next((word for word in words_in(text) if not all(word.partition("=")[:2])), None)
    return "" if wrong is None else f"{wrong} is no KEY=VALUE, such as team=vision"


def _placement_problem(values: FormValues) -> dict[str, str]:
    """Return what does not go together, under the field that would change it."""
    try:
        check_placement(request_of(values))
    except UsageError as error:
        words = str(error)
        field = next((name for name in ("label", "tag") if name in words), "")
        return {f"{field}s" if field else "asked": words}
    return {}
