"""Texts about who may do what: sign-in, permissions, switched-off services, billing, places."""

from __future__ import annotations

from typing import Final

from tpudash.diagnostics.patterns.row import Row, regex
from tpudash.domain.failure import ErrorClass

_SSH_KEY: Final = (
    "The VM refused the SSH key: `gcloud compute tpus tpu-vm ssh NODE --zone {zone_id}` sends it"
    " anew; check OS Login and the project's ssh-keys metadata."
)
_NO_CREDENTIALS: Final = (
    "Nobody is signed in on this machine. Run: gcloud auth application-default login"
)
_SCOPES: Final = (
    "The credentials lack an OAuth scope. On a VM, give its service account the cloud-platform"
    " scope; elsewhere run: gcloud auth application-default login"
)
_ACT_AS: Final = (
    "Grant roles/iam.serviceAccountUser on the node's service account to whoever creates nodes."
)
_PROJECT: Final = (
    "Check the project id ({project}) and that the signed-in account can see that project. Those"
    " that it can see: gcloud projects list. Then: tpudash --project ID"
)
_QUOTA_PROJECT: Final = (
    "The sign-in names no project of yours to count calls against. Run:"
    " gcloud auth application-default set-quota-project {project}, or give --quota-project"
)
_MAY_USE_PROJECT: Final = (
    "Calls are to be counted against {project}, and the signed-in account may not do that: name"
    " another with --quota-project, or have roles/serviceusage.serviceUsageConsumer granted on it."
)
_SHARED: Final = "764086051850|32555940559"
"""Numbers of Google's own projects, which stand for whoever signs in through gcloud."""

_NO_BUCKET: Final = (
    "The bucket {bucket} does not exist. Make it with:"
    " gcloud storage buckets create gs://{bucket_id} --location REGION"
)

