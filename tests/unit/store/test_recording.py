"""Recordings: what is written comes back as it was, without secrets, whole or cut off."""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import zlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tui.factories import FakeClock, make_attempt, make_entry, make_node, make_request
from tests.tui.factories import make_run as make_plain_run
from tpudash.domain.metric import MetricPoint, MetricSeries
from tpudash.domain.node import NodeListing
from tpudash.domain.request import RequestListing
from tpudash.domain.run import Recipe
from tpudash.errors import ConfigurationError, NotFoundError, UsageError
from tpudash.store.changes import (
    Change,
    Connected,
    LogsArrived,
    NodesListed,
    RequestsListed,
    RunsRead,
    SeriesRead,
    SourceReported,
)
from tpudash.store.recording import RecordedStore, Recorder
from tpudash.store.recording_codec import CHANGES, CodecError, decode, encode
from tpudash.store.recording_masking import without_secrets, without_secrets_in
from tpudash.store.recording_player import TURN_S, Player, ReplayClock
from tpudash.store.recording_reader import Recording
from tpudash.store.snapshot import ConnectionInfo, SourceState, SourceStatus

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
PREEMPTION = Path(__file__).parents[2] / "recordings" / "preemption.rec"


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def listed(*states: str, second: float = 0) -> NodesListed:
    nodes = tuple(make_node(f"demo-{at}", state) for at, state in enumerate(states, 1))
    return NodesListed(NodeListing(nodes), NOW + timedelta(seconds=second))


def series(*values: float, start: float = 0) -> SeriesRead:
    points = tuple(
        MetricPoint(NOW + timedelta(seconds=start + 60 * at), value)
        for at, value in enumerate(values)
    )
    one = MetricSeries("tpu.googleapis.com/cpu/utilization", "demo-1", "z", "0", "%", points)
    return SeriesRead((one,), NOW)


CASES: tuple[Change, ...] = (
    listed("READY", "a state of tomorrow"),
    RequestsListed(RequestListing((make_request(),)), NOW),
    RunsRead((make_plain_run(),), NOW),
    LogsArrived((make_entry(1, "step 1", payload={"event": "step", "loss": 0.5}),), 3),
    series(1.0, 2.0),
    SourceReported(SourceStatus("nodes", SourceState.FAILING, NOW, NOW, "no answer", "", "", 9.5)),
    Connected(ConnectionInfo("demo", None, None, is_emulator=True)),
)


@pytest.mark.parametrize("change", CASES, ids=lambda change: type(change).__name__)
def test_a_change_comes_back_as_it_was(change: Change) -> None:
    assert decode(type(change).__name__, through_json(encode(change))) == change


def test_every_change_of_the_store_has_a_reader() -> None:
    for kind in CHANGES:
        with pytest.raises(CodecError):
            decode(kind, [])


@given(st.sampled_from(sorted(CHANGES)), st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.sampled_from(["listing", "nodes", "name", "as_of", "series", "entries", "runs"]), inner
    ),
    max_leaves=12,
))  # fmt: skip
def test_any_data_is_a_change_or_an_error_of_ours(kind: str, data: Any) -> None:
    with contextlib.suppress(CodecError):
        assert isinstance(decode(kind, data), CHANGES[kind])


SECRETS = (
    "password=hunter2hunter2",
    "HF_TOKEN: hf_abcdefghijklmnopqrstuvwx",
    "--api-key sesame-street-12",
    "Authorization: Bearer abcdefghijklmnop",
    "https://bob:swordfish99@example.com/x",
    "ya29.a0AfH6SMBexampleexample",
    "alice@example.com",
    "reached 203.0.113.7:22",
    '{"client_secret": "GOCSPX-abcdefghijkl"}',
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN\n-----END PRIVATE KEY-----",
)
WORDS: tuple[str, ...] = (
    "hunter2",
    "hf_abc",
    "sesame",
    "abcdefghijklmnop",
    "swordfish",
    "a0AfH6",
    "alice@",
)
WORDS += ("203.0", "GOCSPX", "MIIEv")


@pytest.mark.parametrize("text", SECRETS)
def test_secrets_and_addresses_are_masked_in_text(text: str) -> None:
    masked = without_secrets(f"before {text}")
    assert "***" in masked
    assert masked.startswith("before ")
    assert not any(word in masked for word in WORDS)


def test_figures_and_usual_words_stay() -> None:
    for text in ("step 100 loss 0.5", "tokens_per_second 12", "monkey=3", "12:30:01 key pressed"):
        assert without_secrets(text) == text
    data = {"tokens_per_second": 12.5, "token": "abc", "argv": ["--hf-token", "abc", "--steps"]}
    assert without_secrets_in(data) == {
        "tokens_per_second": 12.5, "token": "***", "argv": ["--hf-token", "***", "--steps"],
    }  # fmt: skip


