"""`python -m trainer`, `python -m trainer validate` and `python -m trainer benchmark`.

`--self-check` in the first place means `validate`.
"""

from __future__ import annotations

import os
import sys


def _run(arguments: list[str]) -> int:
    if arguments[:1] in (["validate"], ["--self-check"]):
        from trainer.validation import main as validate

        return validate(arguments[1:])
    if arguments[:1] == ["benchmark"]:
        from trainer.benchmark.command import main as benchmark

        return benchmark(arguments[1:])
    from trainer.main import main

    return main(arguments)


if __name__ == "__main__":
    code = _run(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # TensorFlow's orderly end takes seconds that a preemption notice does not give.
    os._exit(code)
