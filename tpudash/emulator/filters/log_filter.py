"""Filters of log entries, after Google's Logging query language.

Comparisons ignore case except regular expressions. A comparison with a missing field is false,
whatever its operator; its negation is true.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from google.logging.type import log_severity_pb2
from google.protobuf import timestamp_pb2

from tpudash.emulator.filters.fields import EnumValue, resolve, texts
from tpudash.emulator.filters.lexer import FilterError
from tpudash.emulator.filters.parser import (
    And,
    Anywhere,
    Comparison,
    Expression,
    Function,
    Not,
    Or,
    Value,
    parse,
)

if TYPE_CHECKING:
    from collections.abc import Callable

Predicate: TypeAlias = "Callable[[Any], bool]"
_TIMES = frozenset({"timestamp", "receiveTimestamp", "receive_timestamp"})
_ORDERED = frozenset({"<", ">", "<=", ">="})


@dataclass(frozen=True, slots=True)
class LogFilter:
    """A compiled filter, with the time bounds that it certainly implies."""

    matches: Predicate
    since_ns: int | None = None
    until_ns: int | None = None


def compile_log_filter(text: str) -> LogFilter:
    """Compile a filter.

    Raises:
        FilterError: It is not well formed.
    """
    expression = parse(text)
    since, until = _time_bounds(expression)
    return LogFilter(_compile(expression), since, until)


def _compile(expression: Expression) -> Predicate:
    match expression:
        case And(operands):
            parts = [_compile(operand) for operand in operands]
            return lambda entry: all(part(entry) for part in parts)
        case Or(operands):
            parts = [_compile(operand) for operand in operands]
            return lambda entry: any(part(entry) for part in parts)
        case Not(operand):
            inner = _compile(operand)
            return lambda entry: not inner(entry)
        case Anywhere(text):
            return _anywhere(text)
        case Function():
            return _function(expression)
        case Comparison():
            return _comparison(expression)


def _anywhere(text: str) -> Predicate:
    wanted = text.casefold()
    return lambda entry: any(wanted in item.casefold() for item in texts(entry))


def _function(function: Function) -> Predicate:
    arguments = [argument.text for argument in function.arguments]
    if function.name == "log_id" and len(arguments) == 1:
        ending = "/logs/" + quote(arguments[0], safe="")
        return lambda entry: bool(entry.log_name.endswith(ending))
    if function.name == "SEARCH" and len(arguments) in {1, 2}:
        wanted = arguments[-1].casefold().split()
        path = tuple(arguments[0].split(".")) if len(arguments) == 2 else ()

        def found(entry: Any) -> bool:
            text = " ".join(item for value in resolve(entry, path) for item in texts(value))
            return all(word in text.casefold() for word in wanted)

        return found
    raise FilterError(f"unknown function {function.name} with {len(arguments)} arguments")


def _comparison(comparison: Comparison) -> Predicate:
    if isinstance(comparison.value, Function):
        raise FilterError("a function cannot stand on the right-hand side")
    path, operator = comparison.path, comparison.operator
    _check_value(path, operator, comparison.value.text)
    test = _test(operator, comparison.value)
    return lambda entry: any(test(value) for value in resolve(entry, path))


def _check_value(path: tuple[str, ...], operator: str, text: str) -> None:
    """Refuse what can never be a severity or a time, before any entry is looked at."""
    if operator not in _ORDERED | {"=", "!="} or len(path) != 1:
        return
    if path[0] == "severity" and not text.isdecimal():
        known = log_severity_pb2.LogSeverity.keys()
        if text.upper() not in known:
            raise FilterError(f'"{text}" is not one of {", ".join(known)}')
    if path[0] in _TIMES:
        time_ns(text)


def _test(operator: str, value: Value) -> Callable[[Any], bool]:
    if operator in {"=~", "!~"}:
        return _regular_expression(operator, value.text)
    if operator == ":":
        if value.text == "*" and not value.quoted:
            return lambda _: True
        wanted = value.text.casefold()
        return lambda found: any(wanted in item.casefold() for item in texts(found))
    return lambda found: _compare(found, operator, value)


def _regular_expression(operator: str, text: str) -> Callable[[Any], bool]:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise FilterError(f'invalid regular expression "{text}": {error}') from error
    if operator == "=~":
        return lambda found: any(pattern.search(item) for item in texts(found))
    return lambda found: not any(pattern.search(item) for item in texts(found))


def _compare(found: Any, operator: str, value: Value) -> bool:
    """Compare by the type of the field, as the language does."""
    left: Any
    right: Any
    if found is None:
        left, right = "null_value", value.text.casefold()
    elif isinstance(found, EnumValue):
        left, right = found.number, _enum_number(found, value.text)
    elif isinstance(found, timestamp_pb2.Timestamp):
        left, right = found.ToNanoseconds(), _moment(value.text)
    elif isinstance(found, bool):
        left, right = str(found).lower(), value.text.casefold()
    elif isinstance(found, int | float):
        left, right = found, _number(value.text)
    elif isinstance(found, str):
        left, right = found.casefold(), value.text.casefold()
    else:
        return False
    if right is None:
        return operator == "!="
    return _holds(left, operator, right)


def _holds(left: Any, operator: str, right: Any) -> bool:
    match operator:
        case "=":
            return bool(left == right)
        case "!=":
            return bool(left != right)
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case _:
            return bool(left >= right)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _moment(text: str) -> int | None:
    try:
        return time_ns(text)
    except FilterError:
        return None


def _enum_number(found: EnumValue, text: str) -> int | None:
    if text.lstrip("-").isdecimal():
        return int(text)
    known = found.names.values_by_name.get(text.upper())
    return int(known.number) if known else None


def time_ns(text: str) -> int:
    """Return nanoseconds since the epoch of an RFC 3339 time or date.

    Raises:
        FilterError: The text is no time.
    """
    stamp = timestamp_pb2.Timestamp()
    try:
        if len(text) == len("2026-01-01"):
            datetime.strptime(text, "%Y-%m-%d")  # noqa: DTZ007  (only the shape is checked)
            stamp.FromJsonString(f"{text}T00:00:00Z")
        else:
            stamp.FromJsonString(text)
    except ValueError as error:
        raise FilterError(f'"{text}" is not a time such as 2026-12-01T08:00:00Z') from error
    return stamp.ToNanoseconds()


def _time_bounds(expression: Expression) -> tuple[int | None, int | None]:
    """Return the (earliest, latest) time of entries that can match, where that is certain."""
    operands = expression.operands if isinstance(expression, And) else (expression,)
    since: list[int] = []
    until: list[int] = []
    for item in operands:
        if not isinstance(item, Comparison) or item.path != ("timestamp",):
            continue
        if isinstance(item.value, Function) or item.operator not in _ORDERED | {"="}:
            continue
        moment = time_ns(item.value.text)
        if item.operator in {">", ">=", "="}:
            since.append(moment)
        if item.operator in {"<", "<=", "="}:
            until.append(moment)
    return max(since, default=None), min(until, default=None)
