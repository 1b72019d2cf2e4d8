"""Who calls: tokens of every kind of sign-in reach the service, and what is said when none do."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import grpc.aio
import pytest
from google.cloud import monitoring_v3, tpu_v2
from google.cloud.logging_v2 import types as logging_types

from tests.contract.command_line import CommandLine
from tests.contract.fake_google import LOGGING, TPU, FakeGoogle, FastClock, fake_google, refusal
from tests.contract.fake_sign_in import (
    ACCOUNT,
    FakeSignIn,
    fake_sign_in,
    log_in,
    on_a_virtual_machine,
    write_key,
)
from tests.emulator_fixture import eventually
from tpudash.config.settings import Intervals
from tpudash.domain.failure import ErrorClass
from tpudash.errors import NotAllowedError, TpudashError, UnreachableError
from tpudash.gateways import tokens as tokens_module
from tpudash.gateways.connection import Connection, ConnectionOptions
from tpudash.pollers.link import Link
from tpudash.pollers.poller_set import PollerSet, Tools
from tpudash.store.snapshot import NODES, SourceState
from tpudash.store.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from tpudash.gateways.protocols import Cloud
    from tpudash.store.snapshot import SourceStatus

LIST = f"{TPU}/ListNodes"
SERIES = "/google.monitoring.v3.MetricService/ListTimeSeries"
EXPIRED = (400, {"error": "invalid_grant", "error_description": "Token has been expired."})
REAUTH = (400, {"error": "invalid_grant", "error_subtype": "invalid_rapt"})
LOGIN = "gcloud auth application-default login"


@pytest.fixture
def sign_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSignIn]:
    with fake_sign_in(monkeypatch, tmp_path) as fake:
        yield fake


@pytest.fixture
async def google() -> AsyncIterator[FakeGoogle]:
    async with fake_google() as fake:
        fake.on(LIST, lambda _: tpu_v2.ListNodesResponse())
        fake.on(SERIES, lambda _: monitoring_v3.ListTimeSeriesResponse())
        fake.on(f"{LOGGING}/ListLogEntries", lambda _: logging_types.ListLogEntriesResponse())
        yield fake


@asynccontextmanager
async def signed_in(google: FakeGoogle, **options: Any) -> AsyncIterator[Cloud]:
    """Connect as to Google Cloud, but to the fake's plaintext port."""

    def dial(host: str, interceptors: list[Any]) -> Any:
        google.hosts.append(host)
        return grpc.aio.insecure_channel(google.endpoint, interceptors=interceptors)

    connection = Connection(
        ConnectionOptions(**{"project": "demo", **options}), clock=FastClock(), dial=dial
    )
    try:
        yield await connection.cloud()
    finally:
        await connection.close()


async def test_a_user_who_is_signed_in(
    sign_in: FakeSignIn, google: FakeGoogle, tmp_path: Path
) -> None:
    log_in(tmp_path, quota_project_id="payer")
    async with signed_in(google) as cloud:
        await asyncio.gather(*(cloud.tpu.list_nodes() for _ in range(5)))
        await cloud.logging.list_entries("x")
    assert google.hosts == ["tpu.googleapis.com", "logging.googleapis.com"]
    assert google.metadata["authorization"] == "Bearer token-1"
    assert google.metadata["x-goog-user-project"] == "payer"
    assert sign_in.granted == 1, "one renewal for all who wait"


async def test_a_quota_project_from_the_settings_wins(
    sign_in: FakeSignIn, google: FakeGoogle, tmp_path: Path
) -> None:
    log_in(tmp_path, quota_project_id="payer")
    async with signed_in(google, quota_project="other") as cloud:
        await cloud.tpu.list_nodes()
    assert google.metadata["x-goog-user-project"] == "other"


