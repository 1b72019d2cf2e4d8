"""How fast logs are: `python -m tests.bench.bench_logs [GIGABYTES]`, on a quiet machine.

Prints one JSON object a measurement, beside toolong's and lnav's figures on the same file where
they are installed (`tl`, `lnav`). Goals: 100,000 parsed entries/s with keys answered within 100 ms
(99 of 100), a million lines in 150 MB for the whole process, the first hit of a search over them
within 500 ms, the tail of a file of 1 GB within 300 ms of opening it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench.log_console import entry
from tests.bench.terminal import Terminal

ROOT = Path(__file__).parents[2]
MILLION = 1_000_000
KEYS = 100
STARTS = 5
BETWEEN_KEYS_S = 0.15
"""With what a key takes, somebody who presses four or five keys a second."""
KEYS_PRESSED = (b"\x1b[5~", b"\x1b[6~", b"\x1b[A", b"\x1b[B", b"t", b"w")
SEARCHES = {
    "message number 1001": rb"\x1b\[[0-9;]*7[0-9;]*mmessage number 1001",
    "/number 10[0-9]1$/": rb"\x1b\[[0-9;]*7[0-9;]*mnumber 10\d1",
    "nowhere to be found": rb"No match",
}
"""What is searched from the newest of a million lines on, and how the answer is known."""
LAST = b"the very last line"


def environment(home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "TPUDASH_STATE_DIR": str(home / "state"),
        "TPUDASH_CACHE_DIR": str(home / "cache"),
        "TPUDASH_CONFIG_DIR": str(home / "config"),
    }


def tell(name: str, **figures: Any) -> None:
    """Print one measurement."""
    rounded = {
        key: round(value, 3) if isinstance(value, float) else value
        for key, value in figures.items()
    }
    print(json.dumps({"measured": name, **rounded}), flush=True)


def resident_mb(pid: int) -> float:
    """Return the memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def percentile(values: list[float], share: float) -> float:
    """Return the value that this share of the values does not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def bench_ring(home: Path) -> None:
    """A million entries, keys pressed meanwhile; then memory and searches."""
    folder = home / "ring"
    folder.mkdir()
    command = [sys.executable, "-m", "tests.bench.log_console", str(MILLION), str(folder)]
    terminal = Terminal(command, environment(home))
    latencies: list[float] = []
    try:
        terminal.wait_for(b"message number")
        while not (folder / "done.json").exists():
            latencies.append(terminal.key(KEYS_PRESSED[len(latencies) % len(KEYS_PRESSED)])[0])
            terminal.watch(BETWEEN_KEYS_S)
        done = json.loads((folder / "done.json").read_text())
        terminal.key(b"\x1b[F")
        terminal.settle()
        tell(
            "ingest",
            entries_per_second=done["per_second"],
            keys=len(latencies),
            key_p50_ms=1000 * statistics.median(latencies),
            key_p99_ms=1000 * percentile(latencies, 0.99),
        )
        tell("million lines", entries=done["entries"], resident_mb=resident_mb(terminal.pid))
        for words, sign in SEARCHES.items():
            tell("search", words=words, first_hit_s=search(terminal, words, sign))
        terminal.settle()
        pressed = [terminal.key(KEYS_PRESSED[at % 4])[0] for at in range(KEYS)]
        tell("keys over a million lines", p99_ms=1000 * percentile(pressed, 0.99))
    finally:
        terminal.close()


def search(terminal: Terminal, words: str, sign: bytes) -> float:
    """Return seconds from enter until a sign is seen: the marked hit, or that there is none."""
    terminal.key(b"\x1b[F")
    terminal.key(b"/")
    for character in "\x15" + words:
        terminal.key(character.encode())
    terminal.settle()
    before = len(terminal.output)
    began = time.perf_counter()
    os.write(terminal.file, b"\r")
    while time.perf_counter() - began < 30:
        terminal.read(0.01)
        if re.search(sign, terminal.output[before:]):
            return time.perf_counter() - began
    return float("nan")


def make_file(path: Path, size: int) -> None:
    """Write a file of log lines."""
    lines = "".join(f"{entry(at).text}\n" for at in range(1, 100_001) if at % 10)
    data = lines.encode()
    with path.open("wb") as file:
        for _ in range(max(1, size // len(data))):
            file.write(data)
        file.write(LAST + b"\n")


def bench_file(home: Path, size: int) -> None:
    """From the start of the process to the tail of a big file on the screen."""
    path = home / "big.log"
    make_file(path, size)
    tools = {
        "tpudash": ([sys.executable, "-m", "tpudash", "logs", "--file", str(path)], LAST),
        "hello": ([sys.executable, "-m", "tests.bench.bare"], b"hello there"),
    }
    if found := shutil.which("tl"):
        tools["toolong"] = ([found, str(path)], LAST)
    if found := shutil.which("lnav"):
        tools["lnav"] = ([found, "-N", str(path)], LAST)
    best: dict[str, float] = {}
    for name, (command, marker) in tools.items():
        seconds, memory = [], 0.0
        for _ in range(STARTS):
            terminal = Terminal(command, environment(home))
            try:
                seconds.append(terminal.wait_for(marker, within=120))
                memory = resident_mb(terminal.pid)
            finally:
                terminal.close()
        best[name] = min(seconds)
        tell("open", tool=name, bytes=path.stat().st_size, seconds=min(seconds), resident_mb=memory)
    tell(
        "tail of the file beyond a bare app",
        seconds=best["tpudash"] - best["hello"],
        ratios={name: round(value / best["tpudash"], 2) for name, value in best.items()},
    )


def bench_reading(home: Path) -> None:
    """From opening the file to its last page, without the start of the process."""
    from tpudash.store.log_file import LogFile
    from tpudash.tui.widgets.log_view_model import LogLines

    times = []
    for _ in range(STARTS):
        began = time.perf_counter()
        file = LogFile(home / "big.log")
        lines = LogLines(file)
        lines.sync(standing=False)
        last = lines.last()
        assert last is not None
        assert lines.row(last).text == LAST.decode()
        times.append(time.perf_counter() - began)
        file.close()
    tell("tail of the file in the process", seconds=min(times))


def main(gigabytes: float) -> None:
    """Measure everything."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        bench_ring(home)
        bench_file(home, int(gigabytes * 1e9))
        bench_reading(home)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
