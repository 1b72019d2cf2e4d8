"""Serves an exported model over HTTP, in the shape of TensorFlow Serving's REST API."""
