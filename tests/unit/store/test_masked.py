"""A masked store lets no address and no account through, in whatever text they come."""

from __future__ import annotations

import time

import pytest

from tests.tui.factories import NOW, connect, list_nodes, make_entry, make_node, make_run
from tpudash.domain.finding import Finding, Verdict
from tpudash.domain.masking import without_addresses
from tpudash.domain.node import Symptom
from tpudash.store.changes import FindingsMade, LogsArrived, RunsRead, SourceReported
from tpudash.store.masked import MaskedStore
from tpudash.store.snapshot import SourceState, SourceStatus

SECRETS = ("alice@example.com", "10.0.0.2", "203.0.113.7", "2001:db8::1")


@pytest.mark.parametrize("secret", SECRETS)
def test_addresses_are_masked_wherever_they_stand(secret: str) -> None:
    for text in (secret, f"to {secret}.", f"({secret}):8470", f"x={secret},y"):
        assert secret not in without_addresses(text), text


@pytest.mark.parametrize(
    "text",
    [
        "step 1.2.3 of 4",
        "TensorFlow 2.21.0",
        "12:30:45 began",
        "gs://bucket/a.b/c",
        "v2-8 @ us-central1-b",
        "std::vector::push",
        "1.2.3.4.5.6",
    ],
)
def test_what_only_looks_like_an_address_stays(text: str) -> None:
    assert without_addresses(text) == text


@pytest.mark.parametrize("piece", ["a", "a.", "1.", "@", "a@", "ab:", "::"])
def test_a_line_of_megabytes_takes_no_time(piece: str) -> None:
    text = piece * (2_000_000 // len(piece))
    began = time.perf_counter()
    without_addresses(text)
    assert time.perf_counter() - began < 3


def test_nothing_of_it_enters_the_store() -> None:
    store, words = MaskedStore(), " ".join(SECRETS)
    connect(store)
    store.apply(LogsArrived((make_entry(1, f"said {words}"),)))
    store.apply(FindingsMade((Finding("x", "X", Verdict.FAIL, words, advice=words),)))
    store.apply(SourceReported(SourceStatus("nodes", SourceState.FAILING, title=words, hint=words)))
    symptom = Symptom("X", words, "0")
    list_nodes(store, make_node(health_description=words, symptoms=(symptom,)))
    store.apply(RunsRead((make_run(reason=words),), NOW))
    snapshot = store.snapshot
    (node,) = snapshot.nodes.values()
    seen = (
        *(entry.text for entry in store.logs),
        *(finding.evidence + finding.advice for finding in snapshot.findings),
        snapshot.sources["nodes"].title + snapshot.sources["nodes"].hint,
        node.health_description + node.symptoms[0].details,
        snapshot.runs["demo"].reason,
        str(snapshot.connection),
    )
    for secret in SECRETS:
        assert not [text for text in seen if secret in text], secret
