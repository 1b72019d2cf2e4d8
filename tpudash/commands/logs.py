"""`tpudash logs`: the log of a run, over all its attempts, or of a node."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from tpudash.commands.items import log_item
from tpudash.commands.output import Answer, json_text, print_json
from tpudash.commands.running import run_async
from tpudash.commands.state import CliState, connection_options, json_option, pass_state
from tpudash.domain.log import LogEntry, Severity
from tpudash.errors import TpudashError, UsageError
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tpudash.commands.session import Session
    from tpudash.commands.target import Target

LONGEST_LINE: Final = 20_000
MOST_ENTRIES: Final = 50_000
STARTUP_HINT: Final = (
    "the agent sends the startup script's output once it runs; before that, it is on the node: "
    "journalctl -u google-startup-scripts.service"
)


@dataclass(frozen=True, slots=True)
class LogQuestion:
    """What to show of whose log."""

    target: Target
    since: datetime
    limit: int
    severity: Severity | None
    as_json: bool
    is_startup: bool = False

    def accepts(self, entry: LogEntry) -> bool:
        """Whether an entry that came from elsewhere is one that was asked for."""
        if self.severity is not None and entry.severity.rank < self.severity.rank:
            return False
        return entry.timestamp >= self.since and (not self.is_startup or entry.stream == "startup")

    @property
    def filter(self) -> str:
        """The filter for both listing and tail, in Cloud Logging's language."""
        from tpudash.gateways.log_filters import all_of, node_filter, run_filter

        node = self.target.node
        own = (
            run_filter(self.target.name)
            if node is None
            else node_filter(node.node_id, zone=node.zone)
        )
        return all_of(
            own,
            f"severity>={self.severity}" if self.severity else "",
            'labels.stream="startup"' if self.is_startup else "",
        )

    def filter_from(self, start: datetime) -> str:
        """Return the filter with a lower bound of time."""
        from tpudash.gateways.log_filters import all_of, since_filter

        return all_of(self.filter, since_filter(start))

    def show(self, entries: Sequence[LogEntry]) -> None:
        """Print entries as lines, or as one JSON object a line."""
        render = json_line if self.as_json else text_line
        for entry in entries:
            click.echo(render(entry))


