"""Each right by itself: a call that was answered proves it, a refusal names the least role."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from tpudash.diagnostics.rights import NAMED, RIGHTS, Tried, judge
from tpudash.domain.failure import CloudStatus
from tpudash.domain.finding import Finding, Verdict
from tpudash.errors import TpudashError, UnreachableError
from tpudash.gateways.translate import to_error

if TYPE_CHECKING:
    from tpudash.diagnostics.rights import Right

NOW = datetime(2026, 12, 1, tzinfo=UTC)


def rows_of(tried: Tried) -> dict[str, Finding]:
    return {row.check_id: row for row in judge(tried, "demo", NOW)}


def row_of(right: Right, tried: Tried) -> Finding:
    return rows_of(tried)[f"right-{right.key.replace(' ', '-')}"]


def refused(code: str, words: str) -> TpudashError:
    return to_error(CloudStatus(code, words), "look", changes=False)


DENIED = refused("PERMISSION_DENIED", "Permission 'x.y.z' denied on 'projects/demo'")


@pytest.mark.parametrize("right", RIGHTS, ids=lambda right: right.key)
def test_a_right_that_is_missing_by_a_refused_call(right: Right) -> None:
    row = row_of(right, Tried({right.key: DENIED}))
    assert row.verdict is right.missing
    assert right.role in row.advice
    assert "denied" in row.evidence
    if right.role.startswith("roles/") and " " not in right.role:
        assert row.command == (
            f"gcloud projects add-iam-policy-binding demo --member=user:YOU --role={right.role}"
        )


@pytest.mark.parametrize("right", [one for one in RIGHTS if one.is_named], ids=lambda r: r.key)
def test_a_right_that_the_project_says_is_not_held(right: Right) -> None:
    everything = rows_of(Tried(missing=frozenset({right.key})))
    row = everything.pop(f"right-{right.key}")
    assert row.verdict is right.missing
    assert right.role in row.advice
    assert {one.verdict for one in everything.values()} <= {Verdict.PASS, Verdict.UNKNOWN}


def test_an_answer_proves_more_than_a_policy() -> None:
    tried = Tried({"tpu.nodes.list": None}, missing=frozenset(NAMED))
    rows = rows_of(tried)
    assert rows["right-tpu.nodes.list"].verdict is Verdict.PASS
    assert rows["right-tpu.nodes.create"].verdict is Verdict.WARN


def test_an_api_that_is_off_is_no_missing_right() -> None:
    words = "Cloud Monitoring API has not been used in project 1 before or it is disabled."
    error = refused("PERMISSION_DENIED", words)
    row = rows_of(Tried({"monitoring.timeSeries.list": error}))["right-monitoring.timeSeries.list"]
    assert row.verdict is Verdict.FAIL
    assert row.command == "gcloud services enable monitoring.googleapis.com --project=demo"


def test_silence_is_neither_a_pass_nor_a_missing_right() -> None:
    tried = Tried({"tpu.nodes.list": UnreachableError("no answer")}, silence="nobody there")
    rows = rows_of(tried)
    assert {row.verdict for row in rows.values()} == {Verdict.UNKNOWN}
    assert "nobody there" in rows["right-tpu.nodes.create"].evidence


def test_where_nobody_is_signed_in_that_is_the_only_row() -> None:
    error = refused("UNAUTHENTICATED", "Request had invalid authentication credentials.")
    (row,) = judge(Tried({"tpu.nodes.list": error, "prices": DENIED}), "demo", NOW)
    assert row.verdict is Verdict.FAIL
    assert "gcloud auth application-default login" in row.advice


def test_a_local_endpoint_asks_for_no_rights() -> None:
    rows = rows_of(Tried({"tpu.nodes.list": None}, is_local=True))
    assert rows["right-tpu.nodes.list"].verdict is Verdict.PASS
    assert rows["right-tpu.nodes.create"].verdict is Verdict.NOT_APPLICABLE