@dataclass
class Written:
    """A recording made of changes, a second apart."""

    path: Path
    clock: FakeClock

    def record(self, *changes: Change, **options: Any) -> Recorder:
        recorder = Recorder(self.path, self.clock, **options)
        store = RecordedStore(recorder)
        recorder.start()
        for change in changes:
            self.clock.move(1)
            store.apply(change)
        recorder.close()
        return recorder

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in gzip.decompress(self.path.read_bytes()).splitlines()]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path / "it.rec", FakeClock())


def test_what_is_recorded_is_played_at_its_time(written: Written) -> None:
    written.record(listed("CREATING"), listed("READY"), listed("PREEMPTED"), listed())
    assert written.path.stat().st_mode & 0o777 == 0o600
    recording = Recording(written.path)
    clock = FakeClock()
    player = Player(recording, ReplayClock(clock, recording.started, recording.ended))
    seen = []
    for _ in range(5):
        player.catch_up()
        seen.append([node.state for node in player.store.snapshot.nodes.values()])
        clock.move(1)
    assert seen == [[], ["CREATING"], ["READY"], ["PREEMPTED"], []]
    assert [mark.text for mark in recording.marks] == [
        "demo-1 READY", "demo-1 PREEMPTED", "demo-1 gone",
    ]  # fmt: skip
    assert recording.problem == ""


def test_going_back_begins_again_and_going_on_does_not(written: Written) -> None:
    written.record(*(listed(state) for state in ("CREATING", "READY", "PREEMPTED")))
    recording = Recording(written.path)
    player = Player(recording, ReplayClock(FakeClock(), recording.started, recording.ended))
    replaced: list[object] = []
    player.replaced = replaced.append
    assert player.next_mark() == "demo-1 READY"
    player.seek(recording.ended + timedelta(hours=1))
    assert [node.state for node in player.store.snapshot.nodes.values()] == ["PREEMPTED"]
    assert replaced == []
    assert player.next_mark() == ""
    player.skip(-1)
    assert [node.state for node in player.store.snapshot.nodes.values()] == ["READY"]
    assert replaced == [player.store]


def test_the_clock_of_a_recording_pauses_and_changes_its_speed() -> None:
    real = FakeClock()
    clock = ReplayClock(real, NOW, NOW + timedelta(minutes=10), speed=10)
    real.move(6)
    assert clock.now() == NOW + timedelta(seconds=60)
    clock.pause(on=True)
    real.move(100)
    assert clock.now() == NOW + timedelta(seconds=60)
    clock.pause(on=False)
    clock.set_speed(1)
    real.move(5)
    assert clock.now() == NOW + timedelta(seconds=65)
    real.move(10_000)
    assert clock.now() == NOW + timedelta(minutes=10)
    assert clock.is_over


def test_what_is_repeated_is_written_once(written: Written) -> None:
    written.record(listed("READY"), listed("READY", second=12), series(1, 2), series(1, 2, 3))
    first, again, *points = written.lines[1:]
    assert "v" in first
    assert "v" not in again
    assert [len(line["v"]["series"][0]["points"]) for line in points] == [2, 1]
    recording = Recording(written.path)
    changes = list(recording.changes(0, len(recording)))
    assert isinstance(changes[1], NodesListed)
    assert changes[1].as_of == NOW + timedelta(seconds=12)
    assert changes[1].listing.nodes[0].state == "READY"


def test_no_secret_reaches_the_file(written: Written) -> None:
    recipe = Recipe(
        name="mine",
        command=("python3", "--wandb-api-key", "sesame-street-12"),
        environment={"SOMETHING": "hunter2hunter2"},
    )
    run = make_plain_run()
    assert run.spec is not None
    spec = replace(run.spec, recipe=recipe)
    attempt = make_attempt(error={"class": "X", "detail": "by alice@example.com"})
    node = make_node(metadata={"startup-script": "export X=hunter2hunter2"})
    node = replace(node, raw={"serviceAccount": {"email": "alice@example.com"}})
    written.record(
        Connected(ConnectionInfo("demo", "203.0.113.7:1", "alice@example.com")),
        NodesListed(NodeListing((node,)), NOW),
        RunsRead((replace(run, spec=spec, attempts=(attempt,)),), NOW),
        *(LogsArrived((make_entry(at, text),)) for at, text in enumerate(SECRETS)),
        LogsArrived((make_entry(99, "x", payload={"deep": [{"password": "hunter2"}]}),)),
    )
    text = gzip.decompress(written.path.read_bytes()).decode()
    assert not [word for word in WORDS if word in text]
    recording = Recording(written.path)
    assert len(list(recording.changes(0, len(recording)))) == len(SECRETS) + 4


