"""Messages that docs/troubleshooting.md quotes are those that deepum says."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What others say: PyTorch, NCCL, the C++ library, pip.
OTHERS = {
    "terminate called without an active exception",
    "unhandled cuda error",
    "CUFFT_INTERNAL_ERROR",
    "CUSOLVER_STATUS_NOT_INITIALIZED",
    "pip install .",
}


@cache
def sources() -> str:
    """All texts of the sources, with what a compiler joins joined, and no white space doubled."""
    files = [
        path
        for folder in ("deepum", "native", "kernel_hooks")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".cpp", ".hpp", ".h")
    ]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(files))
    text = re.sub(r'(?<!\\)"\s*f?"', "", text)
    return re.sub(r"\s+", " ", text.replace("%%", "%"))


def quoted() -> list[str]:
    """The messages in the first column of the tables."""
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    first = [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| ")]
    return [text for cell in first for text in re.findall(r"`([^`]+)`", cell)]


def test_each_message_is_in_the_sources() -> None:
    messages = [text for text in quoted() if " " in text and text not in OTHERS]
    assert len(messages) > 20
    missing = {
        message: part
        for message in messages
        for part in (piece.strip(" ;:,.") for piece in message.split("..."))
        if part and part not in sources()
    }
    assert missing == {}
