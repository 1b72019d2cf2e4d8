"""Copying: to the terminal's clipboard by OSC 52, and to a file, because nobody confirms OSC 52."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpudash.tui.terminal import OSC_52_MOST_BYTES

if TYPE_CHECKING:
    from pathlib import Path


def save_copy(path: Path, text: str) -> None:
    """Replace the file's content; only its owner may read it.

    Raises:
        OSError: The folder or the file can't be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600, exist_ok=True)
    path.write_text(text if text.endswith("\n") else f"{text}\n", encoding="utf-8")


def fits_clipboard(text: str) -> bool:
    """Whether terminals take a text of this size by OSC 52."""
    return len(text.encode("utf-8", "replace")) <= OSC_52_MOST_BYTES


def report(what: str, *, is_sent: bool, saved: str, is_tmux: bool) -> str:
    """Return the message that says where a copy went.

    Args:
        what: What was copied, in words.
        is_sent: It was sent to the terminal.
        saved: Where it was saved, or "".
        is_tmux: The terminal is tmux, which has to be told to pass it on.
    """
    parts = [f"Copied {what} to the clipboard."] if is_sent else [f"Too long to copy: {what}."]
    if is_sent and is_tmux:
        parts.append("tmux passes it on only with `set -g set-clipboard on`.")
    if saved:
        parts.append(f"Saved in {saved}")
    return " ".join(parts)
