"""What a name on the command line means: a run, a node's id, or a node's full name."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tpudash.errors import UsageError, absent

if TYPE_CHECKING:
    from tpudash.commands.facts import Facts
    from tpudash.domain.node import Node
    from tpudash.domain.run import Run
    from tpudash.errors import TpudashError

_ID: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
LONGEST_ID: Final = 63
_FULL_NAME: Final = re.compile(
    r"projects/[-a-z0-9:.]+/locations/[-a-z0-9]+/nodes/[a-z]([-a-z0-9]*[a-z0-9])?"
)


@dataclass(frozen=True, slots=True)
class Target:
    """The run or the node that was named; exactly one of them unless neither is known.

    Attributes:
        name: As it was written.
    """

    name: str
    run: Run | None = None
    node: Node | None = None


def check_name(name: str) -> str:
    """Return a name that may go into a filter or a request.

    Raises:
        UsageError: It can't be the name of a run or a node.
    """
    if len(name.rsplit("/", 1)[-1]) <= LONGEST_ID and (
        _ID.fullmatch(name) or _FULL_NAME.fullmatch(name)
    ):
        return name
    raise UsageError(
        f"{name!r} can't be the name of a run or a node",
        detail="names are lower-case letters, digits and hyphens, and begin with a letter",
        hint="see: tpudash runs, tpudash nodes",
    )


def find_target(facts: Facts, name: str) -> Target:
    """Return what a name means; a run comes before a node of the same name.

    A name that means nothing known is returned as such, for those who can do without.
    """
    run = next((run for run in facts.runs if run.name == name), None)
    if run is not None:
        return Target(name, run=run)
    nodes = [node for node in facts.listing.nodes if name in {node.name, node.node_id}]
    if len(nodes) > 1:
        raise UsageError(
            f"{name!r} is a node in {len(nodes)} zones",
            detail=", ".join(node.zone for node in nodes),
            hint=f"give its full name, such as {nodes[0].name}",
        )
    return Target(name, node=nodes[0] if nodes else None)


def need_target(facts: Facts, name: str) -> Target:
    """Return what a name means.

    Raises:
        NotFoundError: It means nothing, and everything that could tell was read.
        TpudashError: It means nothing known, but what could not be read might know it.
    """
    target = find_target(facts, name)
    if target.run is None and target.node is None:
        facts.raise_for("runs")
        raise not_found(facts, name)
    return target


def not_found(facts: Facts, name: str) -> TpudashError:
    """Return the error that says that nothing has this name, with the nearest that has one."""
    known = [run.name for run in facts.runs] + [node.node_id for node in facts.listing.nodes]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return absent(
        f"run or node {name!r}",
        f"project {facts.project}",
        silent=facts.listing.unreachable,
        hint=f"did you mean {near[0]!r}?" if near else "see: tpudash runs, tpudash nodes",
    )
