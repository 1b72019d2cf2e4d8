"""Why somebody is not signed in, and the command that helps, by the kind of credentials.

Source: google/auth/exceptions.py, google/oauth2/reauth.py, google/auth/impersonated_credentials.py
"""

from __future__ import annotations

import os
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from tpudash.domain.failure import ErrorClass, RetryPolicy
from tpudash.errors import NotAllowedError, TpudashError, UnreachableError
from tpudash.gateways.credential_files import KEY_VARIABLE
from tpudash.gateways.status import status_of
from tpudash.gateways.translate import to_error

if TYPE_CHECKING:
    from tpudash.domain.failure import Failure

LOGIN: Final = "gcloud auth application-default login"
LONGEST: Final = 600


class SignInKind(StrEnum):
    """How the user came by credentials."""

    USER = "user"
    KEY = "service-account key"
    METADATA_SERVER = "metadata server"
    IMPERSONATED = "impersonated service account"
    EXTERNAL = "external account"
    UNKNOWN = "unknown"


def explained(error: Exception, kind: SignInKind, account: str | None) -> TpudashError:
    """Return the error to raise where credentials could not be found, read or renewed.

    Args:
        error: What google-auth or the network raised.
        kind: The kind of credentials, as far as it is known.
        account: Whose they are, or None.
    """
    found = to_error(status_of(error), "sign in", changes=False)
    text = " ".join(str(error).split())[:LONGEST]
    if kind is not SignInKind.METADATA_SERVER and isinstance(found, UnreachableError):
        return UnreachableError(
            "no answer from Google's sign-in service",
            detail=text,
            hint="check the network and the proxy; your sign-in itself may be in order",
            failure=found.failure,
        )
    title, hint = _title_and_hint(text.lower(), kind, account)
    return NotAllowedError(title, detail=text, hint=hint, failure=_failure(found, hint))


def _failure(found: TpudashError, hint: str) -> Failure | None:
    if found.failure is None:
        return None
    return replace(
        found.failure,
        error_class=ErrorClass.AUTH_EXPIRED,
        advice=hint,
        retry=RetryPolicy.NEVER,
    )


def login() -> str:
    """Return the command that signs a user in so that it counts."""
    # While the variable is set, what the login writes is not looked at.
    return f"unset {KEY_VARIABLE}; {LOGIN}" if os.environ.get(KEY_VARIABLE) else LOGIN


def _title_and_hint(text: str, kind: SignInKind, account: str | None) -> tuple[str, str]:
    if "default credentials were not found" in text:
        return "nobody is signed in to Google Cloud", f"sign in with: {login()}"
    if kind is SignInKind.IMPERSONATED:
        return _impersonation(text, account or "the service account")
    if kind is SignInKind.KEY:
        return _key(text, account or "the service account")
    title, first = _BY_KIND.get(kind, ("the Google credentials can't be used", "sign in with: "))
    return title, f"{first}{login()}"


_BY_KIND: Final = {
    SignInKind.USER: ("the Google sign-in is over", "sign in again with: "),
    SignInKind.METADATA_SERVER: (
        "this machine's service account gives no token",
        "attach one (gcloud compute instances set-service-account VM), or sign in with: ",
    ),
    SignInKind.EXTERNAL: (
        "the external account's token can't be exchanged",
        "renew its source, or sign in with: ",
    ),
}


def _impersonation(text: str, account: str) -> tuple[str, str]:
    title = f"{account} can't be acted as"
    if "invalid_grant" in text or "reauth" in text:
        return "the Google sign-in is over", f"sign in again with: {login()}"
    if "getaccesstoken" in text or "permission" in text:
        return title, (
            "whoever owns it grants that with: gcloud iam service-accounts "
            f"add-iam-policy-binding {account} --member=user:YOU "
            "--role=roles/iam.serviceAccountTokenCreator"
        )
    if "has not been used" in text or "disabled" in text:
        return title, "switch its API on: gcloud services enable iamcredentials.googleapis.com"
    if "not found" in text or "404" in text:
        return title, "check its name: gcloud iam service-accounts list"
    return title, f"check --impersonate, or sign in again with: {login()}"


def _key(text: str, account: str) -> tuple[str, str]:
    title = f"Google does not accept the key of {account}"
    if "iat and exp" in text or "short-lived" in text:
        return (
            title,
            "this machine's clock is wrong: set it, as with: sudo timedatectl set-ntp true",
        )
    return title, (
        "it was deleted or disabled; make another with: gcloud iam service-accounts keys create "
        f"KEY.json --iam-account={account}, and name it in GOOGLE_APPLICATION_CREDENTIALS"
    )
