"""What has a sensible default in the operations room, and what tests replace."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import SystemRandom
from typing import TYPE_CHECKING

from tpudash.clock import SystemClock
from tpudash.operations.bundle import TrainerBundle, make_bundle
from tpudash.operations.course import Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from tpudash.clock import Clock
    from tpudash.domain.failure import CloudStatus, Failure

    Classify = Callable[[CloudStatus], Failure]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationsOptions:
    """What has a sensible default.

    Attributes:
        buckets: Buckets in which runs are looked for besides those that nodes name.
        classify: Names the cause of an error that arrived inside a long-running operation.
        make_bundle: Packs the trainer; called once, in a thread.
    """

    buckets: Sequence[str] = ()
    clock: Clock = field(default_factory=SystemClock)
    random: Random = field(default_factory=SystemRandom)
    classify: Classify = lambda status: _classify(status)  # noqa: PLW0108  imported when first used
    make_bundle: Callable[[], TrainerBundle] = make_bundle
    pace: Pace = field(default_factory=Pace)


def _classify(status: CloudStatus) -> Failure:
    from tpudash.diagnostics.classifier import classify

    return classify(status)
