"""Several projects at once: joined where they are looked at, each operated by itself."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from google.cloud import tpu_v2
from google.cloud.logging_v2 import types as logging_types

from tests.contract.command_line import CommandLine
from tests.contract.fake_google import LOGGING, TPU, FakeGoogle, FastClock, fake_google, refusal
from tpudash.config.settings import Settings
from tpudash.errors import NotAllowedError
from tpudash.gateways.connection import Connection, ConnectionOptions
from tpudash.store.changes import NodesListed
from tpudash.store.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.emulator_fixture import Cloud

LIST = f"{TPU}/ListNodes"
REQUESTS = f"{TPU}/ListQueuedResources"


class Projects:
    """A server whose projects hold a node each, and of which some may be closed."""

    def __init__(self, fake: FakeGoogle) -> None:
        self.closed: set[str] = set()
        self.fake = fake
        fake.on(LIST, self._nodes)
        fake.on(REQUESTS, self._requests)
        fake.on(f"{TPU}/GetNode", self._node)

    def _open(self, parent: str) -> str:
        project = parent.split("/")[1]
        if project in self.closed:
            raise refusal("PERMISSION_DENIED", f"Permission 'tpu.nodes.list' denied on '{parent}'")
        return project

    def _nodes(self, request: Any) -> Any:
        project = self._open(request.parent)
        name = f"projects/{project}/locations/us-east1-{project[-1]}/nodes/n"
        return tpu_v2.ListNodesResponse(nodes=[tpu_v2.Node(name=name, state="READY")])

    def _node(self, request: Any) -> Any:
        self._open(request.name)
        return tpu_v2.Node(name=request.name, state="READY")

    def _requests(self, request: Any) -> Any:
        project = self._open(request.parent)
        name = f"projects/{project}/locations/us-east1-{project[-1]}/queuedResources/q"
        found = tpu_v2.QueuedResource(name=name, state={"state": "ACTIVE"})
        return tpu_v2.ListQueuedResourcesResponse(queued_resources=[found])


@pytest.fixture
async def projects() -> AsyncIterator[Projects]:
    async with fake_google() as fake:
        yield Projects(fake)


def test_projects_are_named_with_commas_or_each_by_itself() -> None:
    settings = Settings(project="team-a, team-b,,team-a")
    assert settings.projects == ("team-a", "team-b")
    assert settings.first_project == "team-a"
    assert Settings().projects == ()
    assert Settings().first_project is None


@pytest.mark.parametrize("flags", [("--project", "team-b,team-c"), ()], ids=["comma", "repeated"])
async def test_the_command_line_lists_all_of_them(
    projects: Projects, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    command = CommandLine(tmp_path, projects.fake.endpoint)
    named = flags or ("--project", "team-b", "--project", "team-c")
    done = await command("nodes", *named, "--json")
    assert [item["project"] for item in done.items] == ["team-b", "team-c"]
    assert "projects team-b, team-c" in done.envelope["source"]
    table = await command("requests", *named)
    assert "PROJECT" in table.out
    assert "team-c" in table.out


async def test_one_that_is_closed_does_not_hide_the_others(
    projects: Projects, tmp_path: Path
) -> None:
    projects.closed.add("team-c")
    command = CommandLine(tmp_path, projects.fake.endpoint, "team-b,team-c")
    envelope = (await command("nodes", "--json")).envelope
    assert [item["project"] for item in envelope["items"]] == ["team-b"]
    assert envelope["unreachable"] == ["projects/team-c"]
    errors = [one for one in envelope["errors"] if one["source"] == "projects/team-c"]
    assert "tpu.nodes.list" in errors[0]["title"]
    projects.closed.add("team-b")
    assert (await command("nodes", "--json")).is_refusal(3)


async def test_nodes_of_a_project_that_falls_silent_are_kept(projects: Projects) -> None:
    options = ConnectionOptions(
        project="team-b", more_projects=("team-c", "team-b"), endpoint=projects.fake.endpoint
    )
    clock, store = FastClock(), Store()
    connection = Connection(options, clock=clock)
    try:
        cloud = await connection.cloud()
        assert cloud.projects == ("team-b", "team-c")
        store.apply(NodesListed(await cloud.tpu.list_nodes(), clock.now()))
        assert len(store.snapshot.nodes) == 2
        projects.closed.add("team-c")
        store.apply(NodesListed(await cloud.tpu.list_nodes(), clock.now()))
        assert len(store.snapshot.nodes) == 2, "silence is not absence"
        assert "projects/team-c" in store.snapshot.unreachable
        assert not store.snapshot.tombstones
        assert len((await cloud.of("team-b").tpu.list_nodes()).nodes) == 1
        projects.closed.add("team-b")
        with pytest.raises(NotAllowedError):
            await cloud.tpu.list_nodes()
    finally:
        await connection.close()


async def test_what_is_named_is_operated_where_it_is(projects: Projects, tmp_path: Path) -> None:
    command = CommandLine(tmp_path, projects.fake.endpoint, "team-b,team-c")
    own = await command("delete", "n", "--dry-run")
    assert own.is_refusal(1), "it is not ours; if team-c counted, it would be ambiguous"
    assert "only by full name" in own.err
    name = "projects/team-c/locations/us-east1-c/nodes/n"
    named = (await command("delete", name, "--dry-run", "--json")).items[0]["plan"]
    assert {step["target"] for step in named["steps"]} == {name}
    both = await command("delete", name, name.replace("team-c", "team-b"), "--dry-run")
    assert both.is_refusal(2)
    assert "one project at a time" in both.err
    assert (await command("resume", "nothing", "--dry-run")).is_refusal(4)
    projects.closed.add("team-c")
    unknown = await command("resume", "nothing", "--dry-run")
    assert unknown.is_refusal(3), "what may be in a project that is closed is not known to be gone"


def entry(request: Any, minute: int) -> Any:
    """Return a line of the project that is read."""
    (resource,) = request.resource_names
    return logging_types.LogEntry(
        log_name=f"{resource}/logs/x",
        insert_id=f"{resource}-{minute}",
        text_payload=f"{resource} {minute}",
        timestamp=datetime(2026, 12, 1, 8, minute, tzinfo=UTC),
    )


async def followed(logs: Any) -> None:
    """Follow a log to its end."""
    async with asyncio.timeout(20):
        async for _ in logs.tail("x"):
            pass


async def test_logs_of_all_are_one_and_a_closed_one_says_so(projects: Projects) -> None:
    def listed(request: Any) -> Any:
        resource = projects._open(f"{request.resource_names[0]}/locations/-")
        minutes = (1, 3) if resource == "team-b" else (2, 4)
        found = [entry(request, minute) for minute in minutes]
        found.sort(key=lambda one: one.timestamp, reverse=request.order_by.endswith("desc"))
        return logging_types.ListLogEntriesResponse(entries=found)

    async def tailed(request: Any) -> AsyncIterator[Any]:
        projects._open(f"{request.resource_names[0]}/locations/-")
        yield logging_types.TailLogEntriesResponse(entries=[entry(request, 5)])
        await asyncio.get_running_loop().create_future()

    projects.fake.on(f"{LOGGING}/ListLogEntries", listed)
    projects.fake.tail = tailed
    options = ConnectionOptions(
        project="team-b", more_projects=("team-c",), endpoint=projects.fake.endpoint
    )
    connection = Connection(options, clock=FastClock())
    try:
        logs = (await connection.cloud()).logging
        newest = await logs.list_entries("x", newest_first=True, limit=3)
        assert [one.timestamp.minute for one in newest] == [4, 3, 2]
        seen: set[str] = set()
        async with asyncio.timeout(20):
            async for batch in logs.tail("x"):
                seen |= {one.text for one in batch.entries}
                if {"projects/team-b 5", "projects/team-c 5"} <= seen:
                    break
        projects.closed.add("team-c")
        *read, told = await logs.list_entries("x")
        assert [one.timestamp.minute for one in read] == [1, 3]
        assert "log of project team-c can't be read" in told.text
        projects.closed.add("team-b")
        with pytest.raises(NotAllowedError):
            await logs.list_entries("x")
        with pytest.raises(NotAllowedError):
            await followed(logs)
    finally:
        await connection.close()


async def test_the_rights_are_tried_in_each(emulator: Cloud, tmp_path: Path) -> None:
    command = CommandLine(tmp_path, emulator.endpoint, "demo,other")
    rows = (await command("doctor", "--json")).items
    tried = [row["subject"] for row in rows if row["title"] == "May list nodes"]
    assert tried == ["projects/demo", "projects/other"]