async def test_a_tail_carries_a_token_too(
    sign_in: FakeSignIn, google: FakeGoogle, tmp_path: Path
) -> None:
    log_in(tmp_path)

    async def tail(_: Any) -> AsyncIterator[Any]:
        entry = logging_types.LogEntry(log_name="x", text_payload="said", insert_id="1")
        yield logging_types.TailLogEntriesResponse(entries=[entry])
        await asyncio.get_running_loop().create_future()

    google.tail = tail
    async with signed_in(google) as cloud:
        batches = cloud.logging.tail("x")
        async with asyncio.timeout(10):
            async for batch in batches:
                if batch.entries:
                    break
    assert batch.entries[0].text == "said"
    assert google.metadata["authorization"] == "Bearer token-1"


async def test_a_service_account_key(
    sign_in: FakeSignIn, google: FakeGoogle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_key(tmp_path / "key.json", f"{sign_in.url}/token")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    async with signed_in(google, project=None) as cloud:
        assert (cloud.project, cloud.account) == ("of-the-key", ACCOUNT)
        await cloud.tpu.list_nodes()
    assert google.metadata["authorization"] == "Bearer token-1"


async def test_a_key_that_was_deleted(
    sign_in: FakeSignIn, google: FakeGoogle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_key(tmp_path / "key.json", f"{sign_in.url}/token")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    sign_in.refusal = (400, {"error": "invalid_grant", "error_description": "Invalid JWT"})
    async with signed_in(google) as cloud:
        error = await refused(cloud)
    assert ACCOUNT in error.title
    assert "gcloud iam service-accounts keys create" in error.hint


async def test_a_virtual_machine(
    sign_in: FakeSignIn, google: FakeGoogle, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_virtual_machine(sign_in, monkeypatch)
    async with signed_in(google, project=None) as cloud:
        assert cloud.project == "on-a-vm"
        await cloud.tpu.list_nodes()
    assert google.metadata["authorization"] == "Bearer token-1"


async def test_a_virtual_machine_without_a_service_account(
    sign_in: FakeSignIn, google: FakeGoogle, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_virtual_machine(sign_in, monkeypatch)
    async with signed_in(google) as cloud:
        sign_in.refusal = (404, {"error": "no service account"})
        error = await refused(cloud)
    assert "this machine's service account" in error.title
    assert "set-service-account" in error.hint


async def test_acting_as_a_service_account(
    sign_in: FakeSignIn, google: FakeGoogle, tmp_path: Path
) -> None:
    log_in(tmp_path)
    async with signed_in(google, impersonate=ACCOUNT) as cloud:
        assert cloud.account == ACCOUNT
        await cloud.tpu.list_nodes()
    assert google.metadata["authorization"] == "Bearer impersonated"
    asked = [path for path, _ in sign_in.asked]
    assert f"/v1/projects/-/serviceAccounts/{ACCOUNT}:generateAccessToken" in asked


async def test_acting_as_a_service_account_without_the_right_to(
    sign_in: FakeSignIn, google: FakeGoogle, tmp_path: Path
) -> None:
    log_in(tmp_path)
    message = "Permission 'iam.serviceAccounts.getAccessToken' denied on resource"
    sign_in.impersonation_refusal = (403, {"error": {"code": 403, "message": message}})
    async with signed_in(google, impersonate=ACCOUNT) as cloud:
        error = await refused(cloud)
    assert ACCOUNT in error.title
    assert "roles/iam.serviceAccountTokenCreator" in error.hint


async def test_watch_mode_asks_for_no_more_than_reading(
    sign_in: FakeSignIn, google: FakeGoogle, tmp_path: Path
) -> None:
    log_in(tmp_path)
    now = datetime.now(UTC)
    async with signed_in(google, impersonate=ACCOUNT, read_only=True) as cloud:
        await cloud.tpu.list_nodes()
        await cloud.logging.list_entries("x")
        minute = timedelta(minutes=1)
        await cloud.monitoring.list_series("m", start=now - minute, end=now, period=minute)
    scopes = [said["scope"] for path, said in sign_in.asked if path.endswith("AccessToken")]
    assert sorted(scope[0].rpartition("/")[2] for scope in scopes) == [
        "cloud-platform",
        "logging.read",
        "monitoring.read",
    ]


@pytest.mark.parametrize("answer", [EXPIRED, REAUTH], ids=["expired", "reauth"])
async def test_a_sign_in_that_is_over_and_is_renewed_elsewhere(
    sign_in: FakeSignIn, google: FakeGoogle, tmp_path: Path, answer: tuple[int, dict[str, Any]]
) -> None:
    log_in(tmp_path)
    sign_in.refusal = answer
    async with signed_in(google) as cloud:
        error = await refused(cloud)
        assert error.hint == f"sign in again with: {LOGIN}"
        assert google.calls[LIST] == 0, "nothing is sent without a token"
        sign_in.refusal = None
        log_in(tmp_path, "another")
        await cloud.tpu.list_nodes()
    assert sign_in.asked[-1][1]["refresh_token"] == "another"


async def test_another_user_signs_in_while_the_old_token_would_still_do(
    sign_in: FakeSignIn, google: FakeGoogle, tmp_path: Path
) -> None:
    log_in(tmp_path)
    async with signed_in(google) as cloud:
        await cloud.tpu.list_nodes()
        log_in(tmp_path, "of somebody else")
        await cloud.tpu.list_nodes()
    assert google.metadata["authorization"] == "Bearer token-2"
    assert sign_in.asked[-1][1]["refresh_token"] == "of somebody else"


async def test_a_token_that_the_service_no_longer_takes(
    sign_in: FakeSignIn, google: FakeGoogle, tmp_path: Path
) -> None:
    log_in(tmp_path)
    words = "Request had invalid authentication credentials."

    def answer(_: Any) -> Any:
        if google.metadata["authorization"] == "Bearer token-1":
            raise refusal("UNAUTHENTICATED", words)
        return tpu_v2.ListNodesResponse()

    google.on(LIST, answer)
    async with signed_in(google) as cloud:
        error = await refused(cloud)
        assert LOGIN in error.hint
        await cloud.tpu.list_nodes()


async def test_nobody_is_signed_in_until_somebody_is(
    sign_in: FakeSignIn, google: FakeGoogle, tmp_path: Path
) -> None:
    connection = Connection(ConnectionOptions(project="demo"))
    with pytest.raises(NotAllowedError) as caught:
        await connection.cloud()
    assert caught.value.title == "nobody is signed in to Google Cloud"
    assert caught.value.hint == f"sign in with: {LOGIN}"
    log_in(tmp_path)
    assert (await connection.cloud()).project == "demo"
    await connection.close()


async def test_a_variable_that_names_no_file_is_named_in_the_hint(
    sign_in: FakeSignIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = str(tmp_path / "nowhere.json")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", missing)
    connection = Connection(ConnectionOptions(project="demo"))
    with pytest.raises(NotAllowedError) as caught:
        await connection.cloud()
    assert missing in caught.value.detail
    assert "unset GOOGLE_APPLICATION_CREDENTIALS" in caught.value.hint
    await connection.close()


async def test_a_token_service_that_never_answers_holds_up_nobody(
    sign_in: FakeSignIn, google: FakeGoogle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens_module, "RENEWAL_S", 0.3)
    log_in(tmp_path)
    sign_in.silent.set()
    async with signed_in(google) as cloud:
        asking = asyncio.create_task(cloud.tpu.list_nodes())
        await eventually(lambda: sign_in.asked, "the token endpoint is asked")
        before = asyncio.get_running_loop().time()
        await asyncio.sleep(0)
        assert asyncio.get_running_loop().time() - before < 0.1, "the event loop runs on"
        with pytest.raises(UnreachableError) as caught:
            await asking
        assert "sign-in service" in caught.value.title
        sign_in.silent.clear()
        await cloud.tpu.list_nodes()


async def test_a_token_service_that_is_broken(
    sign_in: FakeSignIn, google: FakeGoogle, tmp_path: Path
) -> None:
    log_in(tmp_path)
    sign_in.refusal = (200, {"error": "<html>"})
    async with signed_in(google) as cloud:
        with pytest.raises(TpudashError) as caught:
            await cloud.tpu.list_nodes()
    assert caught.value.hint


async def refused(cloud: Cloud) -> NotAllowedError:
    """List nodes and return why that was not allowed."""
    with pytest.raises(NotAllowedError) as caught:
        await cloud.tpu.list_nodes()
    assert caught.value.failure is not None
    assert caught.value.failure.error_class is ErrorClass.AUTH_EXPIRED
    assert "\n" not in str(caught.value)
    return caught.value


class Console:
    """What is behind a console that is signed in as a test has it."""

    def __init__(self, google: FakeGoogle) -> None:
        clock, self.store = FastClock(), Store()

        def dial(_: str, interceptors: list[Any]) -> Any:
            return grpc.aio.insecure_channel(google.endpoint, interceptors=interceptors)

        def connect() -> Connection:
            return Connection(ConnectionOptions(project="demo"), clock=clock, dial=dial)

        tools = Tools(self.store, Link(self.store, connect, None, clock), clock, Random(1))
        self._pollers = PollerSet(tools, Intervals(), self._no_runs)
        self._task = asyncio.create_task(self._pollers.run())

    async def _no_runs(self, _: Cloud, __: Store) -> tuple[()]:
        return ()

    @property
    def nodes(self) -> SourceStatus:
        return self.store.snapshot.sources[NODES]

    async def reaches(self, state: SourceState) -> None:
        await eventually(lambda: self.nodes.state is state, f"nodes are {state}", within=30)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def test_a_console_stays_up_through_a_sign_in_that_ends_and_comes_back(
    sign_in: FakeSignIn, google: FakeGoogle, tmp_path: Path
) -> None:
    node = tpu_v2.Node(name="projects/demo/locations/us-east1-b/nodes/n", state="READY")
    google.on(LIST, lambda _: tpu_v2.ListNodesResponse(nodes=[node]))
    console = Console(google)
    try:
        await console.reaches(SourceState.FAILING)
        assert console.nodes.title == "nobody is signed in to Google Cloud"
        assert console.nodes.hint == f"sign in with: {LOGIN}"
        sign_in.lifetime_s = 1  # so short that each call renews the token
        log_in(tmp_path)
        await console.reaches(SourceState.OK)
        sign_in.refusal = EXPIRED
        await console.reaches(SourceState.FAILING)
        assert console.nodes.title == "the Google sign-in is over"
        assert console.nodes.hint == f"sign in again with: {LOGIN}"
        assert console.nodes.last_success is not None
        assert node.name in console.store.snapshot.nodes
        log_in(tmp_path, "another")
        sign_in.refusal = None
        await console.reaches(SourceState.OK)
        assert console.nodes.title == ""
    finally:
        await console.close()


async def test_a_command_whose_sign_in_is_over_ends_with_three_lines(
    sign_in: FakeSignIn, tmp_path: Path
) -> None:
    key = tmp_path / "key.json"
    write_key(key, f"{sign_in.url}/token")
    sign_in.refusal = (400, {"error": "invalid_grant", "error_description": "Invalid JWT"})
    command = CommandLine(tmp_path, "")
    command.environment |= {"GOOGLE_APPLICATION_CREDENTIALS": str(key), "NO_PROXY": "*"}
    for arguments in (("nodes",), ("logs", "demo"), ("delete", "demo", "--yes")):
        done = await command(*arguments)
        assert done.is_refusal(3), (arguments, done)
        assert "gcloud iam service-accounts keys create" in done.err
