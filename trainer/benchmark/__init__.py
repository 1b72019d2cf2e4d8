"""`python -m trainer benchmark`: the trainer's speed, memory and reactions, as JSON."""
