"""The recipes that ship with tpudash: which trainer a launch runs, on which workers and image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class BundledRecipe:
    """A trainer of the bundle.

    Attributes:
        name: As it stands in the run's spec.
        module: What `python -m` runs.
        workers: `first` where one program drives the whole slice, `all` where each worker runs it.
        wants_tensorflow: Whether its image should have TensorFlow.
    """

    name: str
    module: str
    workers: str
    wants_tensorflow: bool


DEFAULT_RECIPE: Final = "tensorflow"
RECIPES: Final = {
    "tensorflow": BundledRecipe("tensorflow-mnist", "trainer", "first", wants_tensorflow=True),
    "jax": BundledRecipe("jax-mnist", "trainer.jax_recipe", "all", wants_tensorflow=False),
}
"""By the word that `launch --recipe` takes."""
SERVER: Final = BundledRecipe("tensorflow-serve", "trainer.serve", "first", wants_tensorflow=True)
"""What `launch --serve` runs instead of a trainer."""