ACCESS: Final = (
    Row(ErrorClass.CONNECT, "permission denied (publickey", advice=_SSH_KEY),
    Row(ErrorClass.AUTH_EXPIRED, "default credentials were not found", advice=_NO_CREDENTIALS),
    Row(ErrorClass.AUTH_EXPIRED, "defaultcredentialserror", advice=_NO_CREDENTIALS),
    Row(
        ErrorClass.AUTH_EXPIRED,
        "could not automatically determine credentials",
        advice=_NO_CREDENTIALS,
    ),
    Row(
        ErrorClass.AUTH_EXPIRED,
        "do not currently have an active account selected",
        advice="Nobody is signed in to gcloud. Run: gcloud auth login",
    ),
    Row(
        ErrorClass.AUTH_EXPIRED,
        "problem refreshing your current auth tokens",
        advice="gcloud's own sign-in is over. Run: gcloud auth login",
    ),
    Row(ErrorClass.AUTH_EXPIRED, "reauthentication"),
    Row(ErrorClass.AUTH_EXPIRED, "reauthfail"),
    Row(ErrorClass.AUTH_EXPIRED, "reauth related error"),
    Row(ErrorClass.AUTH_EXPIRED, "invalid_grant"),
    Row(ErrorClass.AUTH_EXPIRED, "invalid_rapt"),
    Row(ErrorClass.AUTH_EXPIRED, "refresherror"),
    Row(ErrorClass.AUTH_EXPIRED, "token", regex(r"token[^.\n]{0,40}(?:expired|revoked)")),
    Row(ErrorClass.AUTH_EXPIRED, "access_token_expired"),
    Row(ErrorClass.AUTH_EXPIRED, "invalid authentication credential"),
    Row(ErrorClass.AUTH_EXPIRED, "missing required authentication credential"),
    Row(ErrorClass.AUTH_EXPIRED, "credentials", regex(r"credentials (?:have |has )?expired")),
    Row(ErrorClass.AUTH_EXPIRED, "login required"),
    Row(ErrorClass.PERMISSION, "insufficient authentication scope", advice=_SCOPES),
    Row(ErrorClass.PERMISSION, "access_token_scope_insufficient", advice=_SCOPES),
    Row(
        ErrorClass.API_OFF,
        "tpu api is not enabled or you don't have tpu access",
        advice="Two causes share this text. First: gcloud services enable tpu.googleapis.com"
        " --project {project}. If it is on, the project has no access to {zone}: use another.",
    ),
    Row(ErrorClass.PERMISSION, "requires a quota project", advice=_QUOTA_PROJECT),
    Row(
        ErrorClass.API_OFF,
        "has not been used in project",
        regex(rf"has not been used in project (?:{_SHARED})\b"),
        advice="The call was counted against Google's own project. Run:"
        " gcloud auth application-default set-quota-project YOUR-PROJECT",
    ),
    Row(
        ErrorClass.PERMISSION,
        "required permission to use project",
        regex(r"required permission to use project"),
        advice=_MAY_USE_PROJECT,
    ),
    Row(ErrorClass.API_OFF, "has not been used in project"),
    Row(ErrorClass.API_OFF, "service_disabled"),
    Row(ErrorClass.API_OFF, "accessnotconfigured"),
    Row(ErrorClass.API_OFF, "api", regex(r"\bapi\b[^.\n]{0,80}\b(?:is not|isn't|not) enabled")),
    Row(ErrorClass.API_OFF, "api", regex(r"\bapi\b[^.\n]{0,60}\b(?:is|has been) disabled")),
    Row(
        ErrorClass.API_OFF,
        ".googleapis.com",
        regex(r"(?P<service>[a-z]+\.googleapis\.com)\b[^.\n]{0,60}(?:not enabled|disabled)"),
    ),
    Row(
        ErrorClass.BILLING,
        "billing",
        regex(
            r"billing[^\n]{0,120}(?:disabled|not (?:been )?(?:enabled|found|open|active)|closed"
            r"|delinquent|absent|inactive|to be enabled|must be enabled|is required|not_found)"
        ),
    ),
    Row(ErrorClass.BILLING, "billing", regex(r"(?:requires?|enable|no) (?:a )?billing")),
    Row(
        ErrorClass.BILLING,
        "free",
        regex(r"\bfree[ -]?tr(?:ial|ier)\b|\bfree[ -]tier (?:account|project|user)"),
        advice="A free trial may not use TPUs: upgrade to a paid billing account."
        " https://console.cloud.google.com/billing",
    ),
    Row(ErrorClass.BILLING, "billing_disabled"),
    Row(
        ErrorClass.BUCKET_ACCESS,
        "storage.",
        regex(r"(?P<permission>storage\.(?:objects|buckets|multipartUploads)\.\w+)"),
    ),
    Row(ErrorClass.BUCKET_ACCESS, "bucket does not exist", advice=_NO_BUCKET),
    Row(ErrorClass.BUCKET_ACCESS, "nosuchbucket", advice=_NO_BUCKET),
    Row(
        ErrorClass.BUCKET_ACCESS,
        "gs://",
        regex(
            r"gs://[^\n]{0,200}(?:\b40[13]\b|access ?denied|permission|forbidden|not have access)"
            r"|(?:\b40[13]\b|access ?denied|permission|forbidden)[^\n]{0,240}gs://"
        ),
    ),
    Row(
        ErrorClass.BUCKET_ACCESS,
        "bucket",
        regex(
            r"(?:access ?denied|permission ?denied|forbidden|not have (?:access|permission))"
            r"[^\n]{0,120}\bbucket|\bbucket\b[^\n]{0,120}(?:access ?denied|permission ?denied"
            r"|forbidden|not have (?:access|permission))"
        ),
    ),
    Row(ErrorClass.LOCATION, "location_policy_violated"),
    Row(
        ErrorClass.LOCATION,
        "gcp.resourcelocations",
        advice="The organisation's policy on resource locations forbids {zone}: use another place.",
    ),
    Row(
        ErrorClass.LOCATION,
        "permission denied on",
        regex(r"permission denied on ['\"]?(?:projects/[^/'\"]+/)?locations/"),
    ),
    Row(ErrorClass.LOCATION, "is not found or access is unauthorized"),
    Row(
        ErrorClass.LOCATION,
        "zone",
        regex(
            r"\bzone\b ['\"]?[a-z0-9-]*['\"]? ?(?:is|was)? ?(?:not supported|not available"
            r"|does not exist|not found)|(?:unknown|invalid|unsupported|no such) zone"
        ),
    ),
    Row(
        ErrorClass.LOCATION,
        "location",
        regex(
            r"\blocation\b ['\"]?[\w/-]+['\"]? (?:is|was|does)? ?(?:not (?:supported|found|valid"
            r"|available|exist)|unavailable)|(?:unknown|invalid|unsupported) location"
        ),
    ),
    Row(ErrorClass.PERMISSION, "serviceaccountuser", advice=_ACT_AS),
    Row(ErrorClass.PERMISSION, "iam.serviceaccounts.actas", advice=_ACT_AS),
    Row(
        ErrorClass.PERMISSION,
        "permission",
        regex(r"permission ['\"]?(?P<permission>[a-z]\w*(?:\.\w+)+)['\"]? (?:was |is )?denied"),
    ),
    Row(
        ErrorClass.PERMISSION,
        "permission",
        regex(r"required ['\"]?(?P<permission>[a-z]\w*(?:\.\w+)+)['\"]? permission"),
    ),
    Row(
        ErrorClass.PERMISSION,
        "permission",
        regex(r"permission(?:s)?:? ['\"]?(?P<permission>[a-z]\w*\.\w+\.\w+)['\"]?"),
    ),
    Row(
        ErrorClass.PERMISSION,
        "does not have",
        regex(r"not have (?P<permission>[a-z]\w*\.\w+\.\w+) access"),
    ),
    Row(ErrorClass.PERMISSION, "user_project_denied", advice=_MAY_USE_PROJECT),
    Row(ErrorClass.PERMISSION, "consumer_invalid", advice=_PROJECT),
    Row(ErrorClass.PERMISSION, "consumer_suspended"),
    Row(
        ErrorClass.PERMISSION,
        "project",
        regex(
            r"project [^\n]{0,60}(?:not found or deleted|has been deleted|not found|is invalid)"
            r"|unknown project"
        ),
        advice=_PROJECT,
    ),
    Row(ErrorClass.PERMISSION, "does not have permission"),
    Row(ErrorClass.PERMISSION, "not have the required permission"),
    Row(ErrorClass.PERMISSION, "read access to project"),
    Row(ErrorClass.PERMISSION, "iam_permission_denied"),
    Row(
        ErrorClass.PERMISSION,
        "constraint constraints/",
        advice="A policy of the organisation forbids it, and names the constraint: change what the"
        " message names (such as the external IP address: --no-external-ips), or ask whoever runs"
        " the organisation.",
    ),
    Row(
        ErrorClass.PERMISSION,
        "prohibited by organization's policy",
        advice="A VPC Service Controls perimeter forbids it: ask whoever runs the organisation.",
    ),
)
