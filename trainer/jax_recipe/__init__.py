"""The trainer in JAX: flags, events, exit codes and run folder of `trainer`, without TensorFlow.

On a slice every worker runs the same command; `jax.distributed` joins the processes.
"""
