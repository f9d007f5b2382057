"""Rooms of the native code include what lies below them only (docs/architecture.md has the same table)."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BELOW = {
    "native/wire": set[str](),
    "native/cupti_abi": set[str](),
    "native/uvm_tools_abi": set[str](),
    "native/um_model": set[str](),
    "native/core": {"native/wire"},
    "native/mover": {"native/wire"},
    "native/simulate": {"native/core", "native/mover", "native/um_model", "native/wire"},
    "native/runtime": {"native/mover", "native/wire"},
    "native/simgpu": {"native/cupti_abi", "native/um_model", "native/uvm_tools_abi"},
    "kernel_hooks": {"native/cupti_abi", "native/runtime", "native/uvm_tools_abi", "native/wire"},
}
# Made by the build, of CUDA's headers.
GENERATED = {"changed_define.inc", "changed_undefine.inc", "driver_forwards.inc", "error_names.inc", "undefine.inc"}


def sources(room: str) -> list[Path]:
    return sorted(path for path in (ROOT / room).rglob("*") if path.suffix in (".c", ".cpp", ".h", ".hpp", ".inc"))


@cache
def files() -> dict[str, list[str]]:
    """All files of all rooms, by name."""
    found: dict[str, list[str]] = {}
    for room in BELOW:
        for path in sources(room):
            found.setdefault(path.name, []).append(path.relative_to(ROOT).as_posix())
    return found


def room_of(file: str) -> str:
    return next(room for room in BELOW if file.startswith(f"{room}/"))


def included(room: str) -> list[tuple[str, list[str]]]:
    """What the room's sources include of other rooms: (source: name as it stands there, the files of that name)."""
    found = []
    for source in sources(room):
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', source.read_text(), re.MULTILINE):
            if (source.parent / name).exists() or name in GENERATED:
                continue
            files_of_name = [file for file in files().get(Path(name).name, []) if file.endswith(f"/{name}")]
            if not any(room_of(file) == room for file in files_of_name):
                found.append((f"{source.relative_to(ROOT)}: {name}", files_of_name))
    return found


@pytest.mark.parametrize("room", BELOW)
def test_what_a_room_includes_lies_below_it(room: str) -> None:
    allowed = BELOW[room]
    wrong = [told for told, of_name in included(room) if not of_name or any(room_of(file) not in allowed for file in of_name)]
    assert not wrong


@pytest.mark.parametrize("room", BELOW)
def test_a_room_includes_all_that_it_may(room: str) -> None:
    assert {room_of(file) for _, of_name in included(room) for file in of_name} == BELOW[room]


def test_no_room_lies_below_itself() -> None:
    done: set[str] = set()
    while left := [room for room in BELOW if room not in done and BELOW[room] <= done]:
        done.update(left)
    assert done == set(BELOW)


def test_all_rooms_are_named() -> None:
    assert {f"native/{path.name}" for path in (ROOT / "native").iterdir() if path.is_dir()} | {"kernel_hooks"} == set(BELOW)


def test_the_page_has_the_same_table() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| `(\w+(?:/\w+)?)/` \| C[^|]*\|[^|]*\| ([^|]*) \|$", page, re.MULTILINE)
    named = {room: {name for name in imports.split(", ") if " " not in name and name != "-"} for room, imports in rows}
    assert named == {room: {below.removeprefix("native/") for below in allowed} for room, allowed in BELOW.items()}
