"""Folders of the core include what lies below them only: extras, placement, prediction, memory, and under all of them the clock and the
stream of commands (docs/core.md)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CORE = Path(__file__).resolve().parents[2] / "native" / "core"
BELOW = {
    "memory": {"memory"},
    "prediction": {"prediction", "memory"},
    "placement": {"placement", "prediction", "memory"},
    "extras": {"extras", "placement", "prediction", "memory"},
}
UNDER_ALL = {"clock.hpp", "command_stream.hpp", "commands.hpp", "core.h", "parameters.h", "records.h", "range_parts.hpp"}


@pytest.mark.parametrize("folder", BELOW)
def test_what_a_folder_includes_lies_below_it(folder: str) -> None:
    wrong = [
        f"{source.name}: {included}"
        for source in sorted((CORE / folder).rglob("*.[ch]pp"))
        for included in re.findall(r'^#include "([^"]+)"', source.read_text(), re.MULTILINE)
        if included not in UNDER_ALL and included.partition("/")[0] not in BELOW[folder]
    ]
    assert not wrong


def test_all_folders_are_named() -> None:
    assert {path.name for path in CORE.iterdir() if path.is_dir()} == set(BELOW)
