"""The filter languages: grammar, precedence, and what no input may do."""

from __future__ import annotations

from typing import Any

import pytest
from google.cloud.logging_v2.types import LogEntry
from hypothesis import given
from hypothesis import strategies as st

from tpudash.emulator.filters.lexer import FilterError
from tpudash.emulator.filters.log_filter import compile_log_filter
from tpudash.emulator.filters.metric_filter import compile_metric_filter
from tpudash.emulator.filters.parser import (
    And,
    Anywhere,
    Comparison,
    Expression,
    Not,
    Or,
    Value,
    parse,
)
from tpudash.emulator.world.series import SeriesKey

A, B, C, D = (Anywhere(letter) for letter in "abcd")
words = st.from_regex(r"[a-z][a-zA-Z0-9_]{0,8}", fullmatch=True).filter(
    lambda word: word != "log_id"
)
strings = st.text(max_size=12).filter(lambda text: "\0" not in text)


def quoted(text: str) -> str:
    """Return a text as a string literal of the language."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


comparisons = st.builds(
    Comparison,
    st.lists(words, min_size=1, max_size=3).map(tuple),
    st.sampled_from(["=", "!=", "=~", "!~", "<", "<=", ">", ">=", ":"]),
    st.builds(Value, strings, st.just(True)),
)
bare = st.builds(Anywhere, strings)
expressions = st.recursive(
    comparisons | bare,
    lambda inner: (
        st.builds(Not, inner.filter(lambda item: not isinstance(item, Not)))
        | st.lists(inner, min_size=2, max_size=3).map(tuple).map(And)
        | st.lists(inner, min_size=2, max_size=3).map(tuple).map(Or)
    ),
    max_leaves=8,
)


def write(expression: Expression) -> str:
    """Return a tree as a filter, with parentheses around every operand."""
    match expression:
        case Comparison(path, operator, Value(text)):
            return ".".join(path) + operator + quoted(text)
        case Anywhere(text):
            return quoted(text)
        case Not(operand):
            return f"NOT ({write(operand)})"
        case And(operands):
            return " AND ".join(f"({write(item)})" for item in operands)
        case Or(operands):
            return " OR ".join(f"({write(item)})" for item in operands)
    raise AssertionError(expression)


@given(expressions)
def test_what_is_written_is_read_back(expression: Expression) -> None:
    assert parse(write(expression)) == expression


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_and_nothing_else(text: str) -> None:
    try:
        chosen = compile_log_filter(text)
    except FilterError:
        return
    chosen.matches(LogEntry.pb(LogEntry(text_payload="x", log_name="projects/p/logs/l")))


@given(st.text(alphabet='()"-.:=~<>! \nANDORNTab', max_size=40))
def test_scraps_of_the_language_are_read_or_refused(text: str) -> None:
    try:
        parse(text)
    except FilterError as error:
        reason = str(error)
    else:
        return
    assert reason


@given(strings)
def test_every_string_can_be_compared_with(text: str) -> None:
    entry = LogEntry.pb(LogEntry(text_payload=text))
    if text:
        assert compile_log_filter(f"textPayload={quoted(text)}").matches(entry)
        assert not compile_log_filter(f"textPayload!={quoted(text)}").matches(entry)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a OR NOT b AND NOT c OR d", And((Or((A, Not(B))), Or((Not(C), D))))),
        ("a b OR c", And((A, Or((B, C))))),
        ("-a", Not(A)),
        ("NOT NOT a", A),
        ("(a)", A),
        (
            "x=(a OR b)",
            Or(
                (
                    Comparison(("x",), "=", Value("a", quoted=True)),
                    Comparison(("x",), "=", Value("b", quoted=True)),
                )
            ),
        ),
        ('labels."a.b"=c', Comparison(("labels", "a.b"), "=", Value("c"))),
        ("n>=-0.5", Comparison(("n",), ">=", Value("-0.5"))),
        ("a -- b\nc", And((A, C))),
        ("'and' \"OR\"", And((Anywhere("and"), Anywhere("OR")))),
    ],
)
def test_grammar(text: str, tree: Expression) -> None:
    assert parse(text) == tree


@pytest.mark.parametrize(
    "text", ["(", ")", "a=", "=a", "AND", "a AND", "OR b", '"a', "a=(b=c)", "(" * 200, "x" * 20_001]
)
def test_ill_formed_filters_are_refused(text: str) -> None:
    with pytest.raises(FilterError):
        parse(text)


def test_time_bounds_are_taken_from_conjunctions_only() -> None:
    bounded = compile_log_filter('timestamp>="2026-12-01T00:00:00Z" AND a')
    assert bounded.since_ns == 1_796_083_200 * 10**9
    assert bounded.until_ns is None
    assert compile_log_filter('timestamp>="2026-12-01T00:00:00Z" OR a').since_ns is None


def key(**labels: str) -> SeriesKey:
    """Return a series of one metric with resource labels."""
    return SeriesKey("demo", "m/x", (), "tpu_worker", tuple(sorted(labels.items())))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('metric.type="m/x" resource.labels.zone="z"', True),
        ('metric.type="m/x" resource.labels.zone=starts_with("y")', False),
        ('metric.type="m/x" resource.labels.zone=one_of("y","z")', True),
        ('metric.type="m/x" resource.labels.zone=monitoring.regex.full_match("[xyz]")', True),
        ('metric.type="m/x" NOT resource.labels.zone=has_substring("z")', False),
        ('metric.type="m/x" (resource.label.zone="q" OR resource.type="tpu_worker")', True),
        ('metric.type="m/x" project="demo"', True),
    ],
)
def test_metric_filters(text: str, expected: Any) -> None:
    chosen = compile_metric_filter(text, needs_metric=True)
    assert chosen.metric == "m/x"
    assert chosen.matches(key(zone="z")) is expected


@pytest.mark.parametrize("text", ["a", 'zone="x"', 'metric.type=f("x")', 'metric.type=~"("'])
def test_metric_filters_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(FilterError):
        compile_metric_filter(text, needs_metric=False)
