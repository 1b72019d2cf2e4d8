"""What a process must be given so that Google's clients in it reach the emulator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_DIRECT = "127.0.0.1,localhost,::1,metadata.google.internal,169.254.169.254"
_TOKEN = "emulated-token"  # noqa: S105  (not a secret: nothing checks it)


@dataclass(frozen=True, slots=True)
class ClientAddresses:
    """Where the faces are reached."""

    rest: str
    """HOST:PORT of the REST face."""

    storage: str
    """HOST:PORT of the Cloud Storage face."""

    proxy: str
    """HOST:PORT of the proxy that ends TLS."""

    authority: Path
    """Certificates that the proxy's clients must trust."""

    def environment(self) -> dict[str, str]:
        """Return the variables.

        STORAGE_EMULATOR_HOST is read by google-cloud-storage; the proxy, the certificates, the
        token and NO_GCE_CHECK by TensorFlow's `gs://` file system (tensorflow/core/platform/cloud);
        CLOUDSDK_* by gcloud. gRPC and plain requests to this machine pass the proxy by.
        """
        return {
            "STORAGE_EMULATOR_HOST": f"http://{self.storage}",
            "https_proxy": f"http://{self.proxy}",
            "no_proxy": _DIRECT,
            "NO_PROXY": _DIRECT,
            "CURL_CA_BUNDLE": str(self.authority),
            "GOOGLE_AUTH_TOKEN_FOR_TESTING": _TOKEN,
            "NO_GCE_CHECK": "true",
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": f"http://{self.storage}/storage/v1/",
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_TPU": f"http://{self.rest}/",
            "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true",
            "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "true",
            "CLOUDSDK_CORE_DISABLE_FILE_LOGGING": "true",
            "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
            "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true",
        }
