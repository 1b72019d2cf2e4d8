"""Everything that is known of one run, node, request or vanished node, as text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from tpudash.domain.accelerator import load_catalog
from tpudash.domain.masking import without_addresses
from tpudash.domain.node import OWNER_LABEL
from tpudash.store.state_times import StateTimes
from tpudash.tui.looks import look_of
from tpudash.tui.pane import Subject, SubjectKind
from tpudash.tui.screens.overlay import Paragraphs
from tpudash.tui.screens.timeline import add_log_lines, add_timeline, node_events, run_events
from tpudash.tui.widgets.node_rows import project_of
from tpudash.wording import format as fmt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from rich.text import Text

    from tpudash.domain.node import Maintenance, Node
    from tpudash.domain.request import QueuedResource
    from tpudash.domain.run import AttemptRecord, Run
    from tpudash.store.snapshot import RequestTombstone
    from tpudash.tui.pane import HostApp

MASK: Final = "******"
_SECRET: Final = re.compile(
    r"(?i)(pass(word|wd)?|secret|token|credential|private|api[-_]?key|auth)"
)
_SECRET_PAIR: Final = re.compile(
    r"(?i)([\w-]*(?:password|passwd|secret|token|credential|api[-_]?key)[\w-]*\s*[=:]\s*)"
    r"(\"[^\"]*\"|'[^']*'|\S+)"
)
_OWNER_PAIR: Final = re.compile(r"(\"owner\"\s*:\s*)\"[^\"]*\"")


def details_text(subject: Subject, host: HostApp) -> Text:
    """Return the page for a subject."""
    page = Paragraphs(host)
    makers: dict[SubjectKind, Callable[[Paragraphs, Subject, HostApp], None]] = {
        SubjectKind.RUN: _run_page,
        SubjectKind.NODE: _node_page,
        SubjectKind.REQUEST: _request_page,
        SubjectKind.TOMBSTONE: _tombstone_page,
    }
    makers[subject.kind](page, subject, host)
    return page.text


def mask(key: str, value: str, *, hides_addresses: bool) -> str:
    """Return a value without secrets, and in watch mode without addresses and accounts."""
    if _SECRET.search(key) or (hides_addresses and key == OWNER_LABEL):
        return MASK
    text = _SECRET_PAIR.sub(lambda found: found[1] + MASK, value)
    if not hides_addresses:
        return text
    return without_addresses(_OWNER_PAIR.sub(rf'\1"{MASK}"', text))


def _run_page(page: Paragraphs, subject: Subject, host: HostApp) -> None:
    snapshot, now = host.context.snapshot, host.context.now()
    run = snapshot.runs.get(subject.name)
    if run is None:
        page.line(f"The run {subject.name} is not known any more.")
        return
    page.heading(f"Run {run.name}")
    look = look_of(run.state)
    page.field("state", f"{host.mark_of(look)} {run.state}", host.style_of(look.variable))
    if run.reason:
        page.field("why", run.reason)
    page.field("owner", MASK if host.context.options.is_watch else run.owner)
    page.field("step", f"{fmt.number(run.step)} of {fmt.number(run.target_step)}")
    page.field("last checkpoint", f"step {fmt.number(run.checkpoint_step)}")
    page.field("steps at risk", fmt.number(run.steps_at_risk))
    page.field("steps lost", fmt.number(run.steps_lost))
    page.field("last heard", f"{fmt.age(run.last_heard, now)} ago" if run.last_heard else "never")
    for name in ("loss", "accuracy", "examples_per_second"):
        page.field(name.replace("_", " "), fmt.number(getattr(run, name)))
    _spec(page, run, host)
    page.heading(f"Attempts ({len(run.attempts)})")
    for record in run.attempts:
        _attempt(page, record, host)
    if run.result is not None:
        page.heading("Result")
        _json(page, {"metrics": run.result.metrics, "export": run.result.export}, host)
    add_timeline(page, run_events(run, host))
    for node in snapshot.nodes_of(run.name):
        _node_sections(page, node, host)
    add_log_lines(page, host, run=run.name)


def _spec(page: Paragraphs, run: Run, host: HostApp) -> None:
    spec = run.spec
    if spec is None:
        return
    page.heading("As it was asked for")
    page.field("project", spec.project)
    page.field("bucket", spec.bucket)
    page.field("files", spec.run_url)
    page.field("accelerator type", spec.accelerator_type)
    page.field("runtime version", spec.runtime_version)
    page.field("scheduling", spec.scheduling)
    page.field("zone", spec.zone)
    page.field("checkpoint every", f"{fmt.number(spec.checkpoint_every_steps)} steps")
    page.field("seed", fmt.NOTHING if spec.seed is None else spec.seed)
    page.field("budget cap", fmt.dollars(spec.max_cost_usd))
    page.field("created", spec.created.isoformat(timespec="seconds"))
    is_watch = host.context.options.is_watch
    command = " ".join(spec.recipe.command)
    page.field("command", mask("", command, hides_addresses=is_watch))
    for key, value in spec.recipe.environment.items():
        page.field(key, mask(key, value, hides_addresses=is_watch))


def _attempt(page: Paragraphs, record: AttemptRecord, host: HostApp) -> None:
    look = look_of(record.state)
    began = "from scratch" if not record.restored_step else f"from step {record.restored_step}"
    words = (
        f"{record.attempt}. {host.mark_of(look)} {record.state}  {record.node}  "
        f"{began}, step {fmt.number(record.step)}, checkpoint {fmt.number(record.checkpoint_step)}"
    )
    page.styled(words, look.variable, indent=1)
    lasted = fmt.duration((record.ended or record.updated) - record.started)
    lost = "" if not record.steps_lost else f", {record.steps_lost} steps lost before it"
    page.line(f"{record.started:%Y-%m-%d %H:%M:%S} for {lasted}{lost}", indent=4)
    if record.restarts:
        page.line(f"trainer restarted {record.restarts} times on this node", indent=4)
    if record.quarantined:
        page.line(f"damaged checkpoints set aside: {', '.join(record.quarantined)}", indent=4)
    if record.log_entries_dropped:
        page.line(f"{record.log_entries_dropped} log entries were dropped", indent=4)
    if record.error:
        for key in ("class", "detail", "hint"):
            if record.error.get(key):
                page.styled(f"{key}: {record.error[key]}", "chart-bad", indent=4)


def _node_page(page: Paragraphs, subject: Subject, host: HostApp) -> None:
    node = host.context.snapshot.nodes.get(subject.name)
    if node is None:
        page.line(f"The node {subject.short_name} is not listed any more.")
        return
    _node_sections(page, node, host)
    add_timeline(page, node_events(node, host))
    add_log_lines(page, host, node_id=node.node_id)


def _node_sections(page: Paragraphs, node: Node, host: HostApp) -> None:
    now = host.context.now()
    state_time = StateTimes(host.context.snapshot).of(node)
    is_watch = host.context.options.is_watch
    page.heading(f"Node {node.node_id}")
    page.field("name", node.name)
    page.field("project", project_of(node.name))
    page.field("zone", node.zone)
    look = look_of(node.state)
    at_most = "at most " if state_time and state_time.is_earliest else ""
    since = f"for {at_most}{fmt.age(state_time.since, now)}" if state_time else ""
    page.field("state", f"{host.mark_of(look)} {node.state} {since}", host.style_of(look.variable))
    page.field("health", node.health or "not given")
    if node.health_description:
        page.field("health says", node.health_description)
    page.field("accelerator type", f"{node.accelerator_type} {_shape(node.accelerator_type)}")
    page.field("runtime version", node.runtime_version)
    page.field("scheduling", node.scheduling)
    created = node.create_time.isoformat(timespec="seconds") if node.create_time else fmt.NOTHING
    page.field("created", f"{created} ({fmt.age(node.create_time, now)} ago)")
    page.field("queued resource", node.queued_resource or "none")
    if node.maintenance is not None:
        page.field("maintenance", _maintenance(node.maintenance), host.style_of("chart-warn"))
    page.heading(f"Workers ({len(node.workers)})")
    for worker in node.workers:
        places = "***" if is_watch else f"{worker.ip_address}  {worker.external_ip or ''}"
        page.field(f"worker {worker.index}", places)
    if node.symptoms:
        page.heading("Symptoms")
    for symptom in node.symptoms:
        moment = f"{symptom.create_time:%Y-%m-%d %H:%M:%S} " if symptom.create_time else ""
        page.styled(
            f"{moment}{symptom.kind} worker {symptom.worker_id}: {symptom.details}", "chart-warn"
        )
    _pairs(page, "Labels", node.labels, host)
    _pairs(page, "Metadata (secrets masked)", node.metadata, host)
    page.heading("Every field of the API's object")
    _json(page, node.raw, host)


def _maintenance(announced: Maintenance) -> str:
    times = [
        f"{word} {moment:%Y-%m-%d %H:%M} UTC"
        for word, moment in (
            ("from", announced.window_start),
            ("to", announced.window_end),
            ("at the latest", announced.latest_start),
        )
        if moment is not None
    ]
    may = "may be begun earlier" if announced.can_reschedule else ""
    return ", ".join(part for part in (f"{announced.kind} {announced.status}", *times, may) if part)


def _shape(accelerator_type: str) -> str:
    kind = load_catalog().find(accelerator_type)
    if kind is None:
        return "(not in the bundled table)"
    hosts = "host" if kind.hosts == 1 else "hosts"
    return f"({kind.chips} chips, {kind.hosts} {hosts}, {kind.hbm_gib:g} GiB HBM)"


def _pairs(page: Paragraphs, title: str, pairs: Mapping[str, str], host: HostApp) -> None:
    if not pairs:
        return
    page.heading(title)
    for key, value in pairs.items():
        shown = mask(key, value, hides_addresses=host.context.options.is_watch)
        if "\n" in shown or len(shown) > 200:
            page.field(key, f"({len(value)} characters)")
            page.lines(shown, host.style_of("muted"), indent=4)
        else:
            page.field(key, shown)


def _json(page: Paragraphs, value: Mapping[str, Any], host: HostApp) -> None:
    if not value:
        page.styled("nothing is known", "muted")
        return
    text = json.dumps(
        _masked(value, host), indent=2, ensure_ascii=False, default=str, sort_keys=True
    )
    page.lines(text, indent=2)


def _masked(value: Any, host: HostApp, key: str = "") -> Any:
    if isinstance(value, str):
        return mask(key, value, hides_addresses=host.context.options.is_watch)
    if isinstance(value, dict):
        return {str(name): _masked(one, host, str(name)) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_masked(one, host, key) for one in value]
    return value


def _request_page(page: Paragraphs, subject: Subject, host: HostApp) -> None:
    request = host.context.snapshot.requests.get(subject.name)
    if request is None:
        page.line(f"The request {subject.short_name} is not listed any more.")
        return
    _request_sections(page, request, host)


def _request_sections(page: Paragraphs, request: QueuedResource, host: HostApp) -> None:
    page.heading(f"Queued resource {request.request_id}")
    page.field("name", request.name)
    page.field("project", project_of(request.name))
    page.field("zone", request.zone)
    look = look_of(request.state)
    page.field("state", f"{host.mark_of(look)} {request.state}", host.style_of(look.variable))
    page.field("caused by", request.initiator or "not given")
    if request.failure:
        page.field("failure", request.failure, host.style_of("chart-bad"))
    page.field("waiting for", fmt.age(request.create_time, host.context.now()))
    page.field("nodes", ", ".join(request.node_names))
    _pairs(page, "Labels", request.labels, host)
    page.heading("Every field of the API's object")
    _json(page, request.raw, host)


def _tombstone_page(page: Paragraphs, subject: Subject, host: HostApp) -> None:
    snapshot = host.context.snapshot
    if subject.name in snapshot.request_tombstones:
        _gone_request_page(page, snapshot.request_tombstones[subject.name], host)
        return
    stone = snapshot.tombstones.get(subject.name)
    if stone is None:
        page.line(f"{subject.short_name} was dismissed.")
        return
    page.heading(f"{subject.short_name} vanished")
    _vanished(page, stone.vanished, stone.node.state, host)
    for one in snapshot.request_tombstones.values():
        if stone.node.name in one.request.node_names:
            words = f"{one.request.request_id} vanished at {one.vanished:%Y-%m-%d %H:%M:%S} UTC"
            page.field("queued resource", words)
    add_log_lines(page, host, node_id=stone.node.node_id, kept=stone.last_entries)
    add_timeline(page, node_events(stone.node, host, stone))
    _node_sections(page, stone.node, host)


def _vanished(page: Paragraphs, moment: datetime, state: str, host: HostApp) -> None:
    age = fmt.age(moment, host.context.now())
    page.field("no longer listed", f"since {moment:%Y-%m-%d %H:%M:%S} UTC ({age} ago)")
    page.field("last state", state)


def _gone_request_page(page: Paragraphs, stone: RequestTombstone, host: HostApp) -> None:
    page.heading(f"{stone.request.request_id} vanished")
    _vanished(page, stone.vanished, stone.request.state, host)
    for name in stone.request.node_names:
        add_log_lines(
            page,
            host,
            node_id=name.rsplit("/", 1)[-1],
            kept=tuple(one for one in stone.last_entries if name.endswith(f"/{one.node_id}")),
        )
    _request_sections(page, stone.request, host)
