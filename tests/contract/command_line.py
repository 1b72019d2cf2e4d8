"""The real command line as a process, while an emulator runs in the test's own event loop."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Done:
    """How a command ended.

    Attributes:
        seconds: From its start to its end.
    """

    code: int
    out: str
    err: str
    seconds: float

    @property
    def envelope(self) -> dict[str, Any]:
        """The answer of a command with `--json`."""
        assert self.code == 0, self.err
        envelope = json.loads(self.out)
        assert list(envelope) == ["as_of", "source", "items", "unreachable", "errors"]
        return dict(envelope)

    @property
    def items(self) -> list[dict[str, Any]]:
        """The items of the answer."""
        return list(self.envelope["items"])

    def is_refusal(self, code: int) -> bool:
        """Whether it ended with this code and at most three lines that say why and what to do."""
        lines = self.err.splitlines()
        names = [line.partition(":")[0] for line in lines]
        return (
            self.code == code
            and self.out == ""
            and names in (["error", "hint"], ["error", "detail", "hint"])
        )


class CommandLine:
    """Runs `tpudash` against one endpoint, in folders of its own."""

    def __init__(self, folder: Path, endpoint: str, project: str = "demo") -> None:
        self.folder = folder
        kept = ("PATH", "LANG", "LC_ALL", "TMPDIR")
        self.environment = {name: os.environ[name] for name in kept if name in os.environ} | {
            "HOME": str(folder),
            "USER": "alice",
            "TPUDASH_CONFIG_DIR": str(folder / "config"),
            "TPUDASH_STATE_DIR": str(folder / "state"),
            "TPUDASH_ENDPOINT": endpoint,
            "TPUDASH_PROJECT": project,
        }

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        """Start a command and return while it runs."""
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tpudash",
            *arguments,
            env=self.environment,
            cwd=self.folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def __call__(self, *arguments: str, within: float = 30.0) -> Done:
        """Run a command to its end."""
        began = time.monotonic()
        process = await self.start(*arguments)
        try:
            async with asyncio.timeout(within):
                out, err = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode is not None
        return Done(process.returncode, out.decode(), err.decode(), time.monotonic() - began)
