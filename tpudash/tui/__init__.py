"""The Textual screens: they render snapshots and do no I/O."""
