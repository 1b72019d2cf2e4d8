"""Frozen dataclasses and enums of the field: no I/O, and nothing of ours imported."""
