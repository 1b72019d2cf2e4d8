"""What surrounds an agent on a node, for tests: a metadata server, a log server, a recipe."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import grpc
from google.cloud.logging_v2.types import WriteLogEntriesRequest, WriteLogEntriesResponse
from google.cloud.tpu_v2.types import DeleteNodeRequest, GetNodeRequest, Node
from google.longrunning.operations_pb2 import Operation

REPOSITORY = Path(__file__).parents[3]

FAKE_TRAINER = """
import json, os, signal, sys, threading, time
arguments = dict(zip(sys.argv, sys.argv[1:]))
folder = arguments["--model_dir"]
lives = open(os.path.join(folder, "lives"), "a+"); lives.write("x"); lives.flush()
life = os.path.getsize(os.path.join(folder, "lives"))
def emit(event, **payload):
    line = {"ts": "2026-12-01T00:00:00.000Z", "event": event, "severity": "INFO", **payload}
    try:
        os.write(1, (json.dumps(line) + "\\n").encode())
    except BrokenPipeError:
        pass
def stop(reason):
    emit("checkpoint", step=3); emit("preempt", step=3, reason=reason)
    open(os.path.join(folder, "stopped"), "w").write(reason); os._exit(75)
signal.signal(signal.SIGTERM, lambda *_: stop("SIGTERM"))
def eof():
    stop(sys.stdin.readline().strip() or "eof")
if "--stop_on_stdin_eof" in sys.argv:
    threading.Thread(target=eof, daemon=True).start()
"""


def fake_trainer(folder: Path, body: str) -> list[str]:
    """Write a fake trainer into a file and return the recipe's command that runs it.

    Its arguments make it look like the bundled trainer, so the agent tells it everything.
    """
    path = folder / "fake.py"
    path.write_text(FAKE_TRAINER + body)
    return ["python3", "-u", str(path), "-m", "trainer"]


def spec(folder: Path, command: list[str], **changes: Any) -> dict[str, Any]:
    """Return a run's spec."""
    return {
        "schema": 1,
        "run": "demo",
        "owner": "alice",
        "attempt": 1,
        "project": "demo-project",
        "bucket": str(folder),
        "run_url": str(folder),
        "recipe": {"name": "x", "command": command, "environment": {}, "workers": "first"},
        "target_step": 10,
        "delete_node_when_done": False,
        **changes,
    }


