"""What may be repeated and what the user can do, for each class of failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.domain.failure import ErrorClass, RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tpudash.domain.failure import Scope

QUOTA_PAGE: Final = "https://console.cloud.google.com/iam-admin/quotas"

RETRY: Final = {
    ErrorClass.STOCKOUT: RetryPolicy.NEXT_ZONE,
    ErrorClass.LOCATION: RetryPolicy.NEXT_ZONE,
    ErrorClass.RATE_LIMIT: RetryPolicy.SAME_PLACE,
    ErrorClass.PREEMPTED_IN_CREATE: RetryPolicy.SAME_PLACE,
    ErrorClass.PREEMPTED: RetryPolicy.SAME_PLACE,
    ErrorClass.MAINTENANCE: RetryPolicy.SAME_PLACE,
    ErrorClass.INTERNAL: RetryPolicy.SAME_PLACE,
    ErrorClass.PARTIAL_SLICE: RetryPolicy.SAME_PLACE,
    ErrorClass.CKPT_INCOMPLETE: RetryPolicy.SAME_PLACE,
    ErrorClass.STALLED: RetryPolicy.SAME_PLACE,
    ErrorClass.UNKNOWN_OUTCOME: RetryPolicy.ASK_AGAIN,
    ErrorClass.CONNECT: RetryPolicy.ASK_AGAIN,
}
"""What may be done without asking; a class that is not named here is never repeated."""

_ADVICE: Final = {
    ErrorClass.STOCKOUT: "Google has no free chips of this type in {zone} now; neither your quota"
    " nor your sign-in is the cause. Try another zone that offers the type and in which you have"
    " quota, wait, or queue a request for it.",
    ErrorClass.RATE_LIMIT: "Too many calls in a short time: wait a minute and go on more slowly."
    " Nothing is used up.",
    ErrorClass.RESERVATION: "The reservation does not exist here or has no room left: check its"
    " name, zone and size, or create the node without it.",
    ErrorClass.LOCATION: "This project can't use {zone}: leave it out and try another zone.",
    ErrorClass.PERMISSION: "The signed-in account lacks {permission} on {project}. Ask whoever"
    " runs the project for {role}.",
    ErrorClass.API_OFF: "Switch the API on, then wait a few minutes:"
    " gcloud services enable {service} --project {project}",
    ErrorClass.BILLING: "Billing is off for {project}. Link an open billing account:"
    " https://console.cloud.google.com/billing/linkedaccount?project={project}",
    ErrorClass.BAD_REQUEST: "The request itself is wrong, so it will fail again: change what the"
    " message names.",
    ErrorClass.NAME_TAKEN: "There is one of that name already. Look whose it is and what state it"
    " is in (tpudash nodes), then choose another name or delete that one. Never share it by"
    " accident.",
    ErrorClass.PREEMPTED_IN_CREATE: "The node was taken away while it was being created. Delete"
    " what is left of it, then create it again; another zone may hold longer.",
    ErrorClass.PREEMPTED: "The node was taken away. It is still listed and holds quota until it is"
    " deleted. Resume the run: that deletes the node, creates a new one and goes on from the last"
    " checkpoint.",
    ErrorClass.GONE: "It does not exist, or no longer. Deleting it is thereby done; a run can be"
    " resumed from its bucket.",
    ErrorClass.MAINTENANCE: "Google maintains the host. Wait until the node is READY and healthy"
    " again, then see that the trainer runs; its external IP address may have changed.",
    ErrorClass.INTERNAL: "A fault on Google's side that mostly passes: try again a few times with"
    " pauses. If it stays, give Google's support the error id.",
    ErrorClass.UNKNOWN_OUTCOME: "No answer came in time, so it may or may not have happened. Look"
    " at what exists and go on asking; delete nothing because of it.",
    ErrorClass.PARTIAL_SLICE: "A part of the slice's workers is missing, and the rest can't go on"
    " without it. Delete the node and create it anew; resume from the last checkpoint.",
    ErrorClass.DEVICE_BUSY: "Another process holds the TPU. Find it on the worker with:"
    " sudo lsof -w /dev/accel0. If there is none, a stale lock file is left in the VM's tmp"
    " directory (libtpu_lockfile): remove it. Check that the program did not fall back to the CPU.",
    ErrorClass.VERSION: "The framework, libtpu and the node's runtime do not fit each other."
    " Compare their versions on every worker and install a pair that belongs together.",
    ErrorClass.CONNECT: "No connection. Check that the node or service is up, its address, the"
    " network and the firewall. This says nothing about whether the thing itself exists.",
    ErrorClass.HBM_OOM: "The chip's own memory (HBM) is too small for this; it will happen again"
    " after a resume. Use a smaller batch, bfloat16 or gradient accumulation.",
    ErrorClass.HOST_OOM: "The TPU VM's main memory ran out, not the chip's. Use smaller shuffle and"
    " prefetch buffers, fewer parallel readers, or do not cache the data in memory.",
    ErrorClass.LOCAL_PATH: "TPU workers of a slice can't see files of one machine: put data and"
    " checkpoints under gs://.",
    ErrorClass.BUCKET_ACCESS: "{account} lacks {permission} on {bucket}. That is the node's service"
    " account and not you: grant it roles/storage.objectAdmin on the bucket.",
    ErrorClass.CKPT_INCOMPLETE: "The newest checkpoint is not whole, as after a preemption while"
    " saving. Go on from the one before it; set the incomplete one aside rather than delete it.",
    ErrorClass.STALLED: "The program hangs rather than ends. Look at the node's state now; if it is"
    " READY, restart the trainer, else resume the run.",
    ErrorClass.AUTH_EXPIRED: "The sign-in is over. Run: gcloud auth application-default login",
    ErrorClass.UNCLASSIFIED: "tpudash does not know this text. Read the cloud's own words above.",
}

_WORDS: Final = {
    "zone": "this zone",
    "zone_id": "ZONE",
    "bucket_id": "BUCKET",
    "project": "PROJECT",
    "permission": "a permission",
    "role": "the role that holds it",
    "service": "tpu.googleapis.com",
    "bucket": "the bucket",
    "account": "The account in use",
    "kind": "this accelerator type",
    "state": "in another state",
    "verb": "this",
    "used": "more than there is",
    "size": "all",
    "over": "some",
}
"""What stands in an advice for a fact that the text does not give."""

_ROLES: Final = {
    "tpu": "roles/tpu.viewer to look, or roles/tpu.admin to operate",
    "monitoring": "roles/monitoring.viewer",
    "logging": "roles/logging.viewer",
    "billing": "roles/billing.viewer on the billing account",
    "iam": "roles/iam.serviceAccountUser",
    "serviceusage": "roles/serviceusage.serviceUsageConsumer",
}


class _Facts(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return _WORDS.get(key, key)


def advice_for(
    error_class: ErrorClass, template: str | None, scope: Scope, found: Mapping[str, str]
) -> str:
    """Return what the user can do, with the names that the text gave.

    Args:
        error_class: The class, which has an advice of its own.
        template: The row's own advice, if it has one.
        scope: Where it holds.
        found: Further names from the text: `permission`, `service`, ...
    """
    if error_class is ErrorClass.QUOTA and template is None:
        return _quota_advice(scope)
    facts = _Facts(found)
    for name in ("zone", "project", "bucket"):
        value = getattr(scope, name)
        if value:
            facts[name] = value
    facts.update({f"{name}_id": facts[name] for name in ("zone", "bucket") if name in facts})
    if "zone" not in facts and scope.region:
        facts["zone"] = scope.region
    family = facts.get("permission", "").partition(".")[0]
    if family in _ROLES:
        facts.setdefault("role", _ROLES[family])
    return (template or _ADVICE[error_class]).format_map(facts)


def _quota_advice(scope: Scope) -> str:
    name = scope.quota or "the quota"
    place = f" in {scope.zone or scope.region}" if scope.zone or scope.region else ""
    page = f"{QUOTA_PAGE}?project={scope.project}" if scope.project else QUOTA_PAGE
    if scope.limit == 0:
        return (
            f"The limit of {name}{place} is 0: waiting won't help, and this is not a lack of"
            f" capacity. Ask for quota ({page}) or use a place and kind (spot, on demand) that you"
            " have quota for."
        )
    limit = f" of {scope.limit:g}" if scope.limit is not None else ""
    return (
        f"The limit{limit} of {name}{place} is used up. Delete nodes and requests that you no"
        " longer need (preempted nodes and suspended or failed requests hold quota too), or ask for"
        f" more: {page}"
    )
