"""Rights, quota limits, firewall rules and host keys over REST, from a server that is told what."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from tpudash.domain.probe import FirewallRule, QuotaLimit
from tpudash.errors import NotAllowedError, NotFoundError, UnreachableError
from tpudash.gateways.access import HOSTS, GoogleAccess
from tpudash.gateways.clients import Clients
from tpudash.gateways.endpoint import parse_endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator


class Rest:
    """Answers each path with what it was told, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, Any]] = {}
        self.bodies: list[Any] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                if length:
                    outer.bodies.append(json.loads(self.rfile.read(length)))
                status, body = outer.answers.get(self.path, (404, {"error": {"message": "none"}}))
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = _answer  # noqa: N815 - as the base class names them

            def log_message(self, *_: Any) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@contextmanager
def serving() -> Iterator[Rest]:
    rest = Rest()
    try:
        yield rest
    finally:
        rest.server.shutdown()
        rest.server.server_close()


@pytest.fixture
def rest() -> Iterator[Rest]:
    with serving() as found:
        yield found


def access(rest: Rest | None) -> GoogleAccess:
    clients = Clients(parse_endpoint("127.0.0.1:9"), quota_project=None, impersonate=None)
    hosts = None if rest is None else dict.fromkeys(HOSTS, rest.url)
    return GoogleAccess(clients, "demo", hosts)


async def test_missing_permissions(rest: Rest) -> None:
    rest.answers["/v1/projects/demo:testIamPermissions"] = (200, {"permissions": ["a"]})
    assert await access(rest).missing_permissions(["a", "b"]) == {"b"}
    assert rest.bodies == [{"permissions": ["a", "b"]}]
    rest.answers["/v1/projects/demo:testIamPermissions"] = (200, {})
    assert await access(rest).missing_permissions(["a"]) == {"a"}


QUOTA = "/v1/projects/demo/locations/global/services/tpu.googleapis.com/quotaInfos?pageSize=500"


async def test_quota_limits_of_all_pages(rest: Rest) -> None:
    rest.answers[QUOTA] = (
        200,
        {
            "quotaInfos": [
                {
                    "quotaId": "Q1",
                    "dimensionsInfos": [
                        {"dimensions": {"zone": "us-central1-b"}, "details": {"value": "16"}},
                        {"dimensions": {"region": "us-east5"}, "details": {}},
                        {"applicableLocations": ["us-west1-c"], "details": {"value": "-1"}},
                    ],
                }
            ],
            "nextPageToken": "two",
        },
    )
    rest.answers[QUOTA + "&pageToken=two"] = (
        200,
        {"quotaInfos": [{"quotaId": "Q2", "dimensionsInfos": [{"details": {"value": "x"}}, {}]}]},
    )
    assert await access(rest).quota_limits() == (
        QuotaLimit("Q1", "us-central1-b", 16),
        QuotaLimit("Q1", "us-east5", 0),
        QuotaLimit("Q1", "us-west1-c", float("inf")),
        QuotaLimit("Q2", "", 0),
    )


def rule(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "network": "https://x/global/networks/default",
        "sourceRanges": ["0.0.0.0/0"],
        "allowed": [{"IPProtocol": "tcp", "ports": ["22"]}],
        **fields,
    }


async def test_ssh_rules(rest: Rest) -> None:
    rest.answers["/compute/v1/projects/demo/global/firewalls?maxResults=500"] = (
        200,
        {
            "items": [
                rule("ssh"),
                rule("range", allowed=[{"IPProtocol": "tcp", "ports": ["20-25"]}]),
                rule("all", allowed=[{"IPProtocol": "all"}]),
                rule("web", allowed=[{"IPProtocol": "tcp", "ports": ["80", "443-444"]}]),
                rule("udp", allowed=[{"IPProtocol": "udp", "ports": ["22"]}]),
                rule("out", direction="EGRESS"),
                rule("off", disabled=True),
                rule("other", network="https://x/global/networks/other"),
            ]
        },
    )
    found = await access(rest).ssh_rules("default")
    assert [one.name for one in found] == ["ssh", "range", "all"]
    assert found[0] == FirewallRule("ssh", ("0.0.0.0/0",))


async def test_host_keys(rest: Rest) -> None:
    name = "projects/demo/locations/us-central1-b/nodes/demo-1"
    told = {"queryValue": {"items": [{"key": "ssh-rsa"}]}}
    rest.answers[f"/v2/{name}:getGuestAttributes"] = (
        200,
        {"guestAttributes": [told, {"queryValue": {}}, told]},
    )
    assert await access(rest).host_keys(name) == 2


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (403, {"error": {"message": "denied"}}, NotAllowedError),
        (401, {}, NotAllowedError),
        (404, {}, NotFoundError),
        (500, {"error": "x"}, UnreachableError),
        (200, b"<html>", UnreachableError),
        (200, [], UnreachableError),
    ],
)
async def test_refusals(rest: Rest, status: int, body: Any, kind: type[Exception]) -> None:
    rest.answers["/v1/projects/demo:testIamPermissions"] = (status, body)
    with pytest.raises(kind):
        await access(rest).missing_permissions(["a"])


async def test_a_server_that_is_not_there() -> None:
    with serving() as rest:
        gone = access(rest)
    with pytest.raises(UnreachableError):
        await gone.missing_permissions(["a"])


async def test_a_local_endpoint_has_none_of_it() -> None:
    with pytest.raises(NotFoundError):
        await access(None).quota_limits()
