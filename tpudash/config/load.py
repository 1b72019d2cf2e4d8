"""Reads the settings: defaults, then the TOML file, then the environment, then flags.

An unknown key or a value of the wrong kind is an error that names the file, the line and the
nearest key, because a misspelt setting that is silently ignored is worse than none.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tpudash.config.endpoints import read_endpoints
from tpudash.config.paths import CACHE_DIR_VARIABLE, CONFIG_DIR_VARIABLE, STATE_DIR_VARIABLE
from tpudash.config.settings import (
    INTERVAL_FIELDS,
    SCALAR_FIELDS,
    SERVING_FIELDS,
    Intervals,
    LoadedSettings,
    Origin,
    OriginKind,
    Serving,
    Settings,
)
from tpudash.config.toml_lines import line_of
from tpudash.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tpudash.domain.serving import ServingEndpoint

PREFIX: Final = "TPUDASH_"
OTHER_VARIABLES: Final = frozenset(
    {CONFIG_DIR_VARIABLE, STATE_DIR_VARIABLE, CACHE_DIR_VARIABLE, "TPUDASH_CONFIG"}
)
MAX_FILE_BYTES: Final = 1_000_000
_SCALARS: Final = {one.name: one for one in SCALAR_FIELDS}
_INTERVALS: Final = {one.name: one for one in INTERVAL_FIELDS}
_SERVING: Final = tuple(f"serving.{one.name}" for one in SERVING_FIELDS)
_TABLES: Final = ("keys", "intervals", "serving")
_KEYS: Final = (*_SCALARS, *(f"intervals.{name}" for name in _INTERVALS), *_SERVING, *_TABLES)
_TRUTH: Final = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
LOG_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")


class _WrongValueError(ValueError):
    """A value is not what its setting wants; the text says what that is."""


def load_settings(
    file: Path,
    *,
    must_exist: bool = False,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> LoadedSettings:
    """Put the settings together; the file may be absent unless `must_exist`.

    `flags` holds values of flags by setting name; those that are None were not given.

    Raises:
        ConfigurationError: The file can't be read, or holds what no setting is.
    """
    named = os.environ if environment is None else environment
    values: dict[str, tuple[Any, Origin]] = {}
    found = _read_file(file, must_exist=must_exist)
    if found is not None:
        values |= _from_file(file, found)
    values |= _from_environment(named)
    for name, value in (flags or {}).items():
        if value is not None:
            flag = f"--{name.replace('_', '-')}"
            values[name] = (_checked(name, value, flag), Origin(OriginKind.FLAG, flag))
    return _assemble(values, str(file) if found is not None else None)


def unknown_variables(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return variables named `TPUDASH_*` that nothing reads, each with the nearest that is read."""
    named = os.environ if environment is None else environment
    known = {_variable(name) for name in _SCALARS} | OTHER_VARIABLES
    known |= {_variable(f"intervals.{name}") for name in _INTERVALS}
    strange = sorted(name for name in named if name.startswith(PREFIX) and name not in known)
    return tuple(f"{name}{_nearest(name, tuple(known))}" for name in strange)


def _read_file(file: Path, *, must_exist: bool) -> str | None:
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise ConfigurationError("the settings file is too large", detail=str(file))
        return file.read_text("utf-8")
    except FileNotFoundError:
        if not must_exist:
            return None
        raise ConfigurationError(
            "the settings file does not exist", detail=str(file), hint="check --config"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            "the settings file can't be read", detail=f"{file}: {error}"
        ) from error


def _from_file(file: Path, text: str) -> dict[str, tuple[Any, Origin]]:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(
            "the settings file is not TOML",
            detail=f"{file}: {error}",
            hint="strings stand in quotes; see https://toml.io",
        ) from error
    values: dict[str, tuple[Any, Origin]] = {}
    for key, value in _flatten(document):
        where = f"{file}:{line_of(text, key)}"
        values[key] = (_checked(key, value, where), Origin(OriginKind.FILE, where))
    return values


