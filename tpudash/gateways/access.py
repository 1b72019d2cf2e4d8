"""What else can be asked of Google about a project: rights, quota limits, firewall, boot.

Plain REST with the caller's own credentials; every call only reads. A local endpoint has none of
these services.

Source: https://cloud.google.com/resource-manager/reference/rest/v1/projects/testIamPermissions,
https://cloud.google.com/docs/quotas/reference/rest, https://cloud.google.com/compute/docs/reference
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from tpudash.domain.probe import FirewallRule, QuotaLimit
from tpudash.errors import NotAllowedError, NotFoundError, TpudashError, UnreachableError
from tpudash.gateways.clients import import_quietly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tpudash.gateways.clients import Clients

CALL_S: Final = 6.0
MOST_PAGES: Final = 20
LONGEST_ANSWER: Final = 8 * 2**20
HOSTS: Final = {
    "cloudresourcemanager": "https://cloudresourcemanager.googleapis.com",
    "cloudquotas": "https://cloudquotas.googleapis.com",
    "compute": "https://compute.googleapis.com",
    "tpu": "https://tpu.googleapis.com",
}


class GoogleAccess:
    """`AccessGateway` over REST.

    Args:
        clients: Where credentials come from.
        project: The project.
        hosts: Addresses of the services by name; only tests have others.
    """

    def __init__(
        self, clients: Clients, project: str, hosts: Mapping[str, str] | None = None
    ) -> None:
        self._clients = clients
        self._project = project
        self._hosts = HOSTS if hosts is None else hosts
        self._has_own_hosts = hosts is not None

    async def missing_permissions(self, names: Sequence[str]) -> frozenset[str]:
        """Return which of some rights the caller does not hold on the project."""
        url = f"/v1/projects/{quote(self._project)}:testIamPermissions"
        answer = await self._ask("cloudresourcemanager", url, {"permissions": list(names)})
        return frozenset(names) - frozenset(answer.get("permissions", ()))

    async def quota_limits(self) -> tuple[QuotaLimit, ...]:
        """Return the limits of TPUs by zone and region; they say nothing of what is used."""
        path = (
            f"/v1/projects/{quote(self._project)}/locations/global/services/"
            "tpu.googleapis.com/quotaInfos?pageSize=500"
        )
        found: list[QuotaLimit] = []
        token = ""
        for _ in range(MOST_PAGES):
            page = await self._ask("cloudquotas", path + (f"&pageToken={token}" if token else ""))
            for info in page.get("quotaInfos", ()):
                found.extend(_limits_of(info))
            token = quote(page.get("nextPageToken") or "")
            if not token:
                break
        return tuple(found)

    async def ssh_rules(self, network: str) -> tuple[FirewallRule, ...]:
        """Return the ingress rules of a network that let TCP 22 in."""
        path = f"/compute/v1/projects/{quote(self._project)}/global/firewalls?maxResults=500"
        answer = await self._ask("compute", path)
        rules = answer.get("items", ())
        return tuple(
            FirewallRule(str(rule.get("name")), tuple(rule.get("sourceRanges", ())))
            for rule in rules
            if str(rule.get("network", "")).endswith(f"/{network}") and _lets_ssh_in(rule)
        )

    async def host_keys(self, node: str) -> int:
        """Return how many workers of a node have told their SSH host keys."""
        answer = await self._ask(
            "tpu", f"/v2/{quote(node)}:getGuestAttributes", {"queryPath": "hostkeys/"}
        )
        workers = answer.get("guestAttributes", ())
        return sum(bool(worker.get("queryValue", {}).get("items")) for worker in workers)

    async def _ask(
        self, service: str, path: str, body: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        host = self._host(service)
        session = await self._session()

        def call() -> tuple[int, bytes]:
            answer = session.request(
                "GET" if body is None else "POST",
                host + path,
                data=None if body is None else json.dumps(body),
                headers={"Content-Type": "application/json"},
                timeout=CALL_S,
            )
            return answer.status_code, answer.content[:LONGEST_ANSWER]

        return _read(*await _in_time(call, service), service)

    def _host(self, service: str) -> str:
        """Return a service's address.

        Raises:
            NotFoundError: A local endpoint has no such service.
        """
        if not self._clients.is_local or self._has_own_hosts:
            return self._hosts[service]
        raise NotFoundError(f"a local endpoint has no {service} service")

    async def _session(self) -> Any:
        requests = await asyncio.to_thread(import_quietly, "google.auth.transport.requests")
        if self._clients.is_local:
            anonymous = await asyncio.to_thread(import_quietly, "google.auth.credentials")
            return requests.AuthorizedSession(
                anonymous.AnonymousCredentials(), refresh_status_codes=()
            )
        return requests.AuthorizedSession((await self._clients.sign_in()).credentials)


async def _in_time(call: Callable[[], tuple[int, bytes]], service: str) -> tuple[int, bytes]:
    try:
        async with asyncio.timeout(CALL_S + 1):
            return await asyncio.to_thread(call)
    except TimeoutError as error:
        raise UnreachableError(f"no answer from {service}") from error
    except Exception as error:
        # requests, urllib3 and google-auth have exceptions of their own, and share no base.
        raise UnreachableError(
            f"no answer from {service}", detail=f"{type(error).__name__}: {error}"
        ) from error


def _read(status: int, content: bytes, service: str) -> dict[str, Any]:
    """Return an answer.

    Raises:
        TpudashError: It is a refusal, or no JSON object.
    """
    try:
        answer = json.loads(content or b"{}")
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise UnreachableError(f"{service} answers with something else", detail=f"HTTP {status}")
    if status < 400:
        return answer
    error = answer.get("error")
    detail = str(error.get("message", "")) if isinstance(error, dict) else f"HTTP {status}"
    kind: type[TpudashError] = UnreachableError
    if status in {401, 403}:
        kind = NotAllowedError
    elif status == 404:
        kind = NotFoundError
    raise kind(f"{service} refuses", detail=detail)


def _limits_of(info: Mapping[str, Any]) -> Iterator[QuotaLimit]:
    """Yield the limits of one quotaInfo: an entry without details is a limit of 0."""
    quota_id = str(info.get("quotaId", ""))
    for entry in info.get("dimensionsInfos", ()):
        dimensions = entry.get("dimensions") or {}
        value = (entry.get("details") or {}).get("value")
        try:
            limit = float(value) if value is not None else 0.0
        except (TypeError, ValueError):
            continue
        # -1 means without a limit.
        limit = float("inf") if limit < 0 else limit
        place = dimensions.get("zone") or dimensions.get("region")
        if place:
            yield QuotaLimit(quota_id, str(place), limit)
            continue
        for location in entry.get("applicableLocations", ()) or [""]:
            yield QuotaLimit(quota_id, str(location), limit)


def _lets_ssh_in(rule: Mapping[str, Any]) -> bool:
    if rule.get("direction", "INGRESS") != "INGRESS" or rule.get("disabled"):
        return False
    return any(_allows_22(allowed) for allowed in rule.get("allowed", ()))


def _allows_22(allowed: Mapping[str, Any]) -> bool:
    if str(allowed.get("IPProtocol", "")).lower() not in {"tcp", "6", "all"}:
        return False
    ports = allowed.get("ports")
    if not ports:
        return True
    for text in ports:
        first, _, last = str(text).partition("-")
        if first.isdigit() and int(first) <= 22 <= int(last if last.isdigit() else first):
            return True
    return False
