"""Which part of the data one process reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Share:
    """Which part of each global batch one input pipeline delivers.

    A slice of several hosts has one pipeline a host; each hands its replicas one piece a step.

    Attributes:
        host: number of this pipeline.
        hosts: number of pipelines.
        replicas: replicas that this pipeline feeds.
    """

    host: int = 0
    hosts: int = 1
    replicas: int = 1
