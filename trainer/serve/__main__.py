"""`python -m trainer.serve --model DIR`."""

from __future__ import annotations

import os
import sys

from trainer.serve.main import main

if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # TensorFlow's orderly end takes seconds that a preemption notice does not give.
    os._exit(code)