def _flatten(document: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return dotted keys and values; a table where none belongs stays one value."""
    pairs: list[tuple[str, Any]] = []
    for key, value in document.items():
        if key in _TABLES and isinstance(value, dict):
            pairs += [(f"{key}.{name}", inner) for name, inner in value.items()]
        else:
            pairs.append((key, value))
    return pairs


def _from_environment(named: Mapping[str, str]) -> dict[str, tuple[Any, Origin]]:
    values: dict[str, tuple[Any, Origin]] = {}
    variables = {
        name: (_variable(name), *one.metadata["variables"]) for name, one in _SCALARS.items()
    }
    variables |= {f"intervals.{name}": (_variable(f"intervals.{name}"),) for name in _INTERVALS}
    for key, candidates in variables.items():
        for variable in candidates:
            if named.get(variable, ""):
                value = _checked(key, _from_text(key, named[variable]), variable)
                values[key] = (value, Origin(OriginKind.ENVIRONMENT, variable))
                break
    return values


def _variable(key: str) -> str:
    return PREFIX + key.replace(".", "_").upper()


def _from_text(key: str, text: str) -> Any:
    """Turn a variable's text into the kind of value that its setting wants, where it can be."""
    if key in {"zones", "panes"}:
        return [part.strip() for part in text.split(",") if part.strip()]
    if key in {"ascii", "mouse"}:
        return _TRUTH.get(text.lower(), text)
    if key.startswith("intervals.") or key in {"rotate_s", "alarm_per_hour_usd", "alarm_idle_s"}:
        try:
            return float(text)
        except ValueError:
            return text
    return text


_LEAST: Final = {
    "alarm_per_hour_usd": (0.0, "US dollars an hour"),
    "alarm_idle_s": (0.0, "seconds"),
    "rotate_s": (0.0, "seconds"),
    "serving.p99_limit_s": (0.0, "seconds"),
    "serving.error_limit": (0.0, "requests that may fail of one"),
}
"""Numbers with their least value and their unit; intervals are at least 1 s."""


_PROJECTS: Final = re.compile(
    r"[\s,]*[a-zA-Z0-9][\w.:-]*(?:(?:\s*,)+\s*[a-zA-Z0-9][\w.:-]*)*[\s,]*", re.ASCII
)
"""Ids or numbers, with a domain before a colon in old ones; Google itself says which exist."""


def _checked(key: str, value: Any, where: str) -> Any:
    """Return the value as its setting wants it.

    Raises:
        ConfigurationError: No setting has this key, or the value is of the wrong kind.
    """
    if key not in _KEYS and not key.startswith("keys."):
        raise ConfigurationError(
            f"unknown setting {key!r}",
            detail=where,
            hint=_nearest(key, _KEYS).lstrip(" (").rstrip(")") or "see: tpudash config show",
        )
    try:
        return _value(key, value)
    except _WrongValueError as error:
        raise ConfigurationError(
            f"the setting {key!r} must be {error}",
            detail=f"{where}: it is {value!r}",
            hint="see: tpudash config show",
        ) from None


def _value(key: str, value: Any) -> Any:
    if key in _TABLES:
        raise _WrongValueError(f"a table, written [{key}]")
    if key in {"zones", "panes"}:
        return _texts(value)
    if key == "serving.endpoints":
        return _endpoints(value)
    if key in {"ascii", "mouse"}:
        return _truth(value)
    if key in _LEAST or key.startswith("intervals."):
        least, unit = _LEAST.get(key, (1.0, "seconds"))
        return _number(value, least=least, unit=unit)
    if key.startswith("keys.") and value == "":
        return value
    if not isinstance(value, str) or not value.strip():
        raise _WrongValueError("a text in quotes")
    if key in {"project", "quota_project"} and not _PROJECTS.fullmatch(value):
        raise _WrongValueError("the id of a project, such as my-project")
    if key == "log_level" and value.upper() not in LOG_LEVELS:
        raise _WrongValueError(f"one of {', '.join(LOG_LEVELS)}")
    return value.upper() if key == "log_level" else value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _WrongValueError("true or false")
    return value


def _endpoints(value: Any) -> tuple[ServingEndpoint, ...]:
    try:
        return read_endpoints(value)
    except ValueError as error:
        raise _WrongValueError(str(error)) from None


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise _WrongValueError('a list of texts, such as ["us-central1-b"]')
    return tuple(value)


def _number(value: Any, *, least: float, unit: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
        raise _WrongValueError(f"a number of {unit}, at least {least:g}")
    return float(value)


def _nearest(key: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _assemble(values: Mapping[str, tuple[Any, Origin]], file: str | None) -> LoadedSettings:
    plain = {key: value for key, (value, _) in values.items() if key in _SCALARS}
    intervals = {
        key.partition(".")[2]: value
        for key, (value, _) in values.items()
        if key.startswith("intervals.")
    }
    keys = {
        key.partition(".")[2]: value for key, (value, _) in values.items() if key[:5] == "keys."
    }
    serving = {
        key.partition(".")[2]: value for key, (value, _) in values.items() if key in _SERVING
    }
    settings = replace(
        Settings(),
        **plain,
        keys=keys,
        intervals=replace(Intervals(), **intervals),
        serving=replace(Serving(), **serving),
    )
    return LoadedSettings(settings, {key: origin for key, (_, origin) in values.items()}, file)
