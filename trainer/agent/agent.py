"""One life of the agent: who am I, what is to do, do it, leave everything written down."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import threading
import time
import uuid
from typing import TYPE_CHECKING

from trainer.agent import device_report, host, own_node
from trainer.agent.cloud_logging import CloudLoggingSender
from trainer.agent.console import console
from trainer.agent.cost_cap import CostCap, spent_before
from trainer.agent.folders import FolderError, open_folder
from trainer.agent.log_copy import LogCopy
from trainer.agent.metadata import MetadataClient, MetadataError, Watch, read_identity
from trainer.agent.progress import RESULT_FILE
from trainer.agent.record import (
    ENDED,
    AttemptRecord,
    Recorder,
    continue_record,
    read_json,
    record_name,
)
from trainer.agent.roll_call import RollCall
from trainer.agent.runtime_metrics import RuntimeMetrics
from trainer.agent.settings import AgentExit, Settings
from trainer.agent.shipper import Shipper
from trainer.agent.spec import SpecError, parse_spec
from trainer.agent.spool import Spool
from trainer.agent.supervisor import Supervisor
from trainer.events import timestamp
from trainer.stopping import watch_signals

if TYPE_CHECKING:
    from pathlib import Path

    from trainer.agent.folders import RunFolder
    from trainer.agent.metadata import NodeIdentity
    from trainer.agent.spec import Spec

_FLUSH_S = 5.0
_HURRIED_FLUSH_S = 2.0
_IDLE_CHECK_S = 30.0
_COPY_EVERY_S = 60.0
_OUTCOMES = {"FINISHED": AgentExit.FINISHED, "FAILED": AgentExit.FAILED}
_STARTUP_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class Agent:
    """The agent of one worker."""

    def __init__(
        self, settings: Settings, metadata: MetadataClient, node: NodeIdentity, spec: Spec
    ) -> None:
        self._settings = settings
        self._metadata = metadata
        self._node = node
        self._spec = spec
        self._folder: RunFolder = open_folder(spec.run_url)
        self._copy = LogCopy(self._folder, spec, node, console)
        boot = uuid.uuid4().hex[:12]
        self._shipper = Shipper(
            CloudLoggingSender(node, spec, settings.endpoint),
            Spool(settings.node_dir / "log-spool.jsonl", settings.spool_bytes),
            identity=f"{spec.run}-{spec.attempt}-{node.worker}-{boot}",
            flush_s=settings.flush_s,
            tell=console,
            keep=self._copy.keep,
        )
        self._runtime_metrics = RuntimeMetrics(settings.runtime_metrics)
        self._supervisor: Supervisor | None = None
        self._going = threading.Event()
        self._going_reason = ""
        self._ended = threading.Event()
        self._recorder: Recorder | None = None
        self._roll_call = RollCall(
            self._folder, node, spec.attempt, settings.roll_call_s, self.tell
        )

    def tell(self, text: str, severity: str = "INFO") -> None:
        """Say something on the console and in the log."""
        console(text)
        self._shipper.submit("agent", severity=severity, text=text)

    def run(self) -> AgentExit:
        """Do this worker's part and return how it ended."""
        self._shipper.start()
        self._watch()
        self._ship_startup_log()
        self.tell(
            f"agent of {self._spec.run}, attempt {self._spec.attempt}, on {self._node.node} "
            f"worker {self._node.worker} ({self._node.accelerator_type}) in {self._node.zone}"
        )
        self._roll_call.show()
        try:
            if not self._spec.runs_on(self._node.worker):
                return self._stand_by()
            return self._work()
        finally:
            self._ended.set()
            self._shipper.close(_HURRIED_FLUSH_S if self._going.is_set() else _FLUSH_S)
            self._copy.write()

    def _watch(self) -> None:
        watch_signals(lambda number: self._must_go(signal.Signals(number).name))
        Watch(self._metadata, "instance/preempted", self._on_preempted).start()
        Watch(self._metadata, "instance/maintenance-event", self._on_maintenance).start()
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    def _on_preempted(self, value: str) -> None:
        if value.upper() == "TRUE":
            self._must_go("the node is being preempted")

    def _on_maintenance(self, value: str) -> None:
        if value and value.upper() != "NONE":
            self.tell(f"maintenance event: {value}", "WARNING")

    def _must_go(self, reason: str) -> None:
        self._going_reason = self._going_reason or reason
        self._going.set()
        if self._supervisor is not None:
            self._supervisor.give_notice(reason)
        threading.Thread(target=self._copy.write, name="log copy", daemon=True).start()

    def _beat(self) -> None:
        copied = time.monotonic()
        while not self._ended.wait(self._settings.heartbeat_s):
            if time.monotonic() - copied >= _COPY_EVERY_S:
                copied = time.monotonic()
                self._copy.write()
            supervisor = self._supervisor
            pid = supervisor.trainer_pid if supervisor is not None else None
            figures = host.sample(self._settings.node_dir, pid)
            figures["log_entries_dropped"] = self._shipper.dropped
            figures |= {"instance": self._node.instance, "instance_id": self._node.instance_id}
            chips = self._runtime_metrics.chips()
            if chips:
                figures["chips"] = chips
            if self._recorder is not None:
                # The agent lives, whatever its trainer does; `step_updated` tells of that.
                self._recorder.update(workers_missing=self._roll_call.missing())
            self._shipper.submit("agent", severity="DEBUG", payload=figures)

    def _ship_startup_log(self) -> None:
        """Ship what the startup script said before there was an agent, once."""
        path = self._settings.node_dir / "startup.log"
        try:
            lines = path.read_text(errors="replace").splitlines()[-500:]
            path.rename(path.with_suffix(".shipped.log"))
        except OSError:
            return
        for line in lines:
            said_at = line.partition(" ")[0]
            is_time = _STARTUP_TIME.fullmatch(said_at) is not None
            self._shipper.submit("startup", text=line, ts=said_at if is_time else None)

    def _stand_by(self) -> AgentExit:
        """Wait on a worker that runs no command until the attempt is over."""
        self.tell("the recipe runs on worker 0 only; this worker stands by")
        while not self._going.wait(_IDLE_CHECK_S):
            if self._ended_on_first_worker() is not None:
                return AgentExit.FINISHED
        return AgentExit.STOPPED

    def _ended_on_first_worker(self) -> AgentExit | None:
        """Return how worker 0 says that the attempt ended; None while it goes on or is unknown."""
        if self._node.worker == 0:
            return None
        try:
            found = self._folder.read(record_name(self._spec.attempt))
            state = json.loads(found).get("state") if found else None
        except (FolderError, ValueError, AttributeError):
            return None
        return _OUTCOMES.get(str(state))

    def _work(self) -> AgentExit:
        writes_records = self._node.worker == 0
        try:
            if writes_records:
                self._check_run_file()
            record = self._begin_record() if writes_records else self._fresh_record()
            last_step = self._last_step(record)
        except FolderError as error:
            self.tell(f"BUCKET_ACCESS: the run's folder cannot be used: {error}", "ERROR")
            return AgentExit.FAILED
        except SpecError as error:
            self.tell(str(error), "ERROR")
            return AgentExit.FAILED
        ended = _OUTCOMES.get(record.state, self._ended_on_first_worker())
        if ended is not None:
            self.tell(f"this attempt is already {ended.name}; nothing to do")
            return ended
        recorder = Recorder(self._folder if writes_records else None, record, console)
        recorder.update(urgent=True, state="STARTING", stage=None, ended=None, error=None)
        self._recorder = recorder
        self._supervisor = Supervisor(
            self._spec,
            self._node,
            self._settings,
            recorder=recorder,
            shipper=self._shipper,
            tell=self.tell,
            last_step=last_step,
        )
        self._supervisor.cap = self._cost_cap()
        self._supervisor.ended_elsewhere = self._ended_on_first_worker
        self._shipper.submit("agent", payload=device_report.report())
        if self._going.is_set():
            self._supervisor.give_notice(self._going_reason)
        outcome = self._supervisor.run()
        self._recorder = None
        self._conclude(outcome, recorder)
        return outcome

    def _fresh_record(self) -> AttemptRecord:
        return AttemptRecord.begin(self._spec, self._node)

    def _begin_record(self) -> AttemptRecord:
        fresh = self._fresh_record()
        found = read_json(self._folder, record_name(self._spec.attempt), self._warn)
        if found is None:
            return fresh
        record = continue_record(found, fresh)
        if record.state not in ENDED:
            self.tell(f"continuing attempt {self._spec.attempt} of an agent that was interrupted")
        return record

    def _warn(self, text: str) -> None:
        self.tell(text, "WARNING")

    def _check_run_file(self) -> None:
        """Keep `run.json` at the newest attempt; stand back if a newer attempt exists."""
        found = read_json(self._folder, "run.json", self._warn)
        newest = found.get("attempt") if found else None
        if isinstance(newest, int) and newest > self._spec.attempt:
            raise SpecError(
                f"attempt {newest} of {self._spec.run} exists; this node belongs to attempt "
                f"{self._spec.attempt} and must not train any more"
            )
        if newest != self._spec.attempt:
            content = json.dumps(self._spec.raw, indent=1) + "\n"
            self._folder.write("run.json", content.encode())

    def _cost_cap(self) -> CostCap:
        """Return how much the run may still cost, by what its earlier attempts cost."""
        spec = self._spec
        if spec.max_cost_usd is None:
            return CostCap(per_hour_usd=spec.cost_per_hour_usd)
        if not spec.cost_per_hour_usd:
            self._warn(
                f"the run may cost ${spec.max_cost_usd:.2f}, but nobody knew the price of this "
                "node, so this can't be held to here"
            )
        earlier = (
            read_json(self._folder, record_name(attempt), self._warn)
            for attempt in range(1, spec.attempt)
        )
        spent = spent_before(filter(None, earlier), spec.cost_per_hour_usd)
        cap = CostCap(spec.max_cost_usd, spec.cost_per_hour_usd, spent)
        if cap.holds:
            self.tell(
                f"the run may cost ${spec.max_cost_usd:.2f}, and has cost ${spent:.2f} before; "
                f"this node costs ${spec.cost_per_hour_usd:.2f} an hour"
            )
        return cap

    def _last_step(self, record: AttemptRecord) -> int:
        """Return the last step that an earlier life reported, or -1."""
        if record.step is not None:
            return record.step
        for attempt in range(self._spec.attempt - 1, 0, -1):
            found = read_json(self._folder, record_name(attempt), self._warn)
            step = found.get("step") if found else None
            if isinstance(step, int):
                return step
        return -1

    def _conclude(self, outcome: AgentExit, recorder: Recorder) -> None:
        """Write result and record, and remove the node if that was asked for."""
        if outcome == AgentExit.FINISHED and self._supervisor is not None:
            result = json.dumps(self._supervisor.progress.result(), indent=1) + "\n"
            if self._node.worker == 0:
                self._write_result(result.encode())
            recorder.update(state="FINISHED", stage=None)
        recorder.update(urgent=True, ended=timestamp(), log_entries_dropped=self._shipper.dropped)
        if outcome == AgentExit.FAILED and self._supervisor is not None:
            self._shipper.submit("agent", payload=device_report.report())
            self._supervisor.check_itself()
        if not recorder.close(_HURRIED_FLUSH_S if self._going.is_set() else 15.0):
            console("the last attempt record could not be written")
        state = recorder.record.state
        self.tell(f"attempt {self._spec.attempt} ended {state} at step {recorder.record.step}")
        over = outcome in (AgentExit.FINISHED, AgentExit.FAILED)
        capped = self._supervisor is not None and self._supervisor.capped
        if over and (self._spec.delete_node_when_done or capped) and self._node.worker == 0:
            # A node that goes on costing would make a cap a mere wish.
            self._remove_node(
                "the run has cost what it may" if capped else "the run is over and asked for it"
            )

    def _write_result(self, content: bytes) -> None:
        for pause in (0.5, 2.0, 5.0, 0.0):
            if self._wrote(RESULT_FILE, content):
                return
            self._going.wait(pause)

    def _wrote(self, name: str, content: bytes) -> bool:
        try:
            self._folder.write(name, content)
        except FolderError as error:
            self.tell(f"{name} cannot be written: {error}", "ERROR")
            return False
        return True

    def _remove_node(self, reason: str) -> None:
        self.tell(f"{reason}: deleting this node")
        self._copy.write()
        time.sleep(2 * self._settings.flush_s)
        try:
            operation = own_node.remove(
                self._node, self._spec.run, self._metadata, self._settings.endpoint
            )
            console(f"deletion began: {operation}")
        except own_node.RemovalError as error:
            self.tell(f"this node was not deleted and goes on costing: {error}", "ERROR")


def lock_node(node_dir: Path) -> int | None:
    """Take the lock of the only agent on this node; None if another one runs."""
    node_dir.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(node_dir / "agent.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _read_spec(metadata: MetadataClient) -> Spec:
    text = metadata.get_patiently("instance/attributes/tpudash-spec")
    if text is None:
        raise SpecError("this node has no metadata key tpudash-spec")
    return parse_spec(text)


def main() -> int:
    """Run the agent and return its exit code."""
    try:
        settings = Settings.from_environment(os.environ)
        if lock_node(settings.node_dir) is None:
            console(f"another agent runs on this node ({settings.node_dir})")
            return 1
        metadata = MetadataClient.from_environment(os.environ)
        agent = Agent(settings, metadata, read_identity(metadata), _read_spec(metadata))
    except MetadataError as error:
        console(f"the metadata server cannot be used: {error}")
        return 1
    except (SpecError, FolderError, ValueError) as error:
        console(f"BAD_REQUEST: {error}")
        return int(AgentExit.FAILED)
    return int(agent.run())
