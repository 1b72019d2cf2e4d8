"""The agent of a TPU node: runs the recipe's command, ships its output, keeps the run's records."""
