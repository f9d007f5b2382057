"""docs/first-run.md, and the README, show what the page's program comes to."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "first-run.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
Deepum = Callable[..., "subprocess.CompletedProcess[str]"]


def command(name: str) -> list[str]:
    """The options of the page's command."""
    found = re.search(rf"^ +deepum ({name} --device .*) -- python train.py$", PAGE, re.MULTILINE)
    assert found is not None
    return found[1].split()


def shown(text: str) -> list[str]:
    """Lines that the page has as a program's output, without their indentation."""
    return [line[4:] for line in text.splitlines() if line.startswith("    ")]


@pytest.fixture
def train(tmp_path: Path) -> Path:
    """The page's program."""
    lines = PAGE.partition("cat > train.py <<END\n")[2].partition("    END\n")[0].splitlines()
    program = tmp_path / "train.py"
    program.write_text("\n".join(line[4:] for line in lines), encoding="utf-8")
    return program


@pytest.mark.torch
def test_the_summary_is_what_the_program_comes_to(deepum: Deepum, train: Path) -> None:
    result = deepum(*command("run"), "--", sys.executable, train, timeout=300)
    assert result.returncode == 0, result.stderr
    lines = [line for line in result.stderr.splitlines()[1:] if "deepum: next: " not in line]
    assert len(lines) > 5
    for text in (PAGE, README):
        summary = [line for line in shown(text) if re.match(r"deepum: (?!next: )", line)]
        assert summary == lines


@pytest.mark.torch
def test_the_table_is_what_the_comparison_prints(deepum: Deepum, train: Path) -> None:
    options = command("compare")
    page = options.index("-o")
    result = deepum(*options[:page], *options[page + 2 :], "--", sys.executable, train, timeout=300)
    assert result.returncode == 0, result.stderr
    rows = [line for line in result.stdout.splitlines() if line.startswith("  ")]
    assert len(rows) == 4
    for text in (PAGE, README):
        assert [line for line in shown(text) if line in rows] == rows
    assert [line for line in result.stdout.splitlines() if line not in shown(PAGE) and line] == []
