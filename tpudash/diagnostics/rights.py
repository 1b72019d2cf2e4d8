"""Each API and each right that watching and operating need, judged one by one.

A harmless call that was answered proves its right, whatever policies say; where there is none, the
project's own answer about held permissions decides. Source of the roles:
https://cloud.google.com/tpu/docs/access-control, https://cloud.google.com/iam/docs/roles-permissions
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import Group
from tpudash.domain.failure import ErrorClass
from tpudash.domain.finding import Finding, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tpudash.errors import TpudashError

TPU_API: Final = "tpu.googleapis.com"
_WATCH_WHY: Final = "Without it a part of the screen stays empty."
_OPERATE_WHY: Final = "Without it launching, resuming or deleting fails when it is wanted."
_MORE_WHY: Final = "Without it only this part is missing."


@dataclass(frozen=True, slots=True)
class Right:
    """One thing that has to be allowed.

    Attributes:
        key: The permission, or a name where Google's name of it is not documented.
        what: What it is needed for.
        role: The least role that is known to hold it.
        service: The API that has to be on.
        is_named: Whether `key` is a permission that a project can be asked about.
        why: What is lost without it.
        missing: The verdict where it is missing.
    """

    key: str
    what: str
    role: str
    service: str = TPU_API
    is_named: bool = True
    why: str = _WATCH_WHY
    missing: Verdict = Verdict.FAIL


def _operate(key: str, what: str, role: str = "roles/tpu.admin") -> Right:
    return Right(key, what, role, why=_OPERATE_WHY, missing=Verdict.WARN)


def _more(key: str, what: str, role: str, service: str) -> Right:
    return Right(key, what, role, service, is_named=False, why=_MORE_WHY, missing=Verdict.WARN)


_VIEWER: Final = "roles/tpu.viewer"
RIGHTS: Final = (
    Right("tpu.locations.list", "list zones", _VIEWER),
    Right("tpu.nodes.list", "list nodes", _VIEWER),
    Right("tpu.nodes.get", "read a node", _VIEWER),
    Right("queued resources", "list queued resources", _VIEWER, is_named=False),
    Right("tpu.acceleratortypes.list", "list accelerator types", _VIEWER),
    Right("tpu.runtimeversions.list", "list runtime versions", _VIEWER),
    Right(
        "monitoring.timeSeries.list",
        "read metrics",
        "roles/monitoring.viewer",
        "monitoring.googleapis.com",
    ),
    Right(
        "logging.logEntries.list", "read the log", "roles/logging.viewer", "logging.googleapis.com"
    ),
    _more("prices", "read prices", "an account that is signed in", "cloudbilling.googleapis.com"),
    _more(
        "billing.budgets.list",
        "list budgets",
        "roles/billing.viewer on the billing account",
        "billingbudgets.googleapis.com",
    ),
    _more("quota limits", "read quotas", "roles/cloudquotas.viewer", "cloudquotas.googleapis.com"),
    _more(
        "storage.objects.list",
        "read the bucket",
        "roles/storage.objectViewer on the bucket",
        "storage.googleapis.com",
    ),
    _operate("tpu.nodes.create", "create nodes"),
    _operate("tpu.nodes.delete", "delete nodes"),
    _operate("tpu.operations.get", "follow operations"),
    _operate(
        "iam.serviceAccounts.actAs",
        "give nodes a service account",
        "roles/iam.serviceAccountUser",
    ),
)
NAMED: Final = tuple(right.key for right in RIGHTS if right.is_named)


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of trying.

    Attributes:
        calls: By `Right.key`, what a harmless call was refused with; None where it was answered.
            What was not tried is not in it.
        missing: The permissions that the project says are not held; None if it did not say.
        silence: Why the project did not say.
        is_local: Whether all this is a local endpoint, which has no policies.
    """

    calls: Mapping[str, TpudashError | None] = field(default_factory=dict)
    missing: frozenset[str] | None = None
    silence: str = ""
    is_local: bool = False


def judge(tried: Tried, project: str, as_of: datetime) -> tuple[Finding, ...]:
    """Return a row for each right; where nobody is signed in, that alone."""
    signed_out = next(
        (
            error
            for error in tried.calls.values()
            if error and _class_of(error) is ErrorClass.AUTH_EXPIRED
        ),
        None,
    )
    if signed_out is not None:
        row = Finding(
            "signed-in",
            "Signed in to Google Cloud",
            Verdict.FAIL,
            signed_out.detail or signed_out.title,
            why="Nothing can be asked without it.",
            advice=signed_out.hint,
            as_of=as_of,
            group=str(Group.BASICS),
            rank=0,
        )
        return (row,)
    return tuple(_row(right, tried, project, as_of) for right in RIGHTS)


def _row(right: Right, tried: Tried, project: str, as_of: datetime) -> Finding:
    verdict, evidence, advice, command = _verdict(right, tried, project)
    return Finding(
        check_id=f"right-{right.key.replace(' ', '-')}",
        title=f"May {right.what}",
        verdict=verdict,
        evidence=evidence,
        why=right.why,
        advice=advice,
        command=command,
        as_of=as_of,
        group=str(Group.BASICS),
        rank=4,
    )


def _verdict(right: Right, tried: Tried, project: str) -> tuple[Verdict, str, str, str | None]:
    if right.key in tried.calls:
        error = tried.calls[right.key]
        if error is None:
            return Verdict.PASS, f"{right.key}: asked, and answered", "", None
        return _refused(right, error, project)
    if tried.missing is None and tried.is_local:
        return Verdict.NOT_APPLICABLE, "a local endpoint asks for no rights", "", None
    if tried.missing is None or not right.is_named:
        return Verdict.UNKNOWN, f"{right.key}: {tried.silence or 'not asked'}", "", None
    if right.key not in tried.missing:
        return Verdict.PASS, f"{right.key} is held", "", None
    return _lacking(right, f"{right.key} is not held", project)


def _refused(
    right: Right, error: TpudashError, project: str
) -> tuple[Verdict, str, str, str | None]:
    words = error.detail or error.title
    kind = _class_of(error)
    if kind is ErrorClass.API_OFF:
        command = f"gcloud services enable {right.service} --project={project}"
        return right.missing, words, f"{right.service} is off: switch it on.", command
    if kind in {ErrorClass.PERMISSION, ErrorClass.BUCKET_ACCESS, ErrorClass.LOCATION}:
        return _lacking(right, words, project)
    return Verdict.UNKNOWN, f"{error.title}: {words}", error.hint, None


def _lacking(right: Right, words: str, project: str) -> tuple[Verdict, str, str, str | None]:
    command = None
    if right.role.startswith("roles/") and " " not in right.role:
        command = (
            f"gcloud projects add-iam-policy-binding {project} --member=user:YOU"
            f" --role={right.role}"
        )
    return right.missing, words, f"The least role that holds {right.key}: {right.role}.", command


def _class_of(error: TpudashError) -> ErrorClass | None:
    return error.failure.error_class if error.failure else None
