"""What lines claim of themselves, and what JSON lines are."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpudash.domain.log import Severity
from tpudash.logtext.dumps import DumpFinder, Fold
from tpudash.logtext.entries import UNKNOWN_TIME, entry_of_json, entry_of_line
from tpudash.logtext.guess import claim_of, guess_moment, guess_severity


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("E1201 08:00:00.123456 77 file.cc:12] bad", Severity.ERROR),
        ("W1201 08:00:00.123456 77 file.cc:12] hm", Severity.WARNING),
        ("2026-12-01 08:00:00.123456: E external/xla/x.cc:3] no", Severity.ERROR),
        ("2026-12-01 08:00:00.123456: I tensorflow/x.cc:3] yes", Severity.INFO),
        ("2026-12-01 08:00:00,123 - root - WARNING - careful", Severity.WARNING),
        ("ERROR:root:it failed", Severity.ERROR),
        ("[ERROR] it failed", Severity.ERROR),
        ("CRITICAL: it ended", Severity.CRITICAL),
        ("ValueError: no", Severity.ERROR),
        ("jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED", Severity.ERROR),
        ("RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm.", Severity.ERROR),
        ("UNAVAILABLE: socket closed", Severity.ERROR),
        ("UNAVAILABLE zones are left out", None),
        ("HBM: 3 of 16 GiB", None),
        ("ERRORS are counted below", None),
        ("Everything is fine", None),
        ("an ValueError: in the middle", None),
        ("", None),
    ],
)
def test_severities(text: str, severity: Severity | None) -> None:
    assert guess_severity(text) is severity


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-12-01 08:00:01.5: I x", datetime(2026, 12, 1, 8, 0, 1, 500_000, UTC)),
        ("2026-12-01 08:00:01.123456: I x", datetime(2026, 12, 1, 8, 0, 1, 123_456, UTC)),
        ("2026-12-01T09:00:01+01:00 x", datetime(2026, 12, 1, 8, 0, 1, 0, UTC)),
        ("2026-12-01T08:00:01.123456Z x", datetime(2026, 12, 1, 8, 0, 1, 123_456, UTC)),
        ("I1201 08:00:01.000002 1 f.cc:1] x", datetime(2026, 12, 1, 8, 0, 1, 2, UTC)),
        ("2026-13-41 08:00:01 x", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("no time", None),
    ],
)
def test_times(text: str, moment: datetime | None) -> None:
    assert guess_moment(text, 2026) == moment


def test_the_message_of_two_workers_is_the_same_text() -> None:
    one = "2026-12-01 08:00:00.123456: I tensorflow/x.cc:3] the same"
    two = "I1201 08:00:07.000001 4711 x.cc:3] the same"
    assert {text[claim_of(text)[1] :] for text in (one, two)} == {"the same"}


@given(st.text(max_size=60))
def test_any_line_is_an_entry(text: str) -> None:
    entry = entry_of_line(text)
    assert entry.timestamp.tzinfo is not None
    assert claim_of(text)[1] <= len(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)
NAMES = st.sampled_from(
    ("timestamp", "ts", "severity", "labels", "resource", "payload", "json", "text", "worker")
)


@given(st.dictionaries(NAMES, JSON))
def test_any_object_is_an_entry(value: dict[str, object]) -> None:
    entry = entry_of_json(value)
    assert isinstance(entry.text, str)
    assert entry.severity in Severity


def test_the_formats_of_several_writers() -> None:
    event = entry_of_line('{"ts": "2026-12-01T08:00:00Z", "event": "step", "step": 3, "run": "r"}')
    assert (event.event, event.run, event.timestamp.hour) == ("step", "r", 8)
    exported = entry_of_line(
        '{"textPayload": "hi", "severity": "ERROR", "timestamp": "2026-12-01T08:00:00.1Z",'
        ' "resource": {"labels": {"node_id": "n", "worker_id": "3", "zone": "z"}},'
        ' "labels": {"tpudash-run": "r", "tpudash-attempt": "2", "stream": "stderr"},'
        ' "insertId": "i"}'
    )
    assert (exported.text, exported.severity, exported.insert_id) == ("hi", Severity.ERROR, "i")
    assert (exported.node_id, exported.worker_id, exported.zone) == ("n", "3", "z")
    assert (exported.run, exported.attempt, exported.stream) == ("r", 2, "stderr")
    assert exported.payload is None
    ours = entry_of_line('{"timestamp": null, "text": "x", "worker": "1", "insert_id": null}')
    assert (ours.text, ours.worker_id, ours.timestamp) == ("x", "1", UNKNOWN_TIME)


def folds_of(*lines: str) -> list[int]:
    finder = DumpFinder()
    return [int(finder.take(number, line)) for number, line in enumerate(lines)]


def test_a_chain_of_tracebacks_is_one_dump() -> None:
    assert folds_of(
        "before",
        "Traceback (most recent call last):",
        '  File "a.py", line 1, in f',
        "KeyError: 'a'",
        "",
        "During handling of the above exception, another exception occurred:",
        "",
        "Traceback (most recent call last):",
        '  File "b.py", line 2, in g',
        "ValueError: b",
        "after",
    ) == [0, Fold.HEAD, *[Fold.MEMBER] * 8, 0]


def test_dumps_of_xla_and_stack_traces_fold() -> None:
    assert folds_of(
        "Total hbm usage >= 17.75G:",
        "    reserved        260.00M",
        "",
        "Largest program allocations in hbm:",
        "  1. Size: 4.00G",
        "     Operator: op_name=x",
        "     ==========================",
        "after",
    ) == [Fold.HEAD, *[Fold.MEMBER] * 6, 0]
    assert folds_of(
        "HloModule jit_step, is_scheduled=true",
        "",
        "ENTRY %main (p: f32[]) -> f32[] {",
        "  ROOT %a",
        "}",
        "after",
    ) == [Fold.HEAD, *[Fold.MEMBER] * 4, 0]
    assert folds_of(
        "*** SIGSEGV received at time=1 on cpu 2 ***",
        "PC: @     0x7f  (unknown)  raise",
        "    @     0x7f  1  main",
        "after",
    ) == [Fold.HEAD, Fold.MEMBER, Fold.MEMBER, 0]
