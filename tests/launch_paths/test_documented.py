"""docs/programs.md names the test in which each launch path was seen."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_each_path_was_seen_in_a_test_that_is_there() -> None:
    # The first table.
    paths = (ROOT / "docs" / "programs.md").read_text(encoding="utf-8").partition("\n## ")[0]
    rows = [line for line in paths.splitlines() if line.startswith("| ")]
    assert len(rows) > 20
    for row in rows[1:]:
        named = re.search(r"\| `(tests/\S+\.py)::(test_\w+)` \|$", row)
        assert named, row
        assert f"def {named[2]}(" in (ROOT / named[1]).read_text(encoding="utf-8"), row
    seen = {test for row in rows for test in re.findall(r"::(test_\w+)", row)}
    here = {path.name for path in Path(__file__).parent.glob("test_*.py")} - {Path(__file__).name}
    assert (
        all(f"launch_paths/{name}" in "".join(rows) for name in here) and len(seen) == len(rows) - 1
    )
