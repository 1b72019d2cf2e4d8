"""Who trains together: this process's number, and how the workers find each other.

JAX ends the process when a worker never comes, without saying which. So the workers first meet
here: worker 0 waits for the others, names who is missing, and tells the rest where to connect.
"""

from __future__ import annotations

import json
import socket
import time
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainer.faults import ExitCode, TrainerError

if TYPE_CHECKING:
    from collections.abc import Mapping

PORT = 8476
"""Where JAX puts the coordinator of a Cloud TPU slice."""
PATIENCE_S = 180.0
_LOCAL_PORTS = (20_000, 10_000)
_RETRY_S = 0.2
_ANSWER_S = 10.0


@dataclass(frozen=True)
class Workers:
    """The workers of a slice.

    Attributes:
        index: number of this one, from 0.
        count: how many there are.
        address: host of worker 0.
        key: what the processes of one life of a run have in common.
        patience_s: how long to wait for the others.
    """

    index: int = 0
    count: int = 1
    address: str = "127.0.0.1"
    key: str = ""
    patience_s: float = PATIENCE_S

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], key: str) -> Workers:
        """Read what the agent tells: `TPUDASH_WORKER`, `_WORKERS` and `_COORDINATOR`.

        `TPUDASH_WORKERS_PATIENCE_S` says how long to wait for the others.

        Raises:
            TrainerError: the values contradict each other.
        """
        index = environment.get("TPUDASH_WORKER", "0")
        count = environment.get("TPUDASH_WORKERS", "1")
        address = environment.get("TPUDASH_COORDINATOR", "")
        patience = environment.get("TPUDASH_WORKERS_PATIENCE_S", "")
        try:
            found = cls(
                int(index),
                int(count),
                address or "127.0.0.1",
                key,
                float(patience) if patience else PATIENCE_S,
            )
        except ValueError:
            found = cls(-1)
        if not 0 <= found.index < found.count:
            raise _bad(f"worker {index!r} of {count!r}: no such number")
        if found.count > 1 and not address:
            raise _bad(f"{count} workers, but TPUDASH_COORDINATOR does not tell where worker 0 is")
        return found

    @property
    def port(self) -> int:
        """Where worker 0 waits; on one machine each run needs its own."""
        if not self.address.startswith("127.") and self.address != "localhost":
            return PORT
        first, number = _LOCAL_PORTS
        return first + zlib.crc32(self.key.encode()) % number

    def meet(self) -> str:
        """Wait until all workers are there. Returns where JAX's coordinator is to listen.

        Raises:
            TrainerError: some never came, or worker 0 cannot be reached.
        """
        return self._await_all() if self.index == 0 else self._report()

    def _await_all(self) -> str:
        deadline = time.monotonic() + self.patience_s
        there: dict[int, socket.socket] = {}
        with _listen(self.port, deadline) as listener:
            while len(there) < self.count - 1 and (left := deadline - time.monotonic()) > 0:
                listener.settimeout(left)
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    break
                number = self._number_of(connection)
                if number is None:
                    connection.close()
                else:
                    there[number] = connection
        missing = [number for number in range(1, self.count) if number not in there]
        coordinator = f"{self.address}:{_free_port()}"
        for connection in there.values():
            _send(connection, {"missing": missing, "coordinator": coordinator})
            connection.close()
        if missing:
            raise _missing(self, missing)
        return coordinator

    def _number_of(self, connection: socket.socket) -> int | None:
        """Return which worker calls, or None for a stranger or another life of the run."""
        said = _receive(connection, _ANSWER_S)
        number = said.get("worker")
        is_one = isinstance(number, int) and 0 < number < self.count
        return number if is_one and said.get("key") == self.key else None

    def _report(self) -> str:
        # Worker 0, which waits as long, is to be the one that tells who is missing.
        deadline = time.monotonic() + self.patience_s + min(_ANSWER_S, self.patience_s)
        while (left := deadline - time.monotonic()) > 0:
            try:
                with socket.create_connection((self.address, self.port), min(left, 5.0)) as called:
                    _send(called, {"worker": self.index, "key": self.key})
                    said = _receive(called, left)
            except OSError:
                said = {}
            if said.get("missing"):
                raise _missing(self, said["missing"])
            if isinstance(said.get("coordinator"), str):
                return str(said["coordinator"])
            time.sleep(_RETRY_S)
        raise TrainerError(
            ExitCode.NO_DEVICE,
            "CONNECT",
            f"worker 0 at {self.address}:{self.port} did not answer within {self.patience_s:.0f} s",
            "see the log of worker 0; the firewall must let the workers reach each other",
        )


def _missing(workers: Workers, missing: list[int]) -> TrainerError:
    named = ", ".join(map(str, missing))
    return TrainerError(
        ExitCode.NO_DEVICE,
        "PARTIAL_SLICE",
        f"of {workers.count} workers, {named} did not come within {workers.patience_s:.0f} s",
        "see the log of the missing workers; delete the node and resume the run if they are dead",
    )


def _bad(detail: str) -> TrainerError:
    hint = "set TPUDASH_WORKER, TPUDASH_WORKERS and TPUDASH_COORDINATOR, or none of them"
    return TrainerError(ExitCode.BAD_ARGUMENTS, "BAD_REQUEST", detail, hint)


def _listen(port: int, deadline: float) -> socket.socket:
    while True:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("", port))
            listener.listen(1024)
        except OSError as error:
            listener.close()
            if time.monotonic() < deadline:
                time.sleep(_RETRY_S)
                continue
            raise TrainerError(
                ExitCode.NO_DEVICE,
                "CONNECT",
                f"port {port}, where the workers meet, cannot be used: {error.strerror}",
                f"end what holds it: sudo lsof -i :{port}",
            ) from error
        return listener


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _send(connection: socket.socket, message: dict[str, Any]) -> None:
    try:
        connection.sendall(json.dumps(message).encode() + b"\n")
    except OSError:
        # It calls again, or is missed.
        return


def _receive(connection: socket.socket, within_s: float) -> dict[str, Any]:
    """Return one message, empty if none came or it is none."""
    connection.settimeout(within_s)
    try:
        with connection.makefile("rb") as file:
            message = json.loads(file.readline(65536))
    except (OSError, ValueError):
        return {}
    return message if isinstance(message, dict) else {}
