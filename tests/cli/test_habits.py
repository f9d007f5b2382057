"""What is to agree among the scripts, hooks and pages that a change is made with."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINT = (ROOT / "scripts/lint").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def lint_news(*files: str) -> subprocess.CompletedProcess[str]:
    """scripts/lint without its tools: the check of names needs none of them."""
    script = re.sub(r"(?m)^\[ -x .*$", "", LINT).replace('cd "$(dirname "$0")/.."', f"cd '{ROOT}'")
    return subprocess.run(
        ["bash", "-c", script, "lint", "news", *files], capture_output=True, text=True, check=False
    )


def test_each_check_is_a_hook() -> None:
    checks = re.search(r"^checks=\((.*)\)$", LINT, re.M)
    assert checks is not None
    hooks = re.findall(
        r"^ +entry: scripts/lint (\S+)$", (ROOT / ".pre-commit-config.yaml").read_text(), re.M
    )
    assert hooks == checks[1].split()
    assert re.search(r"^scripts/lint$", (ROOT / "scripts/test").read_text(), re.M)


def test_linters_are_of_one_version_each() -> None:
    assert all("==" in each for each in PROJECT["project"]["optional-dependencies"]["lint"])


def test_types_of_fragments_are_the_same_everywhere() -> None:
    types = [each["directory"] for each in PROJECT["tool"]["towncrier"]["type"]]
    assert f"({'|'.join(types)})" in LINT
    assert re.findall(r"^\| `(\w+)` \|", (ROOT / "news/README.md").read_text(), re.M) == types


@pytest.mark.parametrize(
    "name",
    [
        "news/Topic.feature.md",
        "news/topic.md",
        "news/topic.other.md",
        "news/topic.feature.rst",
        "news/deep/a.misc.md",
    ],
)
def test_a_fragment_that_is_badly_named_is_refused(name: str) -> None:
    ran = lint_news(name)
    assert ran.returncode == 1
    assert f"deepum: error: {name}: is no name of a news fragment" in ran.stderr


def test_the_fragments_that_are_there_are_well_named() -> None:
    ran = lint_news()
    assert (ran.returncode, ran.stderr) == (0, "")


def test_warnings_are_errors_for_developers_alone() -> None:
    presets = {
        each["name"]: each.get("cacheVariables", {})
        for each in json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
    }
    assert {
        name: variables.get("DEEPUM_WERROR")
        for name, variables in presets.items()
        if name != "base"
    } == {
        "dev": "ON",
        "address": "ON",
        "thread": "ON",
        "release": "OFF",
    }
    assert re.search(
        r"^option\(DEEPUM_WERROR .* OFF\)$", (ROOT / "CMakeLists.txt").read_text(), re.M
    )
    # What pip builds with, which is what the preset release has.
    assert PROJECT["tool"]["scikit-build"]["cmake"]["define"] == {"DEEPUM_BATCHES": "ON"}
    assert presets["release"]["DEEPUM_BATCHES"] == "ON"


def test_presets_are_documented() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    for name in ("dev", "address", "thread", "release"):
        assert f"`{name}`" in page
    assert "docs/review-checklist.md" in page
