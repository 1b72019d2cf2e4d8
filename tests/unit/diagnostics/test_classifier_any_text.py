"""The classifier on texts that nobody foresaw: it never raises, and never takes long."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.diagnostics.error_texts import CLOUD
from tests.unit.diagnostics.error_texts_elsewhere import OTHER
from tpudash.diagnostics.classifier import LONGEST_EVIDENCE, classify, classify_text
from tpudash.diagnostics.classifier_codes import CODES
from tpudash.domain.failure import CloudStatus, ErrorClass, Origin

TEXTS = tuple(case.text for case in (*CLOUD, *OTHER))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(TEXTS),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["error", "message", "code", "status", "details", "class", "x"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)
FRAGMENTS = st.lists(st.text() | st.sampled_from([*TEXTS, "\\", '"', "{", "│ ", "\\n", "\n"]))


@given(FRAGMENTS)
@settings(deadline=None)
def test_no_text_makes_it_raise(parts: list[str]) -> None:
    for failure in classify_text("".join(parts)):
        assert len(failure.evidence) <= LONGEST_EVIDENCE
        assert failure.advice


@given(JSON)
@settings(deadline=None)
def test_no_json_makes_it_raise(value: object) -> None:
    text = json.dumps(value)
    classify_text(text)
    classify_text(f"ERROR: (gcloud.x) {text} and more")
    classify_text(json.dumps(text))


@given(
    st.sampled_from(CODES),
    st.text() | st.sampled_from(TEXTS),
    st.lists(st.dictionaries(st.sampled_from(["@type", "reason", "metadata", "violations"]), JSON)),
    st.sampled_from(Origin),
)
@settings(deadline=None)
def test_no_status_makes_it_raise(
    code: str, message: str, details: list[dict[str, object]], origin: Origin
) -> None:
    classify(CloudStatus(code, message, tuple(details), origin))


@pytest.mark.parametrize(
    "text",
    [
        "quota " * 1_000_000,
        "exceeded quota " * 400_000,
        '{"a":' * 400_000,
        "[" * 2_000_000,
        "\\" * 3_000_000,
        "reservation billing zone location permission " * 100_000,
        "2026-12-01 INFO loss 0.5 permission quota bucket failed billing\n" * 100_000,
        "(" * 1_000_000 + "\n" + "gs://" * 200_000,
        "│ the quota of the zone\n" * 2_500,
        "a-b1-c " * 500_000,
        "x" * 60_000 + " quota",
        "\x1b[" * 30_000,
    ],
    ids=range(12),
)
def test_hostile_texts_take_no_time(text: str) -> None:
    start = time.process_time()
    classify_text(text)
    assert time.process_time() - start < 6


def test_a_failure_is_found_anywhere_in_a_long_log() -> None:
    lines = ["2026-12-01 10:00:00 INFO step 1 of 2, loss 0.5"] * 50_000
    lines[30_000] = "2026-12-01 10:00:00 ERROR Ran out of memory in memory space hbm."
    (failure,) = classify_text("\n".join(lines))
    assert failure.error_class is ErrorClass.HBM_OOM


def test_a_failure_is_found_anywhere_in_a_long_line() -> None:
    text = "x " * 10_000 + "There is no more capacity in the zone us-central1-a" + " y" * 10_000
    (failure,) = classify_text(text)
    assert failure.scope.zone == "us-central1-a"
    assert "no more capacity" in failure.evidence
