"""Exporting the trained model as a SavedModel."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from trainer.faults import access_error
from trainer.joblock import is_remote


class _Serving(tf.Module):  # type: ignore[misc]
    """Images in, logits and probabilities out."""

    def __init__(self, model: Any) -> None:
        super().__init__(name=model.name)
        self._model = model
        self.variables_of_model = [weight.value for weight in model.weights]

    @tf.function  # type: ignore[untyped-decorator]
    def serve(self, images: Any) -> dict[str, Any]:
        logits = self._model(images, training=False)
        return {"logits": logits, "probabilities": tf.nn.softmax(logits)}


def export_model(model: Any, model_dir: str, step: int) -> str:
    """Write `<model_dir>/export/<step>` as a SavedModel and return its path.

    The signature `serving_default` takes uint8 images [n, height, width, channels]. An earlier
    export of the same step is replaced only once the new one is complete.

    Raises:
        TrainerError: it could not be written.
    """
    final = f"{model_dir.rstrip('/')}/export/{step}"
    temporary = final if is_remote(model_dir) else f"{final}.tmp"
    serving = _Serving(model)
    shape = model.input_shape[1:]
    spec = tf.TensorSpec([None, *shape], tf.uint8, name="images")
    try:
        if tf.io.gfile.isdir(temporary) and temporary != final:
            tf.io.gfile.rmtree(temporary)
        tf.saved_model.save(
            serving,
            temporary,
            signatures={"serving_default": serving.serve.get_concrete_function(spec)},
        )
        if temporary != final:
            if tf.io.gfile.isdir(final):
                tf.io.gfile.rmtree(final)
            tf.io.gfile.rename(temporary, final)
    except (tf.errors.OpError, OSError) as error:
        raise access_error(error, f"the model was not exported to {final}") from error
    return final
