"""Options of `tpudash launch` for how the node is asked for: queue, network, identity, labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from tpudash.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tpudash.domain.run import Placement

CommandT = TypeVar("CommandT", bound="Callable[..., Any]")


def placement_options(command: CommandT) -> CommandT:
    """Add the options."""
    options = (
        click.option(
            "--queued", is_flag=True, help="Ask by a queued resource: waits for capacity."
        ),
        click.option("--guaranteed", is_flag=True, help="Queue in the guaranteed tier."),
        click.option(
            "--valid-until-duration", metavar="TIME", help="How long it may queue, such as 6h."
        ),
        click.option("--reservation", metavar="NAME", help="Queue for this reservation."),
        click.option("--service-account", metavar="EMAIL", help="Account that the node runs as."),
        click.option("--network", metavar="NAME", help="VPC network of the node."),
        click.option("--subnetwork", metavar="NAME", help="Subnetwork of the node."),
        click.option(
            "--tag", "tags", multiple=True, metavar="TAG", help="Network tag; repeatable."
        ),
        click.option(
            "--no-external-ip", is_flag=True, help="Give the workers no external address."
        ),
        click.option(
            "--label", "labels", multiple=True, metavar="KEY=VALUE", help="Node label; repeatable."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def placement_of(options: Mapping[str, Any]) -> Placement:
    """Return how the node is to be asked for.

    Raises:
        UsageError: A label or a duration is not written as one.
    """
    from tpudash.commands.durations import parse_duration
    from tpudash.domain.run import Placement

    valid = options["valid_until_duration"]
    return Placement(
        queued=options["queued"],
        guaranteed=options["guaranteed"],
        valid_until_s=parse_duration(valid).total_seconds() if valid else None,
        reservation=options["reservation"],
        service_account=options["service_account"],
        network=options["network"],
        subnetwork=options["subnetwork"],
        tags=tuple(dict.fromkeys(options["tags"])),
        external_ips=not options["no_external_ip"],
        labels=_labels(options["labels"]),
    )


def _labels(texts: Sequence[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for key, value in map(_label, texts):
        if labels.setdefault(key, value) != value:
            raise UsageError(
                f"the label {key} is given two values", hint=f"leave {labels[key]!r} or {value!r}"
            )
    return labels


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise UsageError(f"{text!r} is not a label", hint="write it as KEY=VALUE, as team=vision")
    return key, value
