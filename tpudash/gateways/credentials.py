"""Application Default Credentials: found off the event loop, with one clear line when missing.

Source: https://cloud.google.com/docs/authentication/application-default-credentials
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tpudash.gateways.credential_files import FilesAsNow, credential_files
from tpudash.gateways.sign_in_errors import SignInKind, explained

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tpudash.errors import TpudashError

CLOUD_PLATFORM: Final = "https://www.googleapis.com/auth/cloud-platform"


@dataclass(frozen=True, slots=True)
class SignIn:
    """Credentials and what they say of themselves.

    Attributes:
        credentials: A `google.auth.credentials.Credentials`.
        project: The project that the credentials came with, or None.
        account: Who is signed in, or None if the credentials do not say.
        kind: How the user came by them, which decides what renews them.
        files: The files that they may have come from, as they were.
    """

    credentials: Any
    project: str | None
    account: str | None
    kind: SignInKind = SignInKind.UNKNOWN
    files: FilesAsNow | None = None

    def scoped(self, scopes: Sequence[str]) -> Any:
        """Return the credentials narrowed to some OAuth scopes, where their kind can be."""
        from google.auth.credentials import Scoped

        if isinstance(self.credentials, Scoped):
            return self.credentials.with_scopes(list(scopes))  # type: ignore[no-untyped-call]
        return self.credentials


def find_sign_in(*, quota_project: str | None, impersonate: str | None) -> SignIn:
    """Find the credentials of this machine and user; blocks on files and the metadata server.

    Raises:
        NotAllowedError: There are none, or they can't be used; the hint says which command helps.
    """
    import google.auth
    from google.auth import exceptions

    files = credential_files()
    with warnings.catch_warnings():
        # "No quota project" would be printed over the screen; its refusals are classified instead.
        warnings.simplefilter("ignore")
        try:
            credentials, project = google.auth.default(
                scopes=[CLOUD_PLATFORM], quota_project_id=quota_project
            )
            if impersonate:
                credentials = _impersonated(credentials, impersonate, quota_project)
            # On Compute Engine this asks the metadata server, which must not happen on the loop.
            _ = credentials.universe_domain
        except (exceptions.GoogleAuthError, OSError, ValueError) as error:
            raise not_usable(error) from error
    kind = kind_of(credentials)
    return SignIn(credentials, project, impersonate or _account_of(credentials), kind, files)


def kind_of(credentials: Any) -> SignInKind:
    """Return how somebody came by credentials."""
    module, name = type(credentials).__module__, type(credentials).__name__
    if module == "google.oauth2.credentials":
        return SignInKind.USER
    if module == "google.oauth2.service_account":
        return SignInKind.KEY
    if module.startswith("google.auth.compute_engine"):
        return SignInKind.METADATA_SERVER
    if module == "google.auth.impersonated_credentials":
        return SignInKind.IMPERSONATED
    return SignInKind.EXTERNAL if "external" in f"{module}.{name}" else SignInKind.UNKNOWN


def _impersonated(source: Any, account: str, quota_project: str | None) -> Any:
    from google.auth import impersonated_credentials

    make: Any = impersonated_credentials.Credentials
    return make(
        source_credentials=source,
        target_principal=account,
        target_scopes=[CLOUD_PLATFORM],
        quota_project_id=quota_project,
    )


def _account_of(credentials: Any) -> str | None:
    for attribute in ("service_account_email", "account"):
        value = getattr(credentials, attribute, None)
        if isinstance(value, str) and value and value != "default":
            return value
    return None


def not_usable(error: Exception, sign_in: SignIn | None = None) -> TpudashError:
    """Return what to tell a user whose credentials could not be found or renewed."""
    kind = sign_in.kind if sign_in else SignInKind.UNKNOWN
    return explained(error, kind, sign_in.account if sign_in else None)
