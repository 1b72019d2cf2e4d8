"""Texts as people posted them, whole with what stood around them, and lines that are no failure.

They were collected after the classifier's table was written, from public issues of the tools that
run TPUs; names of projects, buckets and people are changed. An empty list of classes is a text that
tells of no failure; UNCLASSIFIED one that tells of a failure which is not ours to name.
"""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any, Final

import pytest

from tests.unit.diagnostics.error_texts import CLOUD, Case
from tests.unit.diagnostics.test_classifier import HTTP, number_of
from tpudash.diagnostics.classifier import classify_text
from tpudash.domain.failure import ErrorClass

TEXTS: Final[list[dict[str, Any]]] = json.loads(
    Path(__file__).with_name("field_texts.json").read_text(encoding="utf-8")
)
EID: Final = re.compile(r"EID: (0x[0-9a-f]+)")
ABROAD: Final = "UNCLASSIFIED"


@pytest.mark.parametrize("case", TEXTS, ids=lambda case: str(case["id"]))
def test_a_text_of_the_field(case: dict[str, Any]) -> None:
    text, wanted = case["text"], case["classes"]
    found = classify_text(text)
    got = [str(failure.error_class) for failure in found]
    if not wanted or (ABROAD in wanted and set(got) <= {ABROAD}):
        assert set(got) <= set(wanted), found
        return
    assert got, text
    assert set(got) <= set(wanted), found
    first = found[0]
    assert first.evidence
    assert first.advice
    for name, value in case.get("scope", {}).items():
        assert getattr(first.scope, name) == value, (name, first)
    if "retry" in case:
        assert first.retry == case["retry"]
    if eid := EID.search(text):
        assert (first.eid, "EID" in first.evidence) == (eid[1], False)


def test_there_are_enough_of_every_kind() -> None:
    told = [tuple(case["classes"]) for case in TEXTS]
    assert len(TEXTS) >= 170
    assert told.count(()) >= 10, "calm lines"
    assert told.count((ABROAD,)) >= 15, "failures of something else"
    assert len({name for classes in told for name in classes}) >= 20


@pytest.mark.parametrize("width", [44, 60, 79, 97, 118])
@pytest.mark.parametrize("case", CLOUD, ids=lambda case: case.id)
def test_a_text_that_a_terminal_tore(case: Case, width: int) -> None:
    number = number_of(case)
    for text in (
        f"│ Error: Error waiting to create Node: Error code {number}, message: {case.text}",
        f"ERROR: (gcloud.compute.tpus.tpu-vm.create) {case.text}",
        f"google.api_core.exceptions.GoogleAPICallError: {HTTP.get(case.code, 400)} {case.text}",
    ):
        lines = textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False)
        torn = ("\n│ " if text[0] == "│" else "\n").join(lines)
        (failure,) = classify_text(torn)
        assert failure.error_class is case.expected, torn
        for name, value in case.scope.items():
            assert getattr(failure.scope, name) == value, (name, torn)


QUOTING: Final = {
    "a reply": "> {text}",
    "a list": "  * {text}",
    "code": "```{text}```",
    "JavaScript": "Error: {number} {code}: {text}\n    at Object.callErrorFromStatus (call.js:31)",
    "Go": 'level=error msg="rpc error: code = Unknown desc = {escaped}" attempt=3',
    "a container's log": "2026-12-01T10:00:00.1Z stderr F {text}",
    "absl": "E1201 10:00:00.000000   123 launch.py:1] {text}",
    "YAML": "code: {number}\nmessage: {text}",
    "text proto": 'status {{ code: {number} message: "{escaped}" }}',
    "bytes": 'b\'{{"error": {{"code": {number}, "message": "{escaped}"}}}}\'',
}


@pytest.mark.parametrize("quoting", QUOTING.values(), ids=QUOTING.keys())
@pytest.mark.parametrize("case", CLOUD, ids=lambda case: case.id)
def test_a_text_that_is_quoted(case: Case, quoting: str) -> None:
    escaped = case.text.replace('"', '\\"')
    facts = {"number": number_of(case), "code": case.code or "UNKNOWN"}
    (failure,) = classify_text(quoting.format(text=case.text, escaped=escaped, **facts))
    assert failure.error_class is case.expected
    assert failure.scope.zone == case.scope.get("zone", failure.scope.zone)


def test_separate_lines_stay_separate() -> None:
    calm = "the first of them says nothing of any.\n\n2026-12-01 this says it is exceeded"
    assert classify_text(calm.replace("any", "any quota")) == []
    two = classify_text("ERROR: Socket closed by the peer\nERROR: Out of memory: Killed process 7")
    assert [one.error_class for one in two] == [ErrorClass.CONNECT, ErrorClass.HOST_OOM]
