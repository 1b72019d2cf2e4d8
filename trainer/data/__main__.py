"""`python -m trainer.data`: convert data into TFRecord files, and check such files."""

from __future__ import annotations

import os
import sys

from trainer.data.commands import main

if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("TPU_LOAD_LIBRARY", "0")
    sys.exit(main(sys.argv[1:]))
