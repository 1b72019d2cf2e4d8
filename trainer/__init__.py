"""The bundled TensorFlow trainer, and the agent that supervises it on a TPU node."""
