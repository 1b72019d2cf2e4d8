"""Texts that sound like the cloud's and are not: of no class, and with an advice all the same."""

from __future__ import annotations

from typing import Final

from tpudash.diagnostics.patterns.row import Row, regex
from tpudash.domain.failure import ErrorClass

_DISK: Final = (
    "The disk of the machine that wrote this is full; a TPU VM's boot disk has 100 GB and can't be"
    " made larger. Look with `df -h`, remove old dumps and caches, and keep data, checkpoints and"
    " logs in the bucket."
)

ELSEWHERE: Final = (
    Row(ErrorClass.UNCLASSIFIED, "disk quota exceeded", advice=_DISK),
    Row(ErrorClass.UNCLASSIFIED, "no space left on device", advice=_DISK),
    Row(
        ErrorClass.UNCLASSIFIED,
        "insufficient google.com/tpu",
        regex(r"insufficient google\.com/tpu|google\.com/tpu[^\n]{0,60}insufficient"),
        advice="No node of the Kubernetes cluster has so many free chips: look at its TPU node"
        " pools and what holds them. This says nothing about the zone's capacity or your quota.",
    ),
)
