"""Reads a filter into a tree.

Precedence after https://cloud.google.com/logging/docs/view/logging-query-language: NOT binds
strongest, then OR, then AND; two terms side by side are joined by AND.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tpudash.emulator.filters.lexer import FilterError, Kind, Token, tokenize

MAX_LENGTH = 20_000
_MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class Value:
    """The right-hand side of a comparison."""

    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """A function call: a test by itself, or the right-hand side of a comparison."""

    name: str
    arguments: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A field compared with a value."""

    path: tuple[str, ...]
    operator: str
    value: Value | Function


@dataclass(frozen=True, slots=True)
class Anywhere:
    """A bare value, looked for in every field."""

    text: str


@dataclass(frozen=True, slots=True)
class Not:
    """Negation."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class And:
    """All operands hold."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """One operand holds."""

    operands: tuple[Expression, ...]


Expression: TypeAlias = Comparison | Anywhere | Function | Not | And | Or
EVERYTHING = And(())


def parse(text: str) -> Expression:
    """Return the tree of a filter; the empty filter holds for everything.

    Raises:
        FilterError: The filter is too long or not well formed.
    """
    if len(text) > MAX_LENGTH:
        raise FilterError(f"the filter is longer than {MAX_LENGTH} characters")
    parser = _Parser(tokenize(text))
    if parser.peek().kind is Kind.END:
        return EVERYTHING
    expression = parser.conjunction()
    parser.expect(Kind.END)
    return expression


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._index = 0
        self._depth = 0

    def peek(self) -> Token:
        return self._tokens[self._index]

    def _next(self) -> Token:
        token = self.peek()
        self._index += 1
        return token

    def expect(self, kind: Kind) -> Token:
        token = self.peek()
        if token.kind is not kind:
            found = f'"{token.text}"' if token.text else "the end"
            raise FilterError(f"syntax error at position {token.position + 1}: unexpected {found}")
        return self._next()

    def _is_word(self, word: str) -> bool:
        token = self.peek()
        return token.kind is Kind.TERM and not token.quoted and token.text == word

    def conjunction(self) -> Expression:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise FilterError("the filter is nested too deeply")
        operands = [self._disjunction()]
        while True:
            if self._is_word("AND"):
                self._next()
            elif self.peek().kind not in {Kind.TERM, Kind.OPEN}:
                break
            operands.append(self._disjunction())
        self._depth -= 1
        return operands[0] if len(operands) == 1 else And(tuple(operands))

    def _disjunction(self) -> Expression:
        operands = [self._negation()]
        while self._is_word("OR"):
            self._next()
            operands.append(self._negation())
        return operands[0] if len(operands) == 1 else Or(tuple(operands))

    def _negation(self) -> Expression:
        negative = False
        while self._is_word("NOT"):
            self._next()
            negative = not negative
        token = self.peek()
        if token.kind is Kind.TERM and token.text.startswith("-") and not token.quoted:
            negative = not negative
            self._strip_minus(token)
        operand = self._primary()
        return Not(operand) if negative else operand

    def _strip_minus(self, token: Token) -> None:
        """Take the minus sign, which stands for NOT, off a term."""
        if token.text == "-":
            self._next()
            return
        segments = (token.segments[0].removeprefix("-"), *token.segments[1:])
        stripped = Token(Kind.TERM, token.text[1:], token.position + 1, segments)
        self._tokens[self._index] = stripped

    def _primary(self) -> Expression:
        if self.peek().kind is Kind.OPEN:
            self._next()
            inner = self.conjunction()
            self.expect(Kind.CLOSE)
            return inner
        token = self.expect(Kind.TERM)
        if token.text in {"AND", "OR", "NOT"} and not token.quoted:
            raise FilterError(
                f"syntax error at position {token.position + 1}: unexpected {token.text}"
            )
        if self.peek().kind is Kind.OPERATOR:
            operator = self._next().text
            return self._comparison(token, operator)
        if self.peek().kind is Kind.OPEN and not token.quoted:
            return self._function(token)
        return Anywhere(token.text)

    def _comparison(self, field: Token, operator: str) -> Expression:
        if self.peek().kind is Kind.OPEN:
            return self._value_group(field.segments, operator)
        token = self.expect(Kind.TERM)
        if self.peek().kind is Kind.OPEN and not token.quoted:
            return Comparison(field.segments, operator, self._function(token))
        return Comparison(field.segments, operator, Value(token.text, token.quoted))

    def _value_group(self, path: tuple[str, ...], operator: str) -> Expression:
        """Read `field = ("a" OR "b")`: the comparison is spread over the group."""
        self.expect(Kind.OPEN)
        inner = self.conjunction()
        self.expect(Kind.CLOSE)
        return _spread(inner, path, operator)

    def _function(self, name: Token) -> Function:
        self.expect(Kind.OPEN)
        arguments: list[Value] = []
        while self.peek().kind is Kind.TERM:
            token = self._next()
            arguments.append(Value(token.text, token.quoted))
            if self.peek().kind is not Kind.COMMA:
                break
            self._next()
        self.expect(Kind.CLOSE)
        return Function(name.text, tuple(arguments))


def _spread(inner: Expression, path: tuple[str, ...], operator: str) -> Expression:
    match inner:
        case Anywhere(text):
            return Comparison(path, operator, Value(text, quoted=True))
        case Not(operand):
            return Not(_spread(operand, path, operator))
        case And(operands):
            return And(tuple(_spread(item, path, operator) for item in operands))
        case Or(operands):
            return Or(tuple(_spread(item, path, operator) for item in operands))
        case _:
            raise FilterError("a comparison cannot stand on the right-hand side of another")
