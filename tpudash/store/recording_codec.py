"""Changes of the store as JSON-like data and back, by the annotations of their classes.

What is read may have been written by anyone: whatever does not fit its class is an error.
"""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime, timedelta
from enum import Enum
from functools import cache
from typing import Any, Final, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec

from tpudash.domain import (
    alarm,
    control,
    failure,
    finding,
    life,
    log,
    metric,
    node,
    operation,
    request,
    serving,
)
from tpudash.domain import run as runs
from tpudash.store import changes, past, snapshot, training_curve
from tpudash.store.changes import Change

Reader: TypeAlias = Callable[[Any], Any]
CHANGES: Final[Mapping[str, type[Any]]] = {kind.__name__: kind for kind in get_args(Change)}
_MODULES: Final = (
    *(alarm, control, failure, finding, life, log, metric, node, operation, request, runs, serving),
    *(changes, past, snapshot, training_curve),
)
_NAMES: Final[dict[str, Any]] = {
    "Any": Any,
    "Collection": Collection,
    "Mapping": Mapping,
    "Sequence": Sequence,
    "date": date,
    "datetime": datetime,
    "timedelta": timedelta,
} | {
    name: value
    for module in _MODULES
    for name, value in vars(module).items()
    if isinstance(value, type) and value.__module__.startswith("tpudash.")
}
"""What the annotations name although their modules import it for type checking only."""


class CodecError(ValueError):
    """Data that is not what its class wants; the text says what is wrong."""


def encode(change: Change) -> Any:
    """Return a change as dicts, lists, texts, numbers, booleans and None."""
    return msgspec.to_builtins(change, str_keys=True, enc_hook=_encode_other)


def decode(kind: str, data: Any) -> Change:
    """Return the change that `encode` made the data from.

    Raises:
        CodecError: There is no such change, or the data does not fit it.
    """
    cls = CHANGES.get(kind)
    if cls is None:
        msg = f"there is no change {kind[:80]!r}"
        raise CodecError(msg)
    try:
        change: Change = _reader(cls)(data)  # type: ignore[arg-type]
        _check(change)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        msg = f"{kind}: {type(error).__name__}: {error}"
        raise CodecError(msg) from error
    return change


def _encode_other(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


def _check(change: Change) -> None:
    """See that names are names, since everybody takes them apart later."""
    if isinstance(change, changes.NodesListed):
        for one in change.listing.nodes:
            _ = (one.node_id, one.zone)
    elif isinstance(change, changes.RequestsListed):
        for other in change.listing.requests:
            _ = (other.request_id, other.zone)


@cache
def _reader(hint: Hashable) -> Reader:
    """Return what reads data for one annotation."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin in {Union, types.UnionType}:
        return _read_union(inner)
    if origin is not None:
        return _read_collection(origin, inner)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint
    if isinstance(hint, type) and is_dataclass(hint):
        return _read_fields(hint)
    msg = f"a recording can't hold {hint!r}"
    raise TypeError(msg)


def _read_union(kinds: tuple[Any, ...]) -> Reader:
    readers = [_reader(kind) for kind in kinds if kind is not type(None)]

    def read(value: Any) -> Any:
        if value is None and type(None) in kinds:
            return None
        for reader in readers[:-1]:
            try:
                return reader(value)
            except (ValueError, TypeError):
                continue
        return readers[-1](value)

    return read


def _read_collection(origin: Any, inner: tuple[Any, ...]) -> Reader:
    if isinstance(origin, type) and issubclass(origin, Mapping):
        key, item = _reader(inner[0]), _reader(inner[1])
        return lambda value: {key(name): item(one) for name, one in _mapping(value).items()}
    if origin is tuple and (len(inner) != 2 or inner[1] is not Ellipsis):
        readers = [_reader(kind) for kind in inner]
        return lambda value: tuple(
            reader(one) for reader, one in zip(readers, _list(value), strict=True)
        )
    make = {frozenset: frozenset, list: list}.get(origin, tuple)
    reader = _reader(inner[0])
    return lambda value: make(reader(one) for one in _list(value))


def _read_fields(cls: type[Any]) -> Reader:
    hints = get_type_hints(cls, vars(sys.modules[cls.__module__]), _NAMES)
    readers = {field.name: _reader(hints[field.name]) for field in fields(cls) if field.init}
    needed = {
        field.name
        for field in fields(cls)
        if field.init and field.default is MISSING and field.default_factory is MISSING
    }

    def read(value: Any) -> Any:
        data = _mapping(value)
        missing = needed - data.keys()
        if missing:
            msg = f"{cls.__name__} lacks {', '.join(sorted(missing))}"
            raise ValueError(msg)
        return cls(**{name: readers[name](data[name]) for name in data.keys() & readers.keys()})

    return read


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        msg = f"an object was expected, not {type(value).__name__}"
        raise TypeError(msg)
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        msg = f"a list was expected, not {type(value).__name__}"
        raise TypeError(msg)
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        msg = f"a text was expected, not {type(value).__name__}"
        raise TypeError(msg)
    return value


def _float(value: Any) -> float:
    # JSON has no word for a figure that is no number, so it is written as null.
    return math.nan if value is None else float(value)


def _moment(value: Any) -> datetime:
    moment = datetime.fromisoformat(_text(value))
    if moment.tzinfo is None:
        msg = f"the time {value!r} has no zone"
        raise ValueError(msg)
    return moment


_PLAIN: Final[Mapping[Any, Reader]] = {
    Any: lambda value: value,
    str: _text,
    int: int,
    float: _float,
    bool: bool,
    datetime: _moment,
    date: lambda value: date.fromisoformat(_text(value)),
    timedelta: lambda value: msgspec.convert(value, timedelta),
}
