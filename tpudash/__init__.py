"""A terminal dashboard to watch and operate Google Cloud TPU nodes."""

__version__ = "0.1.0"
