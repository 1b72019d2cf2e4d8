"""The records of a run: what is accepted, what is refused, and what survives."""

from __future__ import annotations

import json

import pytest

from tests.unit.domain.test_run_state import spec
from tpudash.domain.run import RecordError, RunSpec, decode_record, decode_spec, encode_record


def test_a_spec_comes_back_as_it_was_written() -> None:
    data = encode_record(spec())
    assert decode_spec(data) == spec()
    assert json.loads(data)["created"].endswith("Z")


def test_unknown_keys_are_passed_over() -> None:
    data = {**json.loads(encode_record(spec())), "colour": "red"}
    assert decode_spec(json.dumps(data)) == spec()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schema": 2}, "newer"),
        ({"run_url": "/etc"}, "not the folder"),
        ({"run": "../x", "run_url": "gs://b/tpudash/runs/../x"}, "not the name"),
        ({"attempt": "many"}, "attempt"),
    ],
)
def test_a_spec_that_cannot_be_meant_is_refused(changes: dict[str, object], words: str) -> None:
    data = {**json.loads(encode_record(spec())), **changes}
    with pytest.raises(RecordError, match=words):
        decode_spec(json.dumps(data))


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b"[]", b"null"])
def test_what_is_no_record_is_refused(data: bytes) -> None:
    with pytest.raises(RecordError):
        decode_record(RunSpec, data)


def test_a_later_attempt_forgets_how_the_one_before_ended() -> None:
    ended = spec(failure={"class": "STOCKOUT"}, deleted=spec().created)
    again = ended.begun_again(2, spec().created)
    assert (again.attempt, again.failure, again.deleted) == (2, None, None)
    assert again.node_id == "demo-2"
