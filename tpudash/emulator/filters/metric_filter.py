"""Filters of time series, after https://cloud.google.com/monitoring/api/v3/filters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tpudash.emulator.filters.lexer import FilterError
from tpudash.emulator.filters.parser import And, Comparison, Expression, Function, Not, Or, parse

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.emulator.world.series import SeriesKey

Predicate: TypeAlias = "Callable[[SeriesKey], bool]"
_METRIC_TYPE = ("metric", "type")


@dataclass(frozen=True, slots=True)
class MetricFilter:
    """A compiled filter."""

    matches: Predicate
    metric: str
    """The one metric type that the filter names; empty if it names none."""

    matches_metric: Callable[[str], bool]
    """Tests a metric type alone, as lists of descriptors do."""


def compile_metric_filter(text: str, *, needs_metric: bool) -> MetricFilter:
    """Compile a filter.

    Args:
        text: The filter.
        needs_metric: Whether it must name exactly one metric type, as ListTimeSeries demands.

    Raises:
        FilterError: It is not well formed, or names no metric type where it must.
    """
    expression = parse(text)
    metric = _metric_of(expression)
    if needs_metric and not metric:
        raise FilterError(
            "the filter must specify a single metric type, as in "
            'metric.type = "tpu.googleapis.com/cpu/utilization"'
        )
    return MetricFilter(
        _compile(expression, only_metric=False), metric, _metric_predicate(expression)
    )


def _metric_of(expression: Expression) -> str:
    operands = expression.operands if isinstance(expression, And) else (expression,)
    names = {
        item.value.text
        for item in operands
        if isinstance(item, Comparison)
        and item.path == _METRIC_TYPE
        and item.operator == "="
        and not isinstance(item.value, Function)
    }
    return names.pop() if len(names) == 1 else ""


def _metric_predicate(expression: Expression) -> Callable[[str], bool]:
    from tpudash.emulator.world.series import SeriesKey

    test = _compile(expression, only_metric=True)
    return lambda metric: test(SeriesKey("", metric, (), "", ()))


def _compile(expression: Expression, *, only_metric: bool) -> Predicate:
    match expression:
        case And(operands):
            parts = [_compile(operand, only_metric=only_metric) for operand in operands]
            return lambda key: all(part(key) for part in parts)
        case Or(operands):
            parts = [_compile(operand, only_metric=only_metric) for operand in operands]
            return lambda key: any(part(key) for part in parts)
        case Not(operand):
            inner = _compile(operand, only_metric=only_metric)
            return lambda key: not inner(key)
        case Comparison(path, _, _):
            if only_metric and path != _METRIC_TYPE:
                return lambda _: True
            return _comparison(expression)
        case _:
            raise FilterError("a bare value or function does not select time series")


def _comparison(comparison: Comparison) -> Predicate:
    path = comparison.path
    test = _test(comparison)
    match path:
        case ("metric", "type"):
            return lambda key: test(key.metric)
        case ("resource", "type"):
            return lambda key: test(key.resource)
        case ("project",):
            return lambda key: test(key.project)
        case ("metric", "label" | "labels", name):
            return lambda key: _label_test(key.metric_labels, name, test)
        case ("resource", "label" | "labels", name):
            return lambda key: _label_test(key.resource_labels, name, test)
        case _:
            raise FilterError(f'unknown field "{".".join(path)}"')


def _label_test(
    labels: tuple[tuple[str, str], ...], name: str, test: Callable[[str], bool]
) -> bool:
    return test(dict(labels).get(name, ""))


def _test(comparison: Comparison) -> Callable[[str], bool]:
    operator, value = comparison.operator, comparison.value
    if isinstance(value, Function):
        positive = _function(value)
        if operator == "=":
            return positive
        if operator == "!=":
            return lambda text: not positive(text)
        raise FilterError(f"{operator} cannot stand before {value.name}()")
    return _text_test(operator, value.text)


def _text_test(operator: str, wanted: str) -> Callable[[str], bool]:
    if operator in {"=~", "!~"}:
        matches = _full_match(wanted)
        return matches if operator == "=~" else lambda text: not matches(text)
    tests: dict[str, Callable[[str], bool]] = {
        "=": lambda text: text == wanted,
        "!=": lambda text: text != wanted,
        ":": lambda text: wanted in text,
    }
    return tests.get(operator) or _numeric(operator, wanted)


def _numeric(operator: str, wanted: str) -> Callable[[str], bool]:
    try:
        right = float(wanted)
    except ValueError as error:
        raise FilterError(f'"{wanted}" is not a number') from error

    def test(text: str) -> bool:
        try:
            left = float(text)
        except ValueError:
            return False
        return {
            "<": left < right,
            "<=": left <= right,
            ">": left > right,
            ">=": left >= right,
        }[operator]

    return test


def _function(function: Function) -> Callable[[str], bool]:
    arguments = tuple(argument.text for argument in function.arguments)
    if function.name == "one_of" and arguments:
        return lambda text: text in arguments
    if len(arguments) != 1:
        raise FilterError(f"{function.name}() takes one argument")
    wanted = arguments[0]
    match function.name:
        case "starts_with":
            return lambda text: text.startswith(wanted)
        case "ends_with":
            return lambda text: text.endswith(wanted)
        case "has_substring":
            return lambda text: wanted in text
        case "monitoring.regex.full_match":
            return _full_match(wanted)
        case _:
            raise FilterError(f"unknown function {function.name}")


def _full_match(text: str) -> Callable[[str], bool]:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise FilterError(f'invalid regular expression "{text}": {error}') from error
    return lambda candidate: pattern.fullmatch(candidate) is not None
