"""Lets `python -m tpudash` be the same as `tpudash`."""

from __future__ import annotations

from tpudash.cli import main

if __name__ == "__main__":
    main()
