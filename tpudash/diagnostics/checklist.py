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
from tpudash.diagnostics.check import PROJECT_SUBJECT, Check, Scope
from tpudash.domain.finding import Finding, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tpudash.diagnostics.evidence import Evidence

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
    evidence: Evidence, available: Iterable[Check] | None = None
) -> tuple[Finding, ...]:
    """Run every check on everything that is in question.

    Rows that all say the same good thing are put together, so that a project of many nodes has
    one passing row for each check. A check that raises is unknown, and names what it raised.

    Args:
        evidence: What is known, and with its `subject` what is asked about.
        available: The checks to run; by default all.
    """
    rows: list[tuple[int, Finding]] = []
    in_question = {
        Scope.PROJECT: [evidence],
        Scope.NODE: [evidence.about_node(node) for node in evidence.nodes_in_question()],
        Scope.RUN: [evidence.about_run(run) for run in evidence.runs_in_question()],
    }
    for check in load_checks() if available is None else available:
        found = [_run_one(check, narrowed) for narrowed in in_question[check.about.scope]]
        rows += ((check.about.rank, row) for row in _put_together(check, found, evidence))
    rows.sort(key=lambda row: (SEVERITY.index(row[1].verdict), row[0], row[1].subject))
    return tuple(_with_available_action(finding, evidence) for _, finding in rows)


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


def _put_together(check: Check, found: Sequence[Finding], evidence: Evidence) -> list[Finding]:
    """Keep every row that needs a look; join the others, and drop "n/a" beside any verdict."""
    if not found:
        return [check.about.not_applicable(evidence, f"there is no {check.about.scope} to check")]
    by_verdict: defaultdict[Verdict, list[Finding]] = defaultdict(list)
    for finding in found:
        by_verdict[finding.verdict].append(finding)
    kept = [
        finding
        for verdict in (Verdict.FAIL, Verdict.WARN, Verdict.UNKNOWN)
        for finding in by_verdict[verdict]
    ]
    if by_verdict[Verdict.PASS]:
        kept.append(_joined(by_verdict[Verdict.PASS], check.about.scope))
    if not kept:
        kept.append(_joined(by_verdict[Verdict.NOT_APPLICABLE], check.about.scope))
    return kept


def _joined(findings: Sequence[Finding], scope: Scope) -> Finding:
    first = findings[0]
    if len(findings) == 1:
        return first
    names = ", ".join(finding.subject for finding in findings[:MOST_NAMES])
    more = ", ..." if len(findings) > MOST_NAMES else ""
    text = f"{len(findings)} {scope}s: {names}{more}; {first.subject}: {first.evidence}"
    return replace(first, subject=PROJECT_SUBJECT, evidence=text)


def _with_available_action(finding: Finding, evidence: Evidence) -> Finding:
    if finding.action is None or finding.action in evidence.actions:
        return finding
    return replace(finding, action=None)
