"""`tpudash explain`: the class of an error text, its evidence, and what to do."""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from tpudash.commands.items import failure_item
from tpudash.commands.output import Answer, details, print_json
from tpudash.commands.state import connection_options, json_option
from tpudash.errors import UsageError

if TYPE_CHECKING:
    from tpudash.domain.failure import Failure

MOST_BYTES = 8 * 1024 * 1024
CHUNK_BYTES = 64 * 1024


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@json_option
@connection_options
def explain(file: Path | None, as_json: bool) -> None:
    """Explain an error text: what kind of failure it is, and what to do about it.

    Reads FILE, or standard input when there is none or it is "-". Needs no connection.
    """
    from tpudash.clock import SystemClock
    from tpudash.diagnostics.classifier import classify_text

    text, source = _read(file)
    failures = classify_text(text)
    if as_json:
        items = [item for item in map(failure_item, failures) if item]
        print_json(Answer(SystemClock().now(), source, items))
        return
    if not failures:
        click.echo("nothing in this text is a failure that tpudash knows", err=True)
        return
    click.echo("\n\n".join("\n".join(details(_rows(failure))) for failure in failures))


def _rows(failure: Failure) -> dict[str, object]:
    rows: dict[str, object] = {
        "class": str(failure.error_class),
        "evidence": failure.evidence,
        "what to do": failure.advice,
        "retry": str(failure.retry),
    }
    places = asdict(failure.scope)
    rows |= {name: value for name, value in places.items() if value is not None}
    if failure.eid:
        rows["for support"] = f"EID {failure.eid}"
    return rows


def _read(file: Path | None) -> tuple[str, str]:
    """Return the text and where it came from; of a huge text only the end is kept."""
    if file is None or str(file) == "-":
        if sys.stdin.isatty():
            raise UsageError(
                "no text to explain",
                hint="name a file, or pipe a text: tpudash logs RUN | tpudash explain",
            )
        return _end_of(sys.stdin.buffer), "standard input"
    try:
        with file.open("rb") as opened:
            if opened.seekable():
                size = opened.seek(0, 2)
                opened.seek(max(0, size - MOST_BYTES))
            return _end_of(opened), str(file)
    except OSError as error:
        raise UsageError(
            "the file can't be read", detail=f"{file}: {error.strerror or error}"
        ) from error


def _end_of(stream: BinaryIO) -> str:
    """Read to the end, be it far, and return what came last."""
    kept: deque[bytes] = deque()
    size = 0
    while chunk := stream.read(CHUNK_BYTES):
        kept.append(chunk)
        size += len(chunk)
        while size - len(kept[0]) >= MOST_BYTES:
            size -= len(kept.popleft())
    return b"".join(kept)[-MOST_BYTES:].decode("utf-8", "replace")
