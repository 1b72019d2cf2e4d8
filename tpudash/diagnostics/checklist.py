"""The troubleshooting checklist: every check that applies, worst first, likely causes first.

Checks list themselves: each module of `tpudash.diagnostics.checks` has an `ABOUT` and a `check`.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil
from collections import defaultdict
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

from tpudash.diagnostics import checks
from tpudash.diagnostics.check import Check, Scope
from tpudash.domain.finding import Finding, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.probe import ProbeKey

logger = logging.getLogger(__name__)

SEVERITY: Final = (
    Verdict.FAIL,
    Verdict.WARN,
    Verdict.UNKNOWN,
    Verdict.PASS,
    Verdict.NOT_APPLICABLE,
)
"""Worst first."""
MOST_NAMES: Final = 3


@cache
def load_checks() -> tuple[Check, ...]:
    """Return every check that the package holds, by rank."""
    found = []
    for module in pkgutil.iter_modules(checks.__path__):
        loaded = importlib.import_module(f"{checks.__name__}.{module.name}")
        found.append(Check(loaded.ABOUT, loaded.check))
    return tuple(sorted(found, key=lambda check: (check.about.rank, check.about.check_id)))


def run_checklist(
    evidence: Evidence, available: Iterable[Check] | None = None, *, join: bool = True
) -> tuple[Finding, ...]:
    """Run every check on everything that is in question.

    A check that raises is unknown, and names what it raised.

    Args:
        evidence: What is known, and with its `subject` what is asked about.
        available: The checks to run; by default all.
        join: Whether rows of one check that need no look by themselves become one row, so that a
            project of many nodes has one passing row for each check.
    """
    rows: list[Finding] = []
    in_question = {
        Scope.PROJECT: [evidence],
        Scope.NODE: [evidence.about_node(node) for node in evidence.nodes_in_question()],
        Scope.RUN: [evidence.about_run(run) for run in evidence.runs_in_question()],
    }
    for check in load_checks() if available is None else available:
        found = [_run_one(check, narrowed) for narrowed in in_question[check.about.scope]]
        if not found:
            text = f"there is no {check.about.scope} to check"
            found = [check.about.not_applicable(evidence, text)]
        rows += found
    rows = [_with_available_action(finding, evidence) for finding in rows]
    return joined(rows) if join else _sorted(rows)


def joined(rows: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return a checklist in which rows that need no look by themselves are put together."""
    by_check: defaultdict[str, list[Finding]] = defaultdict(list)
    for row in rows:
        by_check[row.check_id].append(row)
    return _sorted([row for found in by_check.values() for row in _joined(found)])


def _sorted(rows: list[Finding]) -> tuple[Finding, ...]:
    """Return rows worst first; beside a symptom what belongs to it, then the likeliest cause."""
    troubled = {row.group for row in rows if row.verdict is Verdict.FAIL}

    def place(finding: Finding) -> tuple[int, bool, int, str]:
        severity = SEVERITY.index(finding.verdict)
        return severity, finding.group not in troubled, finding.rank, finding.subject

    return tuple(sorted(rows, key=place))


def probes_for(evidence: Evidence, available: Iterable[Check] | None = None) -> list[ProbeKey]:
    """Return what the checks want to be asked of the world, each question once."""
    in_question = {
        Scope.PROJECT: [evidence],
        Scope.NODE: [evidence.about_node(node) for node in evidence.nodes_in_question()],
        Scope.RUN: [evidence.about_run(run) for run in evidence.runs_in_question()],
    }
    keys = (
        check.about.probe(narrowed)
        for check in (load_checks() if available is None else available)
        if check.about.probe is not None
        for narrowed in in_question[check.about.scope]
    )
    return sorted({key for key in keys if key is not None})


def _run_one(check: Check, evidence: Evidence) -> Finding:
    try:
        return check.function(evidence)
    except Exception as error:
        logger.exception(
            "check %s failed on %s", check.about.check_id, check.about.subject_of(evidence)
        )
        return check.about.unknown(
            evidence,
            f"the check itself failed: {type(error).__name__}: {error}",
            advice="This is a defect of tpudash; its log file has the traceback.",
            command="tpudash paths",
        )


def _joined(found: Sequence[Finding]) -> list[Finding]:
    """Keep every fail and warning, and join what needs no look by itself.

    All passes become one row, and so do those that are unknown for the same reason; "n/a" is left
    out beside any verdict.
    """
    groups: defaultdict[tuple[Verdict, str], list[Finding]] = defaultdict(list)
    for finding in found:
        match finding.verdict:
            case Verdict.FAIL | Verdict.WARN:
                key = finding.subject
            case Verdict.UNKNOWN:
                key = finding.evidence
            case _:
                key = ""
        groups[finding.verdict, key].append(finding)
    unasked = groups.pop((Verdict.NOT_APPLICABLE, ""), [])
    kept = [_as_one(group) for group in groups.values()]
    return kept or [_as_one(unasked)]


def _as_one(group: Sequence[Finding]) -> Finding:
    """Return the first of a group with the names of all."""
    first = group[0]
    if len(group) == 1:
        return first
    names = ", ".join(finding.subject for finding in group[:MOST_NAMES])
    more = f" +{len(group) - MOST_NAMES}" if len(group) > MOST_NAMES else ""
    example = "" if first.verdict is Verdict.UNKNOWN else f"{first.subject}: "
    return replace(
        first, subject=names + more, evidence=f"all {len(group)}: {example}{first.evidence}"
    )


def _with_available_action(finding: Finding, evidence: Evidence) -> Finding:
    if finding.action is None or finding.action in evidence.actions:
        return finding
    return replace(finding, action=None)
