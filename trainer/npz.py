"""What NumPy raises where a .npz file is damaged: its archive, its compression or its headers."""

from __future__ import annotations

import tokenize
import zipfile
import zlib

UNREADABLE = (
    OSError,
    ValueError,
    KeyError,
    EOFError,
    # Encrypted, or packed in a way that is not known.
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
    # A header that can't be parsed is tried once more as one of Python 2, word by word.
    tokenize.TokenError,
    IndentationError,
    # A shape that was damaged may ask for more than there is.
    MemoryError,
)
