"""Connecting: what answers, what does not, and who is signed in."""

from __future__ import annotations

import asyncio
import random
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import google.auth.credentials
import google.auth.exceptions
import pytest

from tests.contract.fake_google import TPU, FastClock, connected, fake_google, never, refusal
from tests.emulator_fixture import eventually
from tpudash.domain.failure import ErrorClass
from tpudash.errors import ConfigurationError, ExitCode, NotAllowedError, UnreachableError
from tpudash.gateways import clients as clients_module
from tpudash.gateways.clients import Clients
from tpudash.gateways.connection import Connection, ConnectionOptions
from tpudash.gateways.credentials import SignIn, find_sign_in
from tpudash.gateways.retry import Caller, RetryRules

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.emulator_fixture import Cloud as Emulator


# google-auth's classes are not annotated.
ANONYMOUS: Any = google.auth.credentials.AnonymousCredentials
REFRESH_ERROR: Any = google.auth.exceptions.RefreshError


def connection_to(endpoint: str | None, project: str | None = "demo") -> Connection:
    return Connection(ConnectionOptions(project=project, endpoint=endpoint))


async def test_the_emulator_is_known_as_one(emulator: Emulator) -> None:
    async with connected(emulator.endpoint) as cloud:
        assert (cloud.is_emulator, cloud.project, cloud.account) == (True, "demo", None)


async def test_another_server_is_no_emulator() -> None:
    async with fake_google() as fake, connected(fake.endpoint, "other") as cloud:
        assert (cloud.is_emulator, cloud.project) == (False, "other")


async def test_all_who_ask_share_one_connection_until_it_is_closed() -> None:
    async with fake_google() as fake:
        connection = connection_to(fake.endpoint)
        first = await connection.cloud()
        assert await connection.cloud() is first
        await connection.close()
        second = await connection.cloud()
        assert second is not first
        await connection.close()
        await connection.close()


async def test_nothing_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    await assert_unreachable(f"127.0.0.1:{port}")


@pytest.fixture
def black_hole() -> Iterator[int]:
    """A port that accepts connections and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)
        yield listener.getsockname()[1]


async def test_what_listens_never_answers(black_hole: int) -> None:
    await assert_unreachable(f"127.0.0.1:{black_hole}")


async def assert_unreachable(endpoint: str) -> None:
    connection = connection_to(endpoint)
    start = time.monotonic()
    with pytest.raises(UnreachableError) as caught:
        await connection.cloud()
    assert time.monotonic() - start < 2
    assert endpoint in caught.value.title
    assert caught.value.detail
    assert "emulator serve" in caught.value.hint
    await connection.close()


@pytest.mark.parametrize(
    "endpoint",
    [
        "10.0.0.1:80",
        "example.com:443",
        "127.0.0.1.example.com:443",
        "0.0.0.0:80",
        "[2001:db8::1]:80",
        "2130706433:80",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:0",
        "127.0.0.1:65536",
        "127.0.0.1:x",
        ":80",
        "http://127.0.0.1:80",
    ],
)
async def test_an_endpoint_that_is_none_or_elsewhere_is_refused_before_any_packet(
    endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_channel(_: Clients) -> Any:
        raise AssertionError("a channel was opened")

    monkeypatch.setattr(Clients, "channel", no_channel)
    with pytest.raises(ConfigurationError) as caught:
        await connection_to(endpoint).cloud()
    assert caught.value.exit_code is ExitCode.USAGE
    assert "HOST:PORT" in caught.value.hint


async def test_a_project_is_needed() -> None:
    async with fake_google() as fake:
        connection = connection_to(fake.endpoint, project="")
        with pytest.raises(ConfigurationError) as caught:
            await connection.cloud()
        assert "--project" in caught.value.hint
        await connection.close()


async def test_nobody_is_signed_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    connection = connection_to(None)
    with pytest.raises(NotAllowedError) as caught:
        await connection.cloud()
    assert "gcloud auth application-default login" in caught.value.hint
    assert caught.value.failure is not None
    assert caught.value.failure.error_class is ErrorClass.AUTH_EXPIRED
    await connection.close()


async def test_a_credentials_file_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "key.json"
    path.write_text("not json")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    with pytest.raises(NotAllowedError) as caught:
        find_sign_in(quota_project=None, impersonate=None)
    assert str(path) in caught.value.detail


class Login:
    """Credentials that a test hands out in place of the machine's own."""

    def __init__(self) -> None:
        self.found = 0

    def find(self, **_: Any) -> SignIn:
        self.found += 1
        return SignIn(ANONYMOUS(), "mine", "me")


async def test_credentials_are_read_again_once_they_have_expired(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    login = Login()
    monkeypatch.setattr(clients_module, "find_sign_in", login.find)
    connection = Connection(ConnectionOptions())
    first = await connection.cloud()
    assert (first.project, first.account) == ("mine", "me")
    assert await connection.cloud() is first
    assert login.found == 1

    gateway: Any = first.tpu
    caller: Caller = gateway._caller

    async def expired(_: float) -> None:
        raise REFRESH_ERROR("invalid_grant: Token has been expired or revoked.")

    with pytest.raises(NotAllowedError) as caught:
        await caller.read("list nodes", expired, timeout_s=1)
    assert "application-default login" in caught.value.hint
    assert await connection.cloud() is not first
    assert login.found == 2
    await connection.close()


async def test_a_server_that_knows_us_no_more_gets_fresh_gateways() -> None:
    def refuse(_: Any) -> Any:
        raise refusal("UNAUTHENTICATED", "Request had invalid authentication credentials.")

    async with fake_google() as fake:
        fake.on(f"{TPU}/ListNodes", refuse)
        connection = Connection(
            ConnectionOptions(project="demo", endpoint=fake.endpoint), clock=FastClock()
        )
        first = await connection.cloud()
        with pytest.raises(NotAllowedError):
            await first.tpu.list_nodes()
        assert await connection.cloud() is not first
        assert fake.calls[f"{TPU}/ListNodes"] == 1
        await connection.close()


def test_importing_the_gateways_imports_nothing_of_googles() -> None:
    program = (
        "import sys, tpudash.gateways.connection, tpudash.diagnostics.classifier\n"
        "found = {'grpc', 'google.protobuf', 'google.api_core'} & set(sys.modules)\n"
        "sys.exit(' '.join(found) or 0)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ran.stderr == ""
    assert ran.returncode == 0


async def test_a_closed_connection_ends_what_waits_for_it() -> None:
    async with fake_google() as fake:
        fake.on(f"{TPU}/ListNodes", never)
        connection = connection_to(fake.endpoint)
        cloud = await connection.cloud()
        asking = asyncio.create_task(cloud.tpu.list_nodes("us-east1-b"))
        async with asyncio.timeout(5):
            await eventually(lambda: fake.calls, "the question arrives")
            await connection.close()
            with pytest.raises(UnreachableError):
                await asking


def test_pauses_grow_and_are_spread() -> None:
    rules = RetryRules()
    generator = random.Random(1)
    for attempt in range(1, 10):
        delays = {rules.delay_s(attempt, ErrorClass.INTERNAL, generator) for _ in range(50)}
        bound = min(rules.first_delay_s * rules.factor ** (attempt - 1), rules.longest_delay_s)
        assert len(delays) > 10
        assert bound / 2 <= min(delays) <= max(delays) <= bound
    assert rules.delay_s(1, ErrorClass.RATE_LIMIT, generator) > rules.first_delay_s
