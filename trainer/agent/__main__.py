"""`python -m trainer.agent`."""

from __future__ import annotations

import os
import sys

from trainer.agent.agent import main

if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Long polls of the metadata server must not hold up the end.
    os._exit(code)
