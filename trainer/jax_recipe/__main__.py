"""`python -m trainer.jax_recipe`."""

from __future__ import annotations

import os
import sys

from trainer.jax_recipe.main import main

if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # An orderly end of the runtime takes seconds that a preemption notice does not give.
    os._exit(code)
