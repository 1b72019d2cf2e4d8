"""The settings: one frozen dataclass whose fields say what they are for.

A setting's key in the file is its name here; in the environment it is `TPUDASH_` and the name in
capitals. Tables (`[keys]`, `[intervals]`) are written with a dot in messages: `intervals.nodes`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from tpudash.domain.alarm import AlarmLimits
from tpudash.domain.serving import ServingLimits

if TYPE_CHECKING:
    from collections.abc import Mapping
    from dataclasses import Field

    from tpudash.domain.serving import ServingEndpoint


def _setting(default: Any, explain: str, *, variables: tuple[str, ...] = ()) -> Any:
    """Declare a setting: its default, what it is for, and further environment variables."""
    return field(default=default, metadata={"explain": explain, "variables": variables})


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """Seconds between two questions to each source while nothing changes.

    A source is asked more often while something in it is changing.
    """

    nodes: float = _setting(12.0, "Seconds between listings of nodes")
    requests: float = _setting(20.0, "Seconds between listings of queued resources")
    runs: float = _setting(10.0, "Seconds between readings of the runs' records")
    metrics: float = _setting(60.0, "Seconds between readings of metrics, and their period")
    checklist: float = _setting(15.0, "Seconds between runs of the checklist")
    prices: float = _setting(3600.0, "Seconds between readings of the price catalogue")


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What is served, beside the runs of the project, and how well it should be."""

    endpoints: tuple[ServingEndpoint, ...] = _setting(
        (), 'Prometheus endpoints to watch, such as [{name = "api", url = "http://HOST/metrics"}]'
    )
    p99_limit_s: float = _setting(
        ServingLimits().p99_s, "Seconds of latency, in the 99th percentile, above which it alarms"
    )
    error_limit: float = _setting(
        ServingLimits().error_share, "Share of errors, from 0 to 1, above which it alarms"
    )

    @property
    def limits(self) -> ServingLimits:
        """From where on a model is served badly."""
        return ServingLimits(self.p99_limit_s, self.error_limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set. Each value is explained where it is declared."""

    project: str | None = _setting(
        None,
        "Google Cloud project to look at; several with commas, the first of which is operated",
        variables=("GOOGLE_CLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT"),
    )
    endpoint: str | None = _setting(
        None, "HOST:PORT of a local endpoint for every API, in plaintext; loopback only"
    )
    quota_project: str | None = _setting(
        None,
        "Project whose quota and billing the calls use",
        variables=("GOOGLE_CLOUD_QUOTA_PROJECT",),
    )
    impersonate: str | None = _setting(None, "E-mail of a service account to act as")
    watch_impersonate: str | None = _setting(
        None, "E-mail of a service account that watch mode acts as, such as one that only views"
    )
    bucket: str | None = _setting(
        None, "Where runs keep their files: gs://BUCKET, or a local folder with the emulator"
    )
    owner: str | None = _setting(None, "Who owns the runs launched here (the user's login name)")
    accelerator_type: str | None = _setting(None, "Accelerator type offered first in a launch")
    zones: tuple[str, ...] = _setting((), "Candidate zones for a launch, in order of preference")
    theme: str = _setting("dark", "Name of the theme")
    panes: tuple[str, ...] = _setting((), "Panes shown in watch mode; all of them when empty")
    rotate_s: float = _setting(0.0, "Seconds until watch mode zooms the next pane; 0 for never")
    ascii: bool | None = _setting(None, "Draw with ASCII only; by the locale when not set")
    mouse: bool | None = _setting(None, "Use the mouse; off over SSH when not set")
    shell_command: str | None = _setting(
        None,
        "Command that opens a shell on a worker, with {node}, {project}, {zone}, {worker}, "
        "{internal_ip} and {external_ip}; gcloud when not set",
    )
    control_dir: str | None = _setting(
        None, "Folder in which the consoles of all users agree on who has control"
    )
    alarm_per_hour_usd: float | None = _setting(
        None, "US dollars an hour, over all nodes, above which there is an alarm"
    )
    alarm_idle_s: float = _setting(
        180.0, "Seconds for which a node may be idle before there is an alarm"
    )
    log_level: str = _setting("INFO", "How much goes to our own log file")
    keys: Mapping[str, str] = field(
        default_factory=dict,
        metadata={"explain": "Keys of actions, by the action's id", "variables": ()},
    )
    intervals: Intervals = field(
        default_factory=Intervals,
        metadata={"explain": "How often each source is asked", "variables": ()},
    )

    serving: Serving = field(
        default_factory=Serving,
        metadata={"explain": "Models that are served", "variables": ()},
    )

    @property
    def alarm_limits(self) -> AlarmLimits:
        """From where on there is an alarm about money."""
        idle_for = timedelta(seconds=self.alarm_idle_s)
        return AlarmLimits(self.alarm_per_hour_usd, idle_for)

    @property
    def projects(self) -> tuple[str, ...]:
        """The projects that are named, each once."""
        names = (self.project or "").split(",")
        return tuple(dict.fromkeys(name.strip() for name in names if name.strip()))

    @property
    def first_project(self) -> str | None:
        """The project that is operated, or None where the credentials decide."""
        return next(iter(self.projects), None)


SCALAR_FIELDS: Final[tuple[Field[Any], ...]] = tuple(
    one for one in fields(Settings) if one.name not in {"keys", "intervals", "serving"}
)
INTERVAL_FIELDS: Final[tuple[Field[Any], ...]] = fields(Intervals)
SERVING_FIELDS: Final[tuple[Field[Any], ...]] = fields(Serving)


class OriginKind(StrEnum):
    """Who set a value, in rising order of precedence."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class Origin:
    """Who set a value, and where: `path:line`, a variable's name, or a flag."""

    kind: OriginKind
    where: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.where}".strip()


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings with the origin of each value that is not a default, by dotted key."""

    settings: Settings
    origins: Mapping[str, Origin]
    file: str | None = None

    def origin(self, key: str) -> Origin:
        """Return who set a value."""
        return self.origins.get(key, Origin(OriginKind.DEFAULT))

    def rows(self) -> list[tuple[str, Any, Origin, str]]:
        """Return (key, value, origin, explanation) of every setting."""
        found: list[tuple[str, Any, Origin, str]] = []
        for one in SCALAR_FIELDS:
            value = getattr(self.settings, one.name)
            found.append((one.name, value, self.origin(one.name), one.metadata["explain"]))
        for one in INTERVAL_FIELDS:
            key = f"intervals.{one.name}"
            value = getattr(self.settings.intervals, one.name)
            found.append((key, value, self.origin(key), one.metadata["explain"]))
        for one in SERVING_FIELDS:
            key = f"serving.{one.name}"
            value = getattr(self.settings.serving, one.name)
            if one.name == "endpoints":
                value = tuple(f"{each.name} {each.url}" for each in value)
            found.append((key, value, self.origin(key), one.metadata["explain"]))
        for action, keys in self.settings.keys.items():
            key = f"keys.{action}"
            found.append((key, keys, self.origin(key), "Key of an action"))
        return found
