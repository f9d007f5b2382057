"""Folders of the core include what lies below them only: extras, placement, prediction, memory, and
under all of them the clock and the stream of commands (docs/core.md). The plain-Python reference
has the same folders, and imports likewise.
"""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

CORE = Path(__file__).resolve().parents[2] / "native" / "core"
REFERENCE = Path(__file__).resolve().parent / "reference"
BELOW = {
    "memory": {"memory"},
    "iteration": {"iteration"},
    "prediction": {"prediction", "memory"},
    "placement": {"placement", "prediction", "memory"},
    "extras": {"extras", "placement", "prediction", "memory"},
}
UNDER_ALL = {
    "clock.hpp",
    "command_stream.hpp",
    "commands.hpp",
    "core.h",
    "parameters.h",
    "records.h",
    "range_parts.hpp",
}
REFERENCE_UNDER_ALL = {"clock", "command_stream", "settings"}


def imports(module: Path) -> set[str]:
    """Names of the reference's modules, without that of the package."""
    return set(re.findall(r"^from reference\.([\w.]+) import", module.read_text(), re.MULTILINE))


@pytest.mark.parametrize("folder", BELOW)
def test_what_a_folder_includes_lies_below_it(folder: str) -> None:
    wrong = [
        f"{source.name}: {included}"
        for source in sorted((CORE / folder).rglob("*.[ch]pp"))
        for included in re.findall(r'^#include "([^"]+)"', source.read_text(), re.MULTILINE)
        if included not in UNDER_ALL and included.partition("/")[0] not in BELOW[folder]
    ]
    assert not wrong


@pytest.mark.parametrize("folder", BELOW)
def test_what_a_folder_of_the_reference_imports_lies_below_it(folder: str) -> None:
    modules = sorted((REFERENCE / folder).glob("*.py"))
    allowed = BELOW[folder] | REFERENCE_UNDER_ALL
    assert modules
    assert not [
        f"{module.name}: {name}"
        for module in modules
        for name in imports(module)
        if name.partition(".")[0] not in allowed
    ]


def test_imports_of_the_reference_run_one_way() -> None:
    graph = {
        ".".join(path.relative_to(REFERENCE).with_suffix("").parts): imports(path)
        for path in REFERENCE.rglob("*.py")
    }
    order = list(TopologicalSorter(graph).static_order())  # raises for a cycle
    assert order[-1] == "__init__"
    assert set(order) == set(graph)


def test_all_folders_are_named() -> None:
    for root in (CORE, REFERENCE):
        assert {path.name for path in root.iterdir() if path.is_dir()} - {"__pycache__"} == set(
            BELOW
        )