def test_a_recording_that_was_cut_off_is_played_up_to_there(written: Written) -> None:
    written.record(*(listed("READY", f"STATE_{at}") for at in range(300)))
    whole = written.path.read_bytes()
    for share in (0.3, 0.7, 0.999):
        written.path.write_bytes(whole[: int(len(whole) * share)])
        recording = Recording(written.path)
        assert "early" in recording.problem
        assert len(list(recording.changes(0, len(recording)))) == len(recording)
    damaged = bytearray(whole)
    damaged[len(whole) // 2 :] = b"\xff" * (len(whole) - len(whole) // 2)
    written.path.write_bytes(damaged)
    assert Recording(written.path).problem


LATER = b'{"tpudash_recording": 99, "started": "2026-12-01T00:00:00Z"}\n'


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", UsageError),
        (b"not gzip at all", UsageError),
        (gzip.compress(b""), UsageError),
        (gzip.compress(b"[1,2]\n"), UsageError),
        (gzip.compress(LATER), UsageError),
        (zlib.compress(b"x"), UsageError),
    ],
    ids=["empty", "text", "empty-gzip", "list", "later", "zlib"],
)  # fmt: skip
def test_what_is_no_recording_is_refused(tmp_path: Path, data: bytes, error: type) -> None:
    path = tmp_path / "it.rec"
    path.write_bytes(data)
    with pytest.raises(error):
        Recording(path)
    with pytest.raises(NotFoundError):
        Recording(tmp_path / "nothing.rec")
    with pytest.raises(ConfigurationError):
        Recording(tmp_path)


def test_lines_that_mean_nothing_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "it.rec"
    header = {"tpudash_recording": 1, "started": "2026-12-01T00:00:00Z"}
    lines: list[Any] = [
        header,
        {"t": 1, "k": "Unheard", "v": {}},
        {"t": 2, "k": "NodesListed", "v": {"listing": {"nodes": [{"name": "x", "state": "S"}]}}},
        {"t": 3, "k": "NodesListed", "v": {"listing": 7}},
        {"t": 4, "k": "LogsArrived"},
        {"t": 5, "k": "LivesRead", "v": {"lives": []}},
    ]
    text = "\n".join(json.dumps(line) for line in lines) + "\n{broken\n"
    path.write_bytes(gzip.compress(text.encode()))
    recording = Recording(path)
    assert len(list(recording.changes(0, len(recording)))) == 1
    assert recording.unread == 5


def test_nothing_is_written_over_and_a_full_file_ends(written: Written) -> None:
    recorder = written.record(*(listed(f"S{at}") for at in range(50)), most_bytes=1)
    assert recorder.is_full
    assert 0 < recorder.changes < 50
    assert Recording(written.path).problem == ""
    with pytest.raises(UsageError):
        Recorder(written.path, written.clock).start()
    with pytest.raises(ConfigurationError):
        Recorder(written.path / "below", written.clock).start()


def test_a_lost_loss_is_recorded_as_no_number(written: Written) -> None:
    payload = {"event": "step", "loss": math.nan}
    written.record(LogsArrived((make_entry(1, "x", payload=payload),)))
    recording = Recording(written.path)
    (change,) = recording.changes(0, 9)
    assert isinstance(change, LogsArrived)
    assert change.entries[0].payload == {"event": "step", "loss": None}


def test_a_long_way_is_gone_in_turns_so_that_keys_are_heard_meanwhile() -> None:
    class Running(FakeClock):
        """Each look at it takes a while."""

        def monotonic(self) -> float:
            self.move(TURN_S / 2)
            return super().monotonic()

    recording = Recording(PREEMPTION)
    clock = ReplayClock(Running(), recording.started, recording.ended)
    player = Player(recording, clock)
    player.seek(recording.ended)
    shares = [player.share_applied]
    while not player.catch_up():
        shares.append(player.share_applied)
    assert len(shares) > 3
    assert shares == sorted(shares)
    assert shares[0] < 0.5
    assert player.share_applied == 1.0
    assert player.store.snapshot.runs["rough"].state == "TRAINING"


def test_the_recorded_preemption_tells_its_story() -> None:
    recording = Recording(PREEMPTION)
    player = Player(recording, ReplayClock(FakeClock(), recording.started, recording.ended))
    story = []
    while text := player.next_mark():
        story.append(text)
    assert story == ["rough-1 READY", "rough-1 PREEMPTED", "rough-1 gone, rough-2 READY"]
    player.seek(recording.ended)
    run = player.store.snapshot.runs["rough"]
    assert run.state == "TRAINING"
    assert [record.state for record in run.attempts] == ["PREEMPTED", "TRAINING"]
    assert run.attempts[1].restored_step == run.attempts[0].checkpoint_step
    assert player.store.series.of("rough-1")
    assert recording.unread == 0
    assert recording.problem == ""
