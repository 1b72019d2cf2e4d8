"""What one emulator is told when it starts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003  (dataclass fields are read at run time by tests)


@dataclass(frozen=True, kw_only=True, slots=True)
class EmulatorSettings:
    """Settings of one emulator process."""

    state_dir: Path
    """Folder that holds the state file, the nodes' disks and the stand-in bucket."""

    port: int = 0
    """Port on 127.0.0.1; 0 lets the system choose."""

    rest_port: int = 0
    """Port of the REST face; 0 lets the system choose."""

    storage_port: int = 0
    """Port of the Cloud Storage face; 0 lets the system choose."""

    ready_file: Path | None = None
    """Where to announce the endpoint once calls are answered."""

    faults_file: Path | None = None
    """Faults that are in force from the start, in JSON or YAML."""

    seed: int | None = None
    """Seed of every random choice; None takes one from the system."""

    metrics_period_s: float = 60.0
    """Seconds between two samples, as Cloud Monitoring samples TPU metrics."""

    metrics_latency_s: float = 0.0
    """Seconds until a sample can be read (Google documents about 180)."""

    create_s: float = 3.0
    """Seconds from CreateNode to READY."""

    delete_s: float = 1.5
    """Seconds from DeleteNode until the node is gone."""

    max_log_entries: int = 50_000
    """Oldest log entries beyond this number are dropped."""

    console_limit_bytes: int = 4 * 1024 * 1024
    """Size at which a worker's console.log is rotated; one older file is kept."""

    @property
    def bucket(self) -> Path:
        """The local folder that stands in for a Cloud Storage bucket."""
        return self.state_dir / "bucket"

    @property
    def buckets_dir(self) -> Path:
        """The folder of the `gs://` buckets."""
        return self.state_dir / "buckets"

    @property
    def nodes_dir(self) -> Path:
        """The folder of the nodes' disks."""
        return self.state_dir / "nodes"
