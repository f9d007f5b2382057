"""docs/core.md shows what its example prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_is_what_the_example_prints() -> None:
    text = (ROOT / "docs" / "core.md").read_text(encoding="utf-8")
    example = ROOT / "examples" / "core_three_layers.py"
    result = subprocess.run(
        [sys.executable, example], capture_output=True, text=True, timeout=60, check=True
    )
    shown = text.partition("```text\n")[2].partition("```")[0]
    assert result.stdout == shown
