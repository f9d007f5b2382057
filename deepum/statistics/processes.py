"""Looking at other processes."""

from __future__ import annotations

from pathlib import Path


def alive(pid: int) -> bool:
    """True if the process runs; a zombie does not."""
    try:
        # The state follows the name, which may itself contain parentheses (proc(5)).
        return (
            Path(f"/proc/{pid}/stat")
            .read_text(encoding="utf-8", errors="replace")
            .rpartition(")")[2]
            .split()[0]
            not in "ZX"
        )
    except (OSError, IndexError):
        return False