class MetadataServer:
    """Serves metadata values and the long poll, as a TPU VM's server does."""

    def __init__(self, values: dict[str, str]) -> None:
        self._values = values
        self._changed = threading.Condition()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                body = outer._answer(
                    parts.path.removeprefix("/computeMetadata/v1/"), parse_qs(parts.query)
                )
                allowed = self.headers.get("Metadata-Flavor") == "Google"
                self.send_response(200 if body is not None and allowed else 404)
                self.end_headers()
                with contextlib.suppress(ConnectionError):
                    self.wfile.write((body or "").encode())

            def log_message(self, *_: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.host = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @classmethod
    def of_node(cls, run_spec: dict[str, Any], *, worker: int = 0) -> MetadataServer:
        """Return the server of one worker of a spot v2-8."""
        return cls(
            {
                "project/project-id": "demo-project",
                "instance/name": f"t1v-n-5db23080-w-{worker}",
                "instance/id": f"812345678{worker}",
                "instance/attributes/tpu-env": f"NODE_ID: 'demo-{run_spec['attempt']}'",
                "instance/zone": "projects/1/zones/us-central1-b",
                "instance/preempted": "FALSE",
                "instance/maintenance-event": "NONE",
                "instance/attributes/agent-worker-number": str(worker),
                "instance/attributes/accelerator-type": "v2-8",
                "instance/attributes/tpudash-spec": json.dumps(run_spec),
            }
        )

    def _answer(self, path: str, query: dict[str, list[str]]) -> str | None:
        with self._changed:
            if "wait_for_change" in query:
                known = self._values.get(path)
                self._changed.wait_for(lambda: self._values.get(path) != known, timeout=20)
            return self._values.get(path)

    def set(self, path: str, value: str) -> None:
        """Change a value and wake who waits for it."""
        with self._changed:
            self._values[path] = value
            self._changed.notify_all()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()


class LogServer:
    """A gRPC server that keeps log entries, and the deletions of nodes that it is asked for."""

    def __init__(self, address: str = "127.0.0.1:0") -> None:
        self.requests: list[Any] = []
        self.deleted: list[str] = []
        self.node_labels = {"tpudash-run": "demo"}
        self._server = grpc.server(futures.ThreadPoolExecutor(2))
        handler = grpc.unary_unary_rpc_method_handler(
            self._write,
            request_deserializer=WriteLogEntriesRequest.deserialize,
            response_serializer=WriteLogEntriesResponse.serialize,
        )
        self._server.add_generic_rpc_handlers(
            (
                grpc.method_handlers_generic_handler(
                    "google.logging.v2.LoggingServiceV2", {"WriteLogEntries": handler}
                ),
                grpc.method_handlers_generic_handler("google.cloud.tpu.v2.Tpu", self._tpu()),
            )
        )
        self.port = self._server.add_insecure_port(address)
        self._server.start()

    def _write(self, request: Any, context: grpc.ServicerContext) -> Any:
        self.requests.append(request)
        return WriteLogEntriesResponse()

    def _tpu(self) -> dict[str, Any]:
        def delete(request: Any, context: grpc.ServicerContext) -> Any:
            self.deleted.append(request.name)
            return Operation(name="operations/1")

        def get(request: Any, context: grpc.ServicerContext) -> Any:
            return Node(name=request.name, labels=self.node_labels)

        return {
            "GetNode": grpc.unary_unary_rpc_method_handler(
                get,
                request_deserializer=GetNodeRequest.deserialize,
                response_serializer=Node.serialize,
            ),
            "DeleteNode": grpc.unary_unary_rpc_method_handler(
                delete,
                request_deserializer=DeleteNodeRequest.deserialize,
                response_serializer=Operation.SerializeToString,
            ),
        }

    @property
    def entries(self) -> list[Any]:
        """All entries, in the order of their arrival."""
        return [entry for request in list(self.requests) for entry in request.entries]

    def texts(self, stream: str) -> list[str]:
        """Text payloads of one stream."""
        return [e.text_payload for e in self.entries if e.labels["stream"] == stream]

    def events(self) -> list[str]:
        """Kinds of the trainer's events."""
        return [e.json_payload["event"] for e in self.entries if e.labels["stream"] == "event"]

    def close(self) -> None:
        """Stop serving."""
        self._server.stop(None).wait()


def start_agent(
    node_dir: Path, metadata: MetadataServer, endpoint: str, **settings: object
) -> subprocess.Popen[bytes]:
    """Start an agent process as the startup script does."""
    node_dir.mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "GCE_METADATA_HOST": metadata.host,
        "TPUDASH_ENDPOINT": endpoint,
        "TPUDASH_NODE_DIR": str(node_dir),
        "TPUDASH_AGENT_FLUSH_S": "0.1",
        "TPUDASH_AGENT_BACKOFF_S": "0.1",
        **{f"TPUDASH_AGENT_{key.upper()}": str(value) for key, value in settings.items()},
    }
    with (node_dir / "console.log").open("ab") as console:
        return subprocess.Popen(
            [sys.executable, "-m", "trainer.agent"],
            env=environment,
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            start_new_session=True,
        )


def record(folder: Path, attempt: int = 1) -> dict[str, Any]:
    """Return an attempt's record, empty if there is none yet."""
    try:
        loaded = json.loads((folder / "attempts" / f"{attempt}.json").read_text())
    except FileNotFoundError:
        return {}
    assert isinstance(loaded, dict)
    return loaded
