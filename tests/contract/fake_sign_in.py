"""What hands out tokens at Google, on this machine: token endpoint, IAM credentials, metadata."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import google.auth.iam
import google.oauth2.credentials
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth.compute_engine import _metadata

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

ACCOUNT = "viewer@demo.iam.gserviceaccount.com"


class FakeSignIn:
    """Answers as a test tells it.

    Attributes:
        refusal: (HTTP status, JSON) that the token endpoint answers with, or None to grant.
        impersonation_refusal: The same for the IAM credentials endpoint.
        silent: Set to let the token endpoint hang until it is cleared.
        asked: (path, form or JSON) of every request.
    """

    def __init__(self) -> None:
        self.refusal: tuple[int, dict[str, Any]] | None = None
        self.impersonation_refusal: tuple[int, dict[str, Any]] | None = None
        self.silent = threading.Event()
        self.lifetime_s = 3600
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.granted = 0
        self.url = ""

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")

    def answer(self, path: str, body: bytes) -> tuple[int, dict[str, Any] | str]:
        parts = urlsplit(path)
        said: dict[str, Any]
        if body[:1] == b"{":
            said = json.loads(body)
        else:
            said = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        said |= {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.asked.append((parts.path, said))
        if parts.path.endswith(":generateAccessToken"):
            return self._impersonate()
        if parts.path == "/":
            return 200, {}
        if parts.path.startswith("/computeMetadata"):
            return self._metadata(parts.path)
        if parts.path == "/token":
            return self._token()
        return 404, {"error": "not_found"}

    def _token(self) -> tuple[int, dict[str, Any]]:
        while self.silent.is_set():
            time.sleep(0.02)  # a thread of the server's own, which hangs as it is told to
        if self.refusal is not None:
            return self.refusal
        self.granted += 1
        return 200, {
            "access_token": f"token-{self.granted}",
            "expires_in": self.lifetime_s,
            "token_type": "Bearer",
        }

    def _impersonate(self) -> tuple[int, dict[str, Any]]:
        if self.impersonation_refusal is not None:
            return self.impersonation_refusal
        return 200, {"accessToken": "impersonated", "expireTime": "2099-01-01T00:00:00Z"}

    def _metadata(self, path: str) -> tuple[int, dict[str, Any] | str]:
        if path.endswith("/token"):
            return self._token()
        if path.endswith("/project/project-id"):
            return 200, "on-a-vm"
        if path.endswith("/universe/universe-domain"):
            return 200, "googleapis.com"
        if "/service-accounts/" in path:
            return 200, {"email": ACCOUNT, "scopes": ["cloud-platform"], "aliases": ["default"]}
        return 200, {}


class _Handler(BaseHTTPRequestHandler):
    fake: FakeSignIn

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, content = self.fake.answer(self.path, body)
        is_text = isinstance(content, str)
        data = (content if isinstance(content, str) else json.dumps(content)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if is_text else "application/json")
        self.send_header("Metadata-Flavor", "Google")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = _answer  # noqa: N815

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def fake_sign_in(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[FakeSignIn]:
    """Serve on a port of its own, and have google-auth ask there and nowhere else."""
    fake = FakeSignIn()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"fake": fake}))
    fake.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    token_uri = f"{fake.url}/token"
    monkeypatch.setattr(google.oauth2.credentials, "_GOOGLE_OAUTH2_TOKEN_ENDPOINT", token_uri)
    iam = f"{fake.url}/v1/projects/-/serviceAccounts/{{}}:generateAccessToken"
    monkeypatch.setattr(google.auth.iam, "_IAM_ENDPOINT", iam)
    for name in ("GOOGLE_CLOUD_PROJECT", "GOOGLE_APPLICATION_CREDENTIALS", "GCE_METADATA_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(folder / "gcloud"))
    monkeypatch.setattr(_metadata, "_NO_GCE_CHECK", True)
    monkeypatch.setenv("NO_PROXY", "*")
    try:
        yield fake
    finally:
        fake.silent.clear()
        server.shutdown()
        server.server_close()
        thread.join()


def on_a_virtual_machine(fake: FakeSignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have google-auth find itself on a VM whose metadata server is the fake."""
    monkeypatch.setattr(_metadata, "_NO_GCE_CHECK", False)
    monkeypatch.setattr(_metadata, "_GCE_METADATA_HOST", fake.host)
    monkeypatch.setenv("GCE_METADATA_IP", fake.host)


def log_in(folder: Path, refresh_token: str = "one", **more: str) -> Path:
    """Write what `gcloud auth application-default login` writes."""
    path = folder / "gcloud" / "application_default_credentials.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        json.dumps(
            {
                "type": "authorized_user",
                "client_id": "client",
                "client_secret": "secret",
                "refresh_token": refresh_token,
                **more,
            }
        )
    )
    return path


def write_key(path: Path, token_uri: str) -> None:
    """Write a service account's key."""
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_text(
        json.dumps(
            {
                "type": "service_account",
                "project_id": "of-the-key",
                "private_key_id": "1",
                "private_key": pem.decode(),
                "client_email": ACCOUNT,
                "client_id": "2",
                "token_uri": token_uri,
            }
        )
    )
