"""Application Default Credentials: found off the event loop, with one clear line when missing.

Source: https://cloud.google.com/docs/authentication/application-default-credentials
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Final

from tpudash.errors import NotAllowedError, TpudashError
from tpudash.gateways.status import status_of
from tpudash.gateways.translate import to_error

CLOUD_PLATFORM: Final = "https://www.googleapis.com/auth/cloud-platform"


@dataclass(frozen=True, slots=True)
class SignIn:
    """Credentials and what they say of themselves.

    Attributes:
        credentials: A `google.auth.credentials.Credentials`.
        project: The project that the credentials came with, or None.
        account: Who is signed in, or None if the credentials do not say.
    """

    credentials: Any
    project: str | None
    account: str | None


def find_sign_in(*, quota_project: str | None, impersonate: str | None) -> SignIn:
    """Find the credentials of this machine and user; blocks on files and the metadata server.

    Raises:
        NotAllowedError: There are none, or they can't be used; the hint says which command helps.
    """
    import google.auth
    from google.auth import exceptions

    with warnings.catch_warnings():
        # "No quota project" would be printed over the screen; its refusals are classified instead.
        warnings.simplefilter("ignore")
        try:
            credentials, project = google.auth.default(
                scopes=[CLOUD_PLATFORM], quota_project_id=quota_project
            )
            if impersonate:
                credentials = _impersonated(credentials, impersonate)
            # On Compute Engine this asks the metadata server, which must not happen on the loop.
            _ = credentials.universe_domain
        except (exceptions.GoogleAuthError, OSError, ValueError) as error:
            raise _not_usable(error) from error
    return SignIn(credentials, project, impersonate or _account_of(credentials))


def _impersonated(source: Any, account: str) -> Any:
    from google.auth import impersonated_credentials

    make: Any = impersonated_credentials.Credentials
    return make(source_credentials=source, target_principal=account, target_scopes=[CLOUD_PLATFORM])


def _account_of(credentials: Any) -> str | None:
    for attribute in ("service_account_email", "account"):
        value = getattr(credentials, attribute, None)
        if isinstance(value, str) and value and value != "default":
            return value
    return None


def _not_usable(error: Exception) -> TpudashError:
    found = to_error(status_of(error), "Google Cloud", changes=False)
    if isinstance(found, NotAllowedError):
        return found
    return NotAllowedError(
        "the Google credentials can't be used",
        detail=str(error),
        hint="sign in with: gcloud auth application-default login",
        failure=found.failure,
    )
