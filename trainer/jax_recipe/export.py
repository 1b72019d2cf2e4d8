"""The trained model for serving: its weights, and its computation as StableHLO."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export as jax_export

from trainer.faults import one_line
from trainer.jax_recipe import model

if TYPE_CHECKING:
    from trainer.jax_recipe.storage import Storage
    from trainer.model_specs import ModelSpec


def export_model(storage: Storage, weights: model.Weights, spec: ModelSpec, step: int) -> str:
    """Write `<model_dir>/export/<step>` and return its path.

    `weights.npz` holds the arrays by name; `model.stablehlo`, read with `jax.export.deserialize`,
    takes uint8 images [n, height, width, channels] for any n and returns logits and probabilities,
    on CPU and TPU alike; `model.json` describes both and is written last.

    Raises:
        TrainerError: it could not be written.
    """
    folder = f"export/{step}"
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {name: np.asarray(leaf) for name, leaf in model.named(weights).items()}
    np.savez(buffer, **arrays)
    storage.write(f"{folder}/weights.npz", buffer.getvalue())
    content: dict[str, Any] = {
        "schema": 1,
        "framework": "jax",
        "step": step,
        "model": spec.name,
        "image_shape": list(spec.image_shape),
        "classes": spec.classes,
        "weights": "weights.npz",
        "computation": None,
    }
    try:
        storage.write(f"{folder}/model.stablehlo", _computation(weights, spec))
        content["computation"] = "model.stablehlo"
    except (ValueError, NotImplementedError, RuntimeError, ImportError) as error:
        # The weights alone are a whole model, and the run is done.
        content["computation_missing"] = one_line(str(error), 200)
    storage.write(f"{folder}/model.json", (json.dumps(content, indent=1) + "\n").encode())
    return storage.path(folder)


def _computation(weights: model.Weights, spec: ModelSpec) -> bytes:
    def serve(images: Any) -> dict[str, Any]:
        logits = model.apply(weights, images, jnp.float32)
        return {"logits": logits, "probabilities": jax.nn.softmax(logits)}

    (count,) = jax_export.symbolic_shape("n")
    images = jax.ShapeDtypeStruct((count, *spec.image_shape), jnp.uint8)
    return bytes(jax_export.export(jax.jit(serve), platforms=("cpu", "tpu"))(images).serialize())
