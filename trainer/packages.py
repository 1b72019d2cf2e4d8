"""Versions of installed packages, read without importing them."""

from __future__ import annotations

import re
from importlib import metadata


def version_of(name: str) -> str | None:
    """Return the installed version of a package, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def numbers_of(version: str) -> tuple[int, ...]:
    """Return the first three numbers of a version, fewer if it has fewer."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
