"""Several projects at once: joined where they are looked at, and only the first is operated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.cloud import tpu_v2

from tests.contract.command_line import CommandLine
from tests.contract.fake_google import TPU, FakeGoogle, FastClock, fake_google, refusal
from tpudash.config.settings import Settings
from tpudash.errors import NotAllowedError
from tpudash.gateways.connection import Connection, ConnectionOptions
from tpudash.store.changes import NodesListed
from tpudash.store.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

LIST = f"{TPU}/ListNodes"
REQUESTS = f"{TPU}/ListQueuedResources"


class Projects:
    """A server whose projects hold a node each, and of which some may be closed."""

    def __init__(self, fake: FakeGoogle) -> None:
        self.closed: set[str] = set()
        self.fake = fake
        fake.on(LIST, self._nodes)
        fake.on(REQUESTS, self._requests)

    def _open(self, parent: str) -> str:
        project = parent.split("/")[1]
        if project in self.closed:
            raise refusal("PERMISSION_DENIED", f"Permission 'tpu.nodes.list' denied on '{parent}'")
        return project

    def _nodes(self, request: Any) -> Any:
        project = self._open(request.parent)
        name = f"projects/{project}/locations/us-east1-{project[-1]}/nodes/n"
        return tpu_v2.ListNodesResponse(nodes=[tpu_v2.Node(name=name, state="READY")])

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
        assert cloud.own is not None
        assert len((await cloud.own.tpu.list_nodes()).nodes) == 1
        projects.closed.add("team-b")
        with pytest.raises(NotAllowedError):
            await cloud.tpu.list_nodes()
    finally:
        await connection.close()


async def test_only_the_first_is_operated(projects: Projects, tmp_path: Path) -> None:
    command = CommandLine(tmp_path, projects.fake.endpoint, "team-b,team-c")
    own = await command("delete", "n", "--dry-run")
    assert own.is_refusal(1), "it is not ours; if team-c counted, it would be ambiguous"
    assert "only by full name" in own.err
