"""What a check is: a small pure function of evidence, and how its verdict becomes a row."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from tpudash.diagnostics.words import span
from tpudash.domain.finding import Finding, Verdict
from tpudash.store.snapshot import NODES, SourceState

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.probe import ProbeKey, ProbeResult

PROJECT_SUBJECT = "project"


class Scope(StrEnum):
    """What a check is about: it is run once for each of these that is in question."""

    PROJECT = "project"
    NODE = "node"
    RUN = "run"


class Group(StrEnum):
    """The kind of trouble that a check is about, as a user meets it."""

    BASICS = "connection"
    CREATION = "creation fails"
    SSH = "SSH fails"
    CONNECT = "failed to connect to TPU"
    SLOW = "training is slow"
    MEMORY = "out of memory"
    PREEMPTED = "preempted"
    COSTS = "costs"
    PROGRESS = "run makes no progress"


class CheckFunction(Protocol):
    """Judges evidence; never raises on purpose, never waits, never asks anybody."""

    def __call__(self, evidence: Evidence) -> Finding:
        """Return one row."""
        ...


@dataclass(frozen=True, slots=True)
class About:
    """What is fixed about a check, and the means to give its verdict.

    Attributes:
        check_id: Stable id, such as `node-healthy`.
        why: Why it matters, in a sentence.
        rank: Place among rows of the same verdict; what explains others has a low one.
        source: Name of the source whose age is the age of the evidence, without a probe.
        group: The kind of trouble that it is about.
        probe: Returns what has to be asked of the world for it, or None where nothing has to.
    """

    check_id: str
    title: str
    scope: Scope
    why: str
    rank: int
    source: str = NODES
    group: Group = Group.BASICS
    probe: Callable[[Evidence], ProbeKey | None] | None = None

    def answer(self, evidence: Evidence) -> ProbeResult | None:
        """Return the answer to the check's own question, or None if it was not asked yet."""
        key = self.probe(evidence) if self.probe else None
        return evidence.probes.get(key) if key else None

    def unanswered(self, evidence: Evidence, *, command: str | None = None) -> Finding:
        """Return that the check's own question has no answer, and why."""
        found = self.answer(evidence)
        if found is None and self.probe is not None and self.probe(evidence) is None:
            return self.unknown(evidence, "not asked; name it to ask it", command=command)
        if found is None:
            return self.unknown(evidence, "not asked yet", command=command)
        return self.unknown(evidence, found.failure or "no answer", command=command)

    def passed(self, evidence: Evidence, text: str) -> Finding:
        """Return that all is well; unknown where nobody has confirmed it of late."""
        doubt = self._doubt(evidence)
        if doubt:
            return self._make(Verdict.UNKNOWN, evidence, f"{text} when last heard; {doubt}")
        return self._make(Verdict.PASS, evidence, text)

    def warned(
        self,
        evidence: Evidence,
        text: str,
        *,
        advice: str,
        action: str | None = None,
        command: str | None = None,
    ) -> Finding:
        """Return that something should be looked at."""
        return self._make(Verdict.WARN, evidence, text, advice, action, command)

    def failed(
        self,
        evidence: Evidence,
        text: str,
        *,
        advice: str,
        action: str | None = None,
        command: str | None = None,
    ) -> Finding:
        """Return that something is wrong."""
        return self._make(Verdict.FAIL, evidence, text, advice, action, command)

    def unknown(
        self, evidence: Evidence, text: str, *, advice: str = "", command: str | None = None
    ) -> Finding:
        """Return that it could not be found out, and why."""
        return self._make(Verdict.UNKNOWN, evidence, text, advice, None, command)

    def not_applicable(self, evidence: Evidence, text: str) -> Finding:
        """Return that the question does not arise, and why."""
        return self._make(Verdict.NOT_APPLICABLE, evidence, text)

    def subject_of(self, evidence: Evidence) -> str:
        """Return the node id or run name that a row is about, or `project`."""
        if self.scope is Scope.NODE and evidence.node is not None:
            return evidence.node.node_id
        if self.scope is Scope.RUN and evidence.run is not None:
            return evidence.run.name
        return PROJECT_SUBJECT

    def _doubt(self, evidence: Evidence) -> str:
        """Return why what is known may no longer be so, or ""."""
        answer = self.answer(evidence)
        if answer is not None and not answer.failure:
            return ""
        node, silent = evidence.node, evidence.snapshot.unreachable
        if self.scope is Scope.NODE and node is not None:
            for place in {node.zone, f"projects/{node.project}"} & silent.keys():
                return f"{place} has not answered for {span(evidence.now - silent[place])}"
        status = evidence.snapshot.sources.get(self.source)
        if status is None or status.state is SourceState.WAITING:
            return f"{self.source} were not heard yet"
        if status.state is SourceState.FAILING:
            return f"{self.source} can't be read now: {status.title or 'no answer'}"
        return ""

    def _make(
        self,
        verdict: Verdict,
        evidence: Evidence,
        text: str,
        advice: str = "",
        action: str | None = None,
        command: str | None = None,
    ) -> Finding:
        status = evidence.snapshot.sources.get(self.source)
        probed = self.answer(evidence)
        as_of = probed.as_of if probed else (status.last_success if status else None)
        return Finding(
            check_id=self.check_id,
            title=self.title,
            verdict=verdict,
            evidence=text,
            why=self.why,
            advice=advice,
            subject=self.subject_of(evidence),
            action=action,
            command=command,
            as_of=as_of,
            group=str(self.group),
            rank=self.rank,
        )


@dataclass(frozen=True, slots=True)
class Check:
    """One check, as its file gives it."""

    about: About
    function: CheckFunction
