"""A throw-away certificate authority, so that clients which insist on TLS can be answered.

Its own key is forgotten as soon as the one server certificate is signed.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

_VALID = timedelta(days=365)
_RENEW = timedelta(days=30)
_NAME = "tpudash emulator"
HOSTS = (
    "www.googleapis.com",
    "storage.googleapis.com",
    "*.storage.googleapis.com",
    "tpu.googleapis.com",
    "localhost",
)


@dataclass(frozen=True, slots=True)
class Authority:
    """The files of a certificate authority."""

    bundle: Path
    """Certificates to trust: its own, and those of the public authorities."""

    server: Path
    """The server's key and certificate."""

    def context(self) -> ssl.SSLContext:
        """Return what a server needs to end TLS."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server)
        return context


def prepare_authority(folder: Path) -> Authority:
    """Return the authority in a folder, made anew when there is none or it soon expires."""
    authority = Authority(folder / "ca-bundle.pem", folder / "server.pem")
    if not (authority.bundle.exists() and _is_good(authority.server)):
        folder.mkdir(parents=True, exist_ok=True)
        _make(authority)
    return authority


def _is_good(server: Path) -> bool:
    from cryptography import x509

    try:
        certificate = x509.load_pem_x509_certificate(server.read_bytes())
    except (OSError, ValueError):
        return False
    return certificate.not_valid_after_utc - datetime.now(UTC) > _RENEW


def _make(authority: Authority) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = _subject(f"{_NAME} authority")
    basic = x509.BasicConstraints(ca=True, path_length=0)
    root = _builder(issuer, issuer, ca_key.public_key()).add_extension(basic, critical=True)
    identifier = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
    root = root.add_extension(identifier, critical=False)
    names = [x509.DNSName(host) for host in HOSTS]
    addresses = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    leaf = _builder(_subject(_NAME), issuer, key.public_key()).add_extension(
        x509.SubjectAlternativeName([*names, *addresses]), critical=False
    )
    leaf = leaf.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    by = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
    leaf = leaf.add_extension(by, critical=False)
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write(authority.server, private + _signed(leaf, ca_key).public_bytes(pem), mode=0o600)
    _write(authority.bundle, _signed(root, ca_key).public_bytes(pem) + _public_roots(), mode=0o644)


def _subject(name: str) -> Any:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(subject: Any, issuer: Any, public_key: Any) -> Any:
    from cryptography import x509

    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + _VALID)
    )


def _signed(builder: Any, key: Any) -> Any:
    from cryptography.hazmat.primitives import hashes

    return builder.sign(key, hashes.SHA256())


def _public_roots() -> bytes:
    """Return the public authorities, so that other sites stay reachable."""
    import certifi

    with open(certifi.where(), "rb") as file:  # noqa: PTH123  (a path as text)
        return b"\n" + file.read()


def _write(path: Path, content: bytes, *, mode: int) -> None:
    temporary = path.with_name(f".{path.name}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    temporary.replace(path)
