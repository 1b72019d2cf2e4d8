"""The way into the outside world: one connection, and all gateways that speak over it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from random import SystemRandom
from typing import TYPE_CHECKING, Any, Final

from tpudash.clock import SystemClock
from tpudash.errors import ConfigurationError, NotAllowedError, TpudashError, UnreachableError
from tpudash.gateways.access import GoogleAccess
from tpudash.gateways.billing import GoogleBilling
from tpudash.gateways.bucket import Buckets
from tpudash.gateways.clients import Clients
from tpudash.gateways.endpoint import parse_endpoint
from tpudash.gateways.logging import GoogleLogging
from tpudash.gateways.monitoring import GoogleMonitoring
from tpudash.gateways.pace import SHARED, Paces
from tpudash.gateways.protocols import Cloud
from tpudash.gateways.retry import Caller
from tpudash.gateways.shells import GcloudShells, LocalShells
from tpudash.gateways.tpu import GoogleTpu

if TYPE_CHECKING:
    from random import Random

    from tpudash.clock import Clock
    from tpudash.domain.shell import ShellPort
    from tpudash.gateways.clients import Dial
    from tpudash.gateways.protocols import BucketGateway

ANSWER_S: Final = 1.2
"""How long an endpoint may take to say what it is, so that a command fails within 2 s in all."""

_DESCRIBE: Final = "/tpudash.emulator.Control/Describe"


@dataclass(frozen=True, kw_only=True, slots=True)
class ConnectionOptions:
    """What to connect to, and as whom.

    Attributes:
        project: None or "" takes the one that the credentials (or the emulator) come with.
        more_projects: Those whose nodes, requests, metrics and logs are read beside.
        endpoint: `HOST:PORT` of a plaintext server on this machine, or None for Google Cloud.
        quota_project: The project whose quota and billing the calls use.
        impersonate: E-mail address of a service account to act as.
        read_only: Refuse every call that could change something, before it leaves this process.
    """

    project: str | None = None
    more_projects: tuple[str, ...] = ()
    endpoint: str | None = None
    quota_project: str | None = None
    impersonate: str | None = None
    read_only: bool = False


class Connection:
    """Connects when first asked, and again after the sign-in was found to be over.

    Belongs to the event loop in which it is first used.

    Args:
        random: Spreads retries.
        dial: Opens channels to Google's hosts; over TLS if not given.
    """

    def __init__(
        self,
        options: ConnectionOptions,
        *,
        clock: Clock | None = None,
        random: Random | None = None,
        dial: Dial | None = None,
    ) -> None:
        self._options = options
        self._dial = dial
        self._paces = SHARED if clock is None else Paces(clock)
        self._clock = clock or SystemClock()
        self._random = random or SystemRandom()
        self._clients: Clients | None = None
        self._cloud: Cloud | None = None
        self._lock = asyncio.Lock()

    async def cloud(self) -> Cloud:
        """Return all gateways; they are shared by all who ask.

        Raises:
            ConfigurationError: The endpoint is not on this machine, or no project is known.
            UnreachableError: The endpoint does not answer.
            NotAllowedError: Nobody is signed in.
        """
        async with self._lock:
            if self._cloud is None:
                self._cloud = await self._connect()
            return self._cloud

    async def close(self) -> None:
        """Close every channel. The connection may be used again, and then connects anew."""
        async with self._lock:
            clients, self._clients, self._cloud = self._clients, None, None
            if clients is not None:
                await clients.close()

    async def _connect(self) -> Cloud:
        options = self._options
        endpoint = parse_endpoint(options.endpoint) if options.endpoint else None
        if self._clients is None:
            self._clients = Clients(
                endpoint,
                quota_project=options.quota_project,
                impersonate=options.impersonate,
                read_only=options.read_only,
                dial=self._dial,
            )
        clients = self._clients
        if endpoint is not None:
            description = await self._describe(clients, str(endpoint))
            clients.storage_url = _storage_url(description or {})
            found = (description or {}).get("project")
            project = options.project or (found if isinstance(found, str) else None)
            return self._gateways(clients, _required(project), description is not None, None)
        sign_in = await clients.sign_in()
        project = _required(options.project or sign_in.project)
        return self._gateways(clients, project, False, sign_in.account)

    def _gateways(
        self, clients: Clients, project: str, is_emulator: bool, account: str | None
    ) -> Cloud:
        def of(one: str) -> Cloud:
            return self._of_project(clients, one, is_emulator=is_emulator, account=account)

        own = of(project)
        more = [of(one) for one in self._options.more_projects if one != project]
        return _joined((own, *more), self._clock) if more else own

    def _of_project(
        self, clients: Clients, project: str, *, is_emulator: bool, account: str | None
    ) -> Cloud:
        caller = self._caller(project)
        bucket: BucketGateway = Buckets(clients, caller, project)
        if self._options.read_only:
            from tpudash.gateways.read_only import ReadOnlyBucket

            bucket = ReadOnlyBucket(bucket)
        return Cloud(
            project=project,
            tpu=GoogleTpu(clients, caller, project, self._clock),
            monitoring=GoogleMonitoring(clients, caller, project),
            logging=GoogleLogging(clients, caller, project, self._clock, self._random),
            billing=GoogleBilling(clients, caller, project),
            bucket=bucket,
            is_emulator=is_emulator,
            account=account,
            shells=self._shells(clients, is_emulator=is_emulator),
            access=GoogleAccess(clients, project),
        )

    def _caller(self, project: str) -> Caller:
        pace = self._paces.of(project)
        return Caller(self._clock, self._random, self._signed_out, pace=pace)

    def _shells(self, clients: Clients, *, is_emulator: bool) -> ShellPort | None:
        endpoint = self._options.endpoint
        if endpoint is None:
            return GcloudShells()
        if not is_emulator:
            return None
        return LocalShells(lambda: self._describe(clients, endpoint), endpoint)

    def _signed_out(self) -> None:
        """Look for credentials anew at the next call, through old gateways and new ones alike."""
        self._cloud = None
        if self._clients is not None:
            self._clients.forget_sign_in()

    async def _describe(self, clients: Clients, endpoint: str) -> dict[str, Any] | None:
        """Return what the emulator says of itself; None when the server is something else.

        Raises:
            UnreachableError: The endpoint does not answer.
        """
        channel = await clients.channel()
        import grpc
        from google.protobuf import json_format, struct_pb2

        rpc = channel.unary_unary(
            _DESCRIBE,
            request_serializer=struct_pb2.Struct.SerializeToString,
            response_deserializer=struct_pb2.Struct.FromString,
        )
        try:
            async with asyncio.timeout(ANSWER_S + 0.2):
                answer = await rpc(struct_pb2.Struct(), timeout=ANSWER_S)
        except TimeoutError as error:
            raise _silent(endpoint, f"no answer within {ANSWER_S:g} s") from error
        except grpc.aio.AioRpcError as error:
            _require_sign_of_life(error, endpoint)
            return None
        return dict(json_format.MessageToDict(answer))


def _joined(each: tuple[Cloud, ...], clock: Clock) -> Cloud:
    """Return gateways that also see the nodes, metrics and logs of further projects."""
    from tpudash.gateways.several import SeveralMonitoring, SeveralTpu
    from tpudash.gateways.several_logs import SeveralLogging

    return replace(
        each[0],
        tpu=SeveralTpu({one.project: one.tpu for one in each}),
        monitoring=SeveralMonitoring({one.project: one.monitoring for one in each}),
        logging=SeveralLogging({one.project: one.logging for one in each}, clock),
        projects=tuple(one.project for one in each),
        each=each,
    )


def _require_sign_of_life(error: Any, endpoint: str) -> None:
    """Raise unless the refusal shows that a server is there which is willing to speak."""
    import grpc

    code = error.code()
    if code is grpc.StatusCode.UNAVAILABLE:
        raise _silent(endpoint, error.details() or "") from error
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        raise _silent(endpoint, f"no answer within {ANSWER_S:g} s") from error
    if code in {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}:
        raise NotAllowedError(
            f"{endpoint} refuses to speak to us", detail=error.details() or ""
        ) from error


def _storage_url(description: dict[str, Any]) -> str | None:
    """Return where a local server keeps its buckets; like itself, that must be on this machine.

    Raises:
        ConfigurationError: It is elsewhere.
    """
    found = description.get("storage_endpoint")
    return f"http://{parse_endpoint(found)}" if isinstance(found, str) and found else None


def _silent(endpoint: str, detail: str) -> TpudashError:
    return UnreachableError(
        f"nothing answers at {endpoint}",
        detail=detail,
        hint="start an emulator with: tpudash emulator serve, or check --endpoint",
    )


def _required(project: str | None) -> str:
    if not project:
        raise ConfigurationError(
            "no project is set",
            hint="give --project ID, set TPUDASH_PROJECT, or: gcloud config set project ID",
        )
    return project
