"""scripts/release: version, changelog and notes from one place."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from required import needed

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What a release reads and writes, committed."""
    needed("towncrier", "lint")
    for name in ("pyproject.toml", "CHANGELOG.md", "deepum/__init__.py", "scripts/release"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "news", tmp_path / "news")
    (tmp_path / "news" / "a-new-thing.feature.md").write_text("A new thing.\n")
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "-m", "all"]):
        git(tmp_path, *command)
    return tmp_path


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    command = ["git", *who, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def release(checkout: Path, version: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHON": sys.executable}
    command = [str(checkout / "scripts" / "release"), version]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_version_changelog_and_notes(checkout: Path) -> None:
    before = (checkout / "CHANGELOG.md").read_text()
    result = release(checkout, "9.8.7")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("## 9.8.7, ") and "- A new thing.\n" in result.stdout
    assert "towncrier" not in result.stdout
    after = (checkout / "CHANGELOG.md").read_text()
    assert result.stdout.strip() in after and len(after) > len(before)
    assert '\n__version__ = "9.8.7"\n' in (checkout / "deepum" / "__init__.py").read_text()
    assert {path.name for path in (checkout / "news").iterdir()} == {
        "README.md",
        "template.md.jinja",
    }
    assert git(checkout, "log", "--oneline").count("\n") == 1
    # The next one has its own fragments alone.
    (checkout / "news" / "another.bugfix.md").write_text("Another.\n")
    git(checkout, "add", "--all")
    git(checkout, "commit", "--quiet", "-m", "released")
    result = release(checkout, "9.9.0")
    assert "- Another.\n" in result.stdout and "A new thing" not in result.stdout


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("next", "next: is no version"),
        ("0.0.1", "0.0.1: is before"),
        ("0.1.0rc1", "0.1.0rc1: is before"),
    ],
)
def test_what_is_no_release_changes_nothing(checkout: Path, version: str, message: str) -> None:
    result = release(checkout, version)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert result.stderr.startswith(f"deepum: error: {message}")
    assert git(checkout, "status", "--porcelain") == ""


def test_changes_that_are_not_committed_are_refused(checkout: Path) -> None:
    (checkout / "CHANGELOG.md").write_text("# Changelog\n")
    result = release(checkout, "9.8.7")
    assert result.returncode == 2 and "not committed" in result.stderr
