"""Takes texts out of their wrappers: JSON of any nesting, gcloud's and terraform's output, logs.

What comes out are pieces: one statement each, with whatever code and details belong to it.
"""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from tpudash.diagnostics.classifier_codes import code_in, looks_like_error
from tpudash.diagnostics.classifier_escaped import decode_escaped
from tpudash.diagnostics.classifier_gate import worth_reading
from tpudash.diagnostics.classifier_json import JsonFinding, findings_in
from tpudash.diagnostics.classifier_wrapped import unwrapped
from tpudash.diagnostics.classifier_yaml import with_details
from tpudash.domain.failure import ErrorClass, Origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MOST_TEXT: Final = 8 * 1024 * 1024
"""Characters of a text that are looked at: its beginning and its end."""

SHORT_TEXT: Final = 64 * 1024
"""Up to this length a text is taken for one message rather than a log."""

CHUNK: Final = 4_000
CHUNKS_OF_A_LINE: Final = 16
LINES_JOINED: Final = 12
JSON_OBJECTS: Final = 60
_OVERLAP: Final = 300

_ANSI: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\))")
_TAG: Final = re.compile(
    r"</?(?:html|head|title|body|h[1-6]|p|b|i|em|strong|ins|code|pre|meta|link|style|script|span"
    r"|div|a|hr|br|center|ul|ol|li|table|tr|td|img)\b[^<>]{0,300}>|<!doctype[^<>]{0,200}>"
    r"|<!--[^<>]{0,300}-->",
    re.IGNORECASE,
)
_FRAME: Final = re.compile(r"^[ \t]*[│|╷╵╭╰>]+[ \t]?")
_ESCAPED_QUOTE: Final = re.compile(r"\\+([\"'/])")
_ESCAPED_BREAK: Final = re.compile(r"(?:\\+r)?\\+n(?![a-z]{3})|\\+n(?=[a-z]+ )")
_ESCAPED_TAB: Final = re.compile(r"\\+t(?![a-z])")
_UNICODE: Final = re.compile(r"\\+u([0-9a-fA-F]{4})")
_OBJECT: Final = re.compile(
    r"[\[{](?:\s*[\"{\[]|(?P<escaped>(?:\\+[nrt]|\s){0,40}(?:\\+\"|(?<=[nrt ])\")))"
)
_FRAMED_BREAK: Final = re.compile(r"\n[ \t]*[│|][ \t]*(?=\S)")
_SENTENCE_OVER: Final = re.compile(r"(?<!\bEID)[.!?:;,{}\[\](>]\s*$")
_QUOTE_OVER: Final = re.compile(r"[)'\"]\s*$")
_GOES_ON: Final = re.compile(r"[a-z(\"'0-9\[]")
_STATUS_LINE: Final = re.compile(
    r"[<*> ]{0,4}HTTP/[\d.]{1,3} \d{3}\b"
    r"|(?:[\w.]{1,80}: )?\d{3} (?:Client|Server) Error: [A-Z][A-Za-z ]{2,40}(?: for url: \S+)?$"
)
"""What HTTP itself says of an answer, before its body: only the number's usual words."""
_STAMPED: Final = re.compile(r"^\W{0,3}(?:\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|[IWEF]\d{4} |\[\d)")


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement of a text.

    Attributes:
        text: The statement, out of its wrapper.
        more: What stands right after it and may name the place that it is about.
        is_object: Whether it was an error object rather than words.
        given: The class, where the text itself says it in our own vocabulary.
        hint: The advice that came with a given class.
    """

    text: str
    code: str = ""
    details: tuple[Mapping[str, Any], ...] = ()
    origin: Origin = Origin.TEXT
    more: str = ""
    looks_like_error: bool = False
    is_object: bool = False
    given: ErrorClass | None = None
    hint: str = ""


def cleaned(text: str) -> str:
    """Return a text without colours, tags and escapes, its line breaks as they are."""
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "\\" in text:
        text = _UNICODE.sub(lambda match: chr(int(match[1], 16)), text)
        text = _ESCAPED_QUOTE.sub(r"\1", text)
    if "<" in text:
        text = _TAG.sub(" ", text)
    if "&" in text:
        text = html.unescape(text)
    return text.strip()


def pieces_of(text: str, needles: Iterable[str]) -> Iterator[Piece]:
    """Yield the statements of a text in their order.

    The lines of a long text are only looked at if they hold one of the needles.
    """
    if len(text) > MOST_TEXT:
        text = text[: MOST_TEXT // 2] + "\n" + text[-MOST_TEXT // 2 :]
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    is_short = len(text) <= SHORT_TEXT
    text = unwrapped(_FRAMED_BREAK.sub(" ", text)) if is_short else worth_reading(text, needles)
    for segment, details in with_details(text) if is_short else ((text, ()),):
        pieces = list(_pieces_of_segment(segment, is_short=is_short))
        told = [at for at, piece in enumerate(pieces) if piece.looks_like_error]
        if details and told:
            last = pieces[told[-1]]
            pieces[told[-1]] = replace(last, details=(*last.details, *details))
        yield from pieces


def _pieces_of_segment(text: str, *, is_short: bool) -> Iterator[Piece]:
    parts = list(_parts(text, JSON_OBJECTS if is_short else 0))
    of_json = {
        index: [
            replace(piece, more=f"{piece.more}\n{_around(parts, index)}".strip())
            for piece in _pieces_of_json(part)
        ]
        for index, part in enumerate(parts)
        if not isinstance(part, str)
    }
    with_error = {index for index, found in of_json.items() if any(p.is_object for p in found)}
    for index, part in enumerate(parts):
        if not isinstance(part, str):
            yield from of_json[index]
            continue
        # Beside an error object, a bare code only repeats what the object says better.
        is_echo = not with_error.isdisjoint({index - 1, index + 1})
        for piece in _pieces_of_lines(part, join=is_short):
            if is_echo and _STATUS_LINE.match(piece.text):
                continue
            yield replace(piece, code="", looks_like_error=False) if is_echo else piece


def _around(parts: list[Any], index: int) -> str:
    """Return the lines right before and after a JSON value, which may name its place."""
    before, after = parts[index - 1], parts[index + 1]
    return f"{before[-_OVERLAP:].rpartition(chr(10))[2]}\n{after.strip()[:_OVERLAP]}"


def _parts(text: str, objects: int) -> Iterator[str | list[Any] | dict[str, Any]]:
    """Split a text into JSON values and what stands around them."""
    decoder = json.JSONDecoder()
    start = search_from = 0
    for _ in range(objects):
        match = _OBJECT.search(text, search_from)
        if match is None:
            break
        try:
            if match["escaped"]:
                value, end = decode_escaped(text, match.start())
            else:
                value, end = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            search_from = match.start() + 1
            continue
        yield text[start : match.start()]
        yield value
        start = search_from = end
    yield text[start:]


def _pieces_of_json(value: Any) -> Iterator[Piece]:
    for finding in findings_in(value):
        for piece in _pieces_of_finding(finding):
            yield replace(piece, more=f"{piece.more} {finding.near}".strip())


def _pieces_of_finding(finding: JsonFinding) -> Iterator[Piece]:
    if finding.is_plain:
        yield from _pieces_of_lines(finding.text, join=True)
        return
    yield Piece(
        text=cleaned(finding.text),
        code=finding.code,
        details=finding.details,
        origin=finding.origin,
        looks_like_error=True,
        is_object=True,
        given=finding.given,
        hint=finding.hint,
    )


def _pieces_of_lines(text: str, *, join: bool) -> Iterator[Piece]:
    lines = _lines(text)
    if join:
        lines = _joined(lines)
    before: Piece | None = None
    for line in lines:
        if line.lstrip()[:1] == "{" and (pieces := _json_line(line)):
            if before is not None:
                yield before
                before = None
            yield from pieces
            continue
        code = code_in(line)
        piece = Piece(line, code=code, looks_like_error=bool(code) or looks_like_error(line))
        if before is not None:
            is_near = join and not _STAMPED.match(line)
            yield replace(before, more=line[:CHUNK]) if is_near else before
        before = piece
    if before is not None:
        yield before


def _json_line(line: str) -> list[Piece]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return []
    return list(_pieces_of_json(value)) or [Piece("")]


def _lines(text: str) -> Iterator[str]:
    for raw in text.split("\n"):
        if not raw.strip():
            continue
        line = _FRAME.sub("", raw) if raw.lstrip()[:1] in "│|╷╵╭╰>" else raw
        for chunk in islice(_chunks(line), CHUNKS_OF_A_LINE):
            if chunk.lstrip()[:1] == "{":
                yield chunk
                continue
            for part in _ESCAPED_BREAK.split(chunk) if "\\" in chunk else (chunk,):
                clean = _ESCAPED_TAB.sub(" ", cleaned(part)) if "\\" in part else cleaned(part)
                if clean:
                    yield clean


def _chunks(line: str) -> Iterator[str]:
    """Yield a line in chunks that overlap, since a statement may lie across a cut."""
    if len(line) <= CHUNK or (line.lstrip()[:1] == "{" and len(line) <= SHORT_TEXT):
        yield line
        return
    for start in range(0, len(line), CHUNK - _OVERLAP):
        yield line[start : start + CHUNK]


def _joined(lines: Iterator[str]) -> Iterator[str]:
    """Put lines together again that a terminal's width tore apart."""
    held = ""
    count = 0
    for line in lines:
        goes_on = (
            held
            and count < LINES_JOINED
            and len(held) + len(line) < CHUNK
            and _GOES_ON.match(line)
            and not _STAMPED.match(line)
            and not _SENTENCE_OVER.search(held)
            and (line[0].islower() or not _QUOTE_OVER.search(held))
        )
        if goes_on:
            held = f"{held} {line}"
            count += 1
            continue
        if held:
            yield held
        held, count = line, 1
    if held:
        yield held
