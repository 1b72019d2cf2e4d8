"""Nodes as processes: one watchdog, one process group and one metadata server per worker."""
