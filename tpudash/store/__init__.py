"""What is known right now: an immutable snapshot, change sets, logs and time series."""
