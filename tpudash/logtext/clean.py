"""A terminal's state machine for what programs print, reduced to harmless lines of text.

It reads text in pieces of any size and gives the same lines however the text was cut. What a
terminal would obey is obeyed where it changes what a reader would see (a carriage return, a
backspace, an erasure) and vanishes otherwise.
Source: ECMA-48 (control functions), https://invisible-island.net/xterm/ctlseqs/ctlseqs.html
"""

from __future__ import annotations

import codecs
import re
from typing import Final, NamedTuple

LONGEST_LINE: Final = 1 << 20
"""Characters after which a line goes on in another one, so that memory is bounded."""
REPLACEMENT: Final = "\ufffd"
_TAB: Final = 4
_PIECE: Final = 4_096
_LONGEST_PARAMETER: Final = 16

# Format characters and lone surrogates, beside the controls: no terminal agrees on them.
_FORMATS: Final = (
    "\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\ud800-\udfff\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
_SPECIAL: Final = re.compile(f"[\x00-\x1f\x7f-\x9f{_FORMATS}]")
_INVISIBLE: Final = re.compile("[\xad\u180e\u200b-\u200d\u2060-\u2064\ufe00-\ufe0f\ufeff]")
# What is often found in great numbers is read in one go; any cut of it reads the same.
_RUN: Final = re.compile(r"\r+|\x08+|\t+|(?:\x1b\[[0-?]{0,16}[a-zHILMPST-Z@])+")
_STRING_END: Final = re.compile("[\x07\x18\x1a\x1b\x9c\n]")
_BLANKS: Final = frozenset("\x0b\x0c\x85\u2028\u2029")
_STRING_BEGINS: Final = frozenset("\x90\x98\x9d\x9e\x9f")


class CleanLine(NamedTuple):
    """A line without its line break.

    Attributes:
        is_whole: False for one that was cut because of its length, and goes on in the next.
    """

    text: str
    is_whole: bool = True


class LineMachine:
    """Reads text and gives lines.

    Args:
        longest: Characters after which a line is cut.
    """

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._parts: list[str] = []
        self._length = 0
        self._returned = False
        """A carriage return came: the next visible character begins the line anew."""
        self._state = self._in_text
        self._parameter = ""
        self._found: list[CleanLine] = []

    def feed(self, text: str) -> list[CleanLine]:
        """Read a piece of text and return the lines that it completes."""
        found: list[CleanLine] = []
        self._found = found
        if self._state == self._in_text and not self._returned and _is_plain(text):
            self._feed_plain(text)
            return found
        at, end = 0, len(text)
        while at < end:
            at = self._state(text, at)
        return found

    def _feed_plain(self, text: str) -> None:
        first, newline, more = text.partition("\n")
        self._write(first)
        if not newline:
            return
        self._end_line()
        *lines, rest = more.split("\n")
        if len(more) <= self._longest or max(map(len, lines), default=0) <= self._longest:
            self._found += map(CleanLine, lines)
        else:
            for line in lines:
                self._write(line)
                self._end_line()
        self._write(rest)

    def finish(self) -> list[CleanLine]:
        """Return what was not ended by a line break, and begin anew."""
        rest = self.partial
        is_empty = not rest and not self._parts
        self._begin_line()
        self._state = self._in_text
        return [] if is_empty else [CleanLine(rest)]

    @property
    def partial(self) -> str:
        """The unfinished line as it would be seen now, such as a progress bar."""
        return "".join(self._parts)

    # The states; each reads from a place of a text and returns where to go on.

    def _in_text(self, text: str, at: int) -> int:
        special = _SPECIAL.search(text, at)
        end = special.start() if special else len(text)
        if end > at:
            self._write(text[at:end])
        if special is None:
            return end
        run = _RUN.match(text, end)
        if run is None:
            self._control(special.group())
            return end + 1
        self._repeated(run.group())
        return run.end()

    def _in_escape(self, text: str, at: int) -> int:
        character = text[at]
        self._state = self._in_text
        if character == "[":
            self._begin_sequence()
        elif character in "]PX^_":
            self._state = self._in_string
        elif " " <= character <= "/":
            self._state = self._in_escape
        elif not "0" <= character <= "~":
            return at
        return at + 1

    def _in_sequence(self, text: str, at: int) -> int:
        character = text[at]
        if " " <= character <= "?":
            if len(self._parameter) < _LONGEST_PARAMETER:
                self._parameter += character
            return at + 1
        self._state = self._in_text
        if not "@" <= character <= "~":
            return at
        self._obey(character, self._parameter)
        return at + 1

    def _in_string(self, text: str, at: int) -> int:
        end = _STRING_END.search(text, at)
        if end is None:
            return len(text)
        if end.group() == "\x1b":
            self._state = self._in_string_escape
            return end.end()
        self._state = self._in_text
        return end.start() if end.group() == "\n" else end.end()

    def _in_string_escape(self, text: str, at: int) -> int:
        if text[at] == "\\":
            self._state = self._in_text
            return at + 1
        self._state = self._in_escape
        return at

    # What characters do.

    def _control(self, character: str) -> None:
        if character == "\n":
            self._end_line()
        elif character == "\x1b":
            self._state = self._in_escape
        elif character == "\x9b":
            self._begin_sequence()
        elif character in _STRING_BEGINS:
            self._state = self._in_string
        elif character in _BLANKS:
            self._write(" ")
        elif not _INVISIBLE.match(character):
            self._write(REPLACEMENT)

    def _repeated(self, run: str) -> None:
        """Do what a run of one kind of control does; sequences in a run do nothing."""
        if run[0] == "\r":
            self._returned = True
        elif run[0] == "\t":
            width = 0 if self._returned else self._length
            self._write(" " * (_TAB * len(run) - width % _TAB))
        elif run[0] == "\b":
            self._erase(len(run))

    def _begin_sequence(self) -> None:
        self._state = self._in_sequence
        self._parameter = ""

    def _obey(self, final: str, parameter: str) -> None:
        """Follow what changes the line that is being written; anything else vanishes."""
        is_all = parameter in {"1", "2"}
        if final in {"K", "J"} and (is_all or self._returned):
            self._begin_line()
        elif final == "G" and parameter in {"", "0", "1"}:
            self._returned = True

    def _write(self, text: str) -> None:
        if not text:
            return
        if self._returned:
            self._begin_line()
        at = 0
        while len(text) - at > self._longest - self._length:
            cut = at + self._longest - self._length
            self._parts.append(text[at:cut])
            self._found.append(CleanLine(self.partial, is_whole=False))
            self._begin_line()
            at = cut
        rest = text[at:] if at else text
        self._length += len(rest)
        if len(rest) <= _PIECE:
            self._parts.append(rest)
        else:
            self._parts.extend(rest[cut : cut + _PIECE] for cut in range(0, len(rest), _PIECE))

    def _erase(self, count: int) -> None:
        while count and self._parts and not self._returned:
            last = self._parts.pop()
            gone = min(count, len(last))
            count -= gone
            self._length -= gone
            if gone < len(last):
                self._parts.append(last[: len(last) - gone])

    def _end_line(self) -> None:
        self._found.append(CleanLine(self.partial))
        self._begin_line()

    def _begin_line(self) -> None:
        self._parts = []
        self._length = 0
        self._returned = False


class Cleaner:
    """Reads bytes, such as those of a pipe, and gives clean lines.

    Bytes that are no UTF-8 are shown as U+FFFD; a character cut over two reads is joined.
    """

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._machine = LineMachine(longest)

    def feed(self, data: bytes) -> list[CleanLine]:
        """Read some bytes and return the lines that they complete."""
        return self._machine.feed(self._decoder.decode(data))

    def finish(self) -> list[CleanLine]:
        """Return what is left when no more will come."""
        found = self._machine.feed(self._decoder.decode(b"", final=True))
        return [*found, *self._machine.finish()]

    @property
    def partial(self) -> str:
        """The unfinished line as it would be seen now."""
        return self._machine.partial


def clean_text(text: str) -> str:
    """Return a whole text made harmless; line breaks are the only controls that are left."""
    if _is_plain(text):
        return text.rstrip("\n") if text.endswith("\n") else text
    machine = LineMachine()
    lines = [*machine.feed(text), *machine.finish()]
    joined = "".join(line.text + "\n" * line.is_whole for line in lines)
    return joined.rstrip("\n")


def _is_plain(text: str) -> bool:
    """Whether a text holds nothing that has to be looked at but line breaks."""
    if text.isascii():
        return text.isprintable() or text.replace("\n", "").isprintable()
    return _SPECIAL.search(text.replace("\n", "")) is None
