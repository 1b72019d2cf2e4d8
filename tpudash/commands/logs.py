"""`tpudash logs`: the log of a run, over all its attempts, or of a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from tpudash.commands.items import log_item
from tpudash.commands.output import Answer, json_text, print_json
from tpudash.commands.running import run_async
from tpudash.commands.state import CliState, connection_options, json_option, pass_state
from tpudash.domain.log import LogEntry, Severity
from tpudash.tui.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tpudash.commands.target import Target

LONGEST_LINE: Final = 20_000
MOST_ENTRIES: Final = 50_000


@dataclass(frozen=True, slots=True)
class LogQuestion:
    """What to show of whose log."""

    target: Target
    since: datetime
    limit: int
    severity: Severity | None
    as_json: bool

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
        return all_of(own, f"severity>={self.severity}" if self.severity else "")

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
@click.argument("name", metavar="RUN|NODE")
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
@json_option
@connection_options
@pass_state
def logs(
    state: CliState,
    name: str,
    follow: bool,
    since: str,
    limit: int,
    severity: str | None,
    as_json: bool,
) -> None:
    """Show the log of a run over all its attempts, or of one node.

    With --follow, it starts with the past, streams what is new across attempts, and ends when
    the run is FINISHED, FAILED or DELETED. With --follow --json, each line is one JSON object.
    """
    chosen = Severity(severity.upper()) if severity else None
    run_async(_logs(state, name, since, limit, chosen, follow=follow, as_json=as_json))


async def _logs(
    state: CliState,
    name: str,
    since: str,
    limit: int,
    severity: Severity | None,
    *,
    follow: bool,
    as_json: bool,
) -> None:
    from tpudash.commands.durations import parse_since
    from tpudash.commands.facts import read_facts
    from tpudash.commands.session import open_session
    from tpudash.commands.target import check_name, find_target, not_found

    check_name(name)
    async with open_session(state) as session:
        start = parse_since(since, session.clock.now())
        facts = await read_facts(session, runs=True)
        target = find_target(facts, name)
        question = LogQuestion(target, start, limit, severity, as_json)
        if follow:
            if target.run is None and target.node is None:
                facts.raise_for("runs")
                raise not_found(facts, name)
            from tpudash.commands.log_follow import LogFollower

            await LogFollower(session, question).run()
            return
        newest = await session.cloud.logging.list_entries(
            question.filter_from(start), newest_first=True, limit=limit
        )
        entries = sorted(newest, key=lambda entry: entry.timestamp)
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


def json_line(entry: LogEntry) -> str:
    """Return an entry as one line of JSON."""
    return json_text(log_item(entry))


def text_line(entry: LogEntry) -> str:
    """Return an entry as one harmless line: time, node and worker, severity, text."""
    where = entry.node_id or "-"
    if entry.worker_id not in {"", "0"}:
        where += f"/{entry.worker_id}"
    moment = f"{entry.timestamp:%Y-%m-%dT%H:%M:%S}.{entry.timestamp.microsecond // 1000:03d}Z"
    text = safe_text(entry.text, LONGEST_LINE)
    return f"{moment} {safe_text(where)} {entry.severity:<7} {text}"
