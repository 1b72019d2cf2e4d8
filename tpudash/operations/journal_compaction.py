"""Which records of a long journal are still needed.

Everything by which an unfinished operation is taken up again is kept, and the newest spec of each
run; of what ended long ago only how it began and ended, and of the oldest nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    Record = Mapping[str, Any]

MOST_ENDED: Final = 100
MOST_SPECS: Final = 500
MOST_INTENTS: Final = 200
"""Intents of one unfinished operation that are kept; the newest tell where it stands."""


def needed(records: tuple[Record, ...]) -> tuple[Record, ...]:
    """Return the records that are still needed, in their order."""
    ended = dict.fromkeys(_of(one) for one in records if one.get("event") == "end")
    kept_ended = set(list(ended)[-MOST_ENDED:])
    keep = [*_newest_specs(records)]
    seen: dict[tuple[str, str], list[int]] = {}
    for at, record in enumerate(records):
        operation, event = _of(record), str(record.get("event"))
        if operation in ended:
            if operation in kept_ended and event in {"begin", "end"}:
                keep.append(at)
        elif event in {"begin", "intend", "progress"}:
            kind = f"{event} {'tries' in record}"
            seen.setdefault((operation, kind), []).append(at)
    for (_, kind), places in seen.items():
        most = MOST_INTENTS if kind.startswith(("begin", "intend")) else 1
        keep += places[-most:]
    return tuple(records[at] for at in sorted(keep))


def _newest_specs(records: tuple[Record, ...]) -> list[int]:
    newest: dict[tuple[str, str], int] = {}
    for at, record in enumerate(records):
        if record.get("event") == "spec":
            key = _run_of(record)
            newest.pop(key, None)
            newest[key] = at
    return list(newest.values())[-MOST_SPECS:]


def _run_of(record: Record) -> tuple[str, str]:
    """Return what tells a spec's run from others; an unreadable one stands for itself."""
    text = str(record.get("spec"))
    try:
        spec = json.loads(text)
        return str(spec["project"]), str(spec["run_url"])
    except (ValueError, KeyError, TypeError):
        return "", text


def _of(record: Record) -> str:
    return str(record.get("operation"))