@click.command()
@click.argument("name", metavar="[RUN|NODE|-]", required=False)
@click.option(
    "--file",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Read this file instead; - as the name reads standard input.",
)
@click.option("-f", "--follow", is_flag=True, help="Go on until the run ends.")
@click.option("--since", default="30d", metavar="AGE|TIME", help="Begin there: 15m, 2h, a time.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, MOST_ENTRIES),
    default=1_000,
    show_default=True,
    help="The most entries of the past.",
)
@click.option(
    "--severity",
    type=click.Choice([str(one) for one in Severity], case_sensitive=False),
    help="This severity and above.",
)
@click.option("--startup", is_flag=True, help="Only what the startup script said.")
@click.option("--plain", is_flag=True, help="Print lines of a file or pipe; open no viewer.")
@json_option
@connection_options
@pass_state
def logs(
    state: CliState,
    *,
    name: str | None,
    file: Path | None,
    follow: bool,
    since: str,
    limit: int,
    severity: str | None,
    startup: bool,
    plain: bool,
    as_json: bool,
) -> int:
    """Show the log of a run over all its attempts, of one node, of a file or of a pipe.

    With --follow, it starts with the past, streams what is new across attempts, and ends when
    the run is FINISHED, FAILED or DELETED. With --follow --json, each line is one JSON object.
    A file, or with "-" standard input, opens in a viewer on a terminal; elsewhere it is printed,
    cleaned of control sequences and with progress bars reduced to their last state.
    """
    chosen = Severity(severity.upper()) if severity else None
    if file is not None or name == "-":
        if file is not None and name is not None:
            raise UsageError("give the name of a run or node, or --file, but not both")
        return _local(state, file, limit, chosen, follow=follow, plain=plain, as_json=as_json)
    if name is None:
        raise UsageError("the name of a run or node is missing", hint="or give: --file FILE")
    wanted = _Wanted(name, since, limit, chosen, startup)
    run_async(_logs(state, wanted, follow=follow, as_json=as_json))
    return 0


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What was asked for on the command line."""

    name: str
    since: str
    limit: int
    severity: Severity | None
    is_startup: bool


def _local(
    state: CliState,
    file: Path | None,
    limit: int,
    severity: Severity | None,
    *,
    follow: bool,
    plain: bool,
    as_json: bool,
) -> int:
    """Show a file, or standard input."""
    from tpudash.commands import log_view

    if log_view.shows_viewer(as_json=as_json, plain=plain):
        return log_view.view_file(state, file) if file is not None else log_view.view_pipe(state)

    def show(entry: LogEntry, text: str) -> None:
        if severity is None or entry.severity.rank >= severity.rank:
            click.echo(json_line(entry) if as_json else text)

    if file is not None:
        log_view.print_file(file, limit, show, follow=follow)
    else:
        log_view.print_pipe(show)
    return 0


async def _logs(state: CliState, wanted: _Wanted, *, follow: bool, as_json: bool) -> None:
    from tpudash.commands.durations import parse_since
    from tpudash.commands.facts import read_facts
    from tpudash.commands.session import open_session
    from tpudash.commands.target import check_name, find_target, not_found

    name = wanted.name
    check_name(name)
    async with open_session(state) as session:
        start = parse_since(wanted.since, session.clock.now())
        facts = await read_facts(session, runs=True)
        target = find_target(facts, name)
        question = LogQuestion(
            target, start, wanted.limit, wanted.severity, as_json, wanted.is_startup
        )
        if follow:
            if target.run is None and target.node is None:
                facts.raise_for("runs")
                raise not_found(facts, name)
            from tpudash.commands.log_follow import LogFollower

            await LogFollower(session, question).run()
            return
        entries = await _past(session, question)
        if not entries and target.run is None and target.node is None:
            facts.raise_for("runs")
            raise not_found(facts, name)
        if as_json:
            items = [log_item(entry) for entry in entries]
            print_json(Answer(facts.as_of, session.source, items, errors=facts.errors))
            return
        question.show(entries)
        if not entries:
            click.echo(f"no log entries of {name} since {start:%Y-%m-%d %H:%M} UTC", err=True)
            if wanted.is_startup:
                click.echo(STARTUP_HINT, err=True)


async def _past(session: Session, question: LogQuestion) -> list[LogEntry]:
    """Return the entries of the past: of Cloud Logging, or what the agents left in the bucket."""
    newest = await session.cloud.logging.list_entries(
        question.filter_from(question.since), newest_first=True, limit=question.limit
    )
    if not newest and question.target.run is not None:
        newest = await _archived(session, question)
    # Those of the same moment stay in the order in which they were written.
    oldest_first = list(reversed(newest))
    oldest_first.sort(key=lambda entry: entry.timestamp)
    return oldest_first[-question.limit :]


async def _archived(session: Session, question: LogQuestion) -> tuple[LogEntry, ...]:
    from tpudash.pollers.log_archive import merged, read_archive

    run = question.target.run
    if run is None or run.spec is None:
        return ()
    try:
        found = merged(await read_archive(session.cloud.bucket, run.spec.run_url))
    except TpudashError as error:
        click.echo(f"the run's bucket can't be read: {error}", err=True)
        return ()
    return tuple(entry for entry in found if question.accepts(entry))[::-1]


def json_line(entry: LogEntry) -> str:
    """Return an entry as one line of JSON."""
    from tpudash.logtext.entries import UNKNOWN_TIME

    item = log_item(entry)
    if entry.timestamp == UNKNOWN_TIME:
        item["timestamp"] = None
    return json_text(item)


def text_line(entry: LogEntry) -> str:
    """Return an entry as one harmless line: time, node and worker, severity, text."""
    where = entry.node_id or "-"
    if entry.worker_id not in {"", "0"}:
        where += f"/{entry.worker_id}"
    moment = f"{entry.timestamp:%Y-%m-%dT%H:%M:%S}.{entry.timestamp.microsecond // 1000:03d}Z"
    text = safe_text(entry.text, LONGEST_LINE)
    return f"{moment} {safe_text(where)} {entry.severity:<7} {text}"
