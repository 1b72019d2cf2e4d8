"""Who a run belongs to, where nobody says: the login name, as a label value."""

from __future__ import annotations

import getpass
import re
from typing import Final

_NOT_ALLOWED: Final = re.compile(r"[^a-z0-9_-]+")
LONGEST_LABEL: Final = 63


def default_owner() -> str:
    """Return the login name as it may stand in a label."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        # A process without a passwd entry and without the usual variables, as in some containers.
        name = ""
    return label_value(name) or "unknown"


def label_value(name: str) -> str:
    """Return a name as a label value; of an e-mail address only what stands before the @.

    Source: https://cloud.google.com/compute/docs/labeling-resources#requirements
    """
    plain = name.rsplit("\\", 1)[-1].split("@", 1)[0].lower()
    return _NOT_ALLOWED.sub("-", plain).strip("-")[:LONGEST_LABEL].rstrip("-")
