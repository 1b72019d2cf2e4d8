"""The trainer's data: where it comes from, in what order it is read, and how it is converted.

Importing this package does not import TensorFlow.
"""

from __future__ import annotations

from pathlib import Path

EMBEDDED_FILE = Path(__file__).parent / "mnist_5k.npz"
"""5,000 handwritten digits that ship with the trainer; see ATTRIBUTION.md beside them."""
