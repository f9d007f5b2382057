"""Rooms include and import what lies below them only (docs/architecture.md has the same tables)."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BELOW = {
    "native/wire": set[str](),
    "native/cupti_abi": set[str](),
    "native/uvm_tools_abi": set[str](),
    "native/c_face": set[str](),
    "native/um_model": set[str](),
    "native/core": {"native/wire"},
    "native/planning": {"native/c_face"},
    "native/swapadvisor": {"native/c_face"},
    "native/arena": {"native/c_face"},
    "native/arena_allocator": {"native/arena", "native/c_face", "native/core"},
    "native/mover": {"native/wire"},
    "native/simulate": {"native/core", "native/mover", "native/um_model", "native/wire"},
    "native/runtime": {"native/mover", "native/wire"},
    "native/simgpu": {"native/cupti_abi", "native/um_model", "native/uvm_tools_abi"},
    "kernel_hooks": {"native/cupti_abi", "native/runtime", "native/uvm_tools_abi", "native/wire"},
}
# Of Python; `deepum` is for the modules that lie in no folder.
RUNTIME = {
    "deepum": set[str](),
    "configuration": {"deepum"},
    "core": {"deepum"},
    "statistics": {"deepum", "configuration"},
    "daemon": {"deepum", "configuration", "core", "statistics"},
    "client": {"deepum", "daemon"},
    "top": {"deepum", "client", "configuration", "daemon"},
    "inside": {"deepum", "client", "daemon"},
    "callbacks": {"inside"},
    "launcher": {"deepum", "configuration", "daemon", "statistics"},
    "doctor": {"deepum", "launcher"},
    "pytorch": {"deepum"},
    "rematerialise": {"deepum", "pytorch"},
    "declarations": {"deepum", "pytorch"},
}
LABORATORY = {
    "trace": {"deepum", "core"},
    "workloads": {"deepum"},
    "planners": {"deepum", "core"},
    "arena": {"deepum", "planners"},
    "swapadvisor": {"deepum", "arena", "planners"},
    "capture": {"deepum", "core", "trace", "workloads"},
    "recomputation": {"deepum", "core", "rematerialise", "trace"},
    "simulate": {
        *("deepum", "arena", "capture", "core", "planners", "recomputation", "rematerialise"),
        *("trace", "workloads"),
    },
    "report": {"deepum", "core", "planners", "simulate", "statistics", "trace"},
}
PYTHON = RUNTIME | LABORATORY
# Made by the build, of CUDA's headers.
GENERATED = {
    "changed_define.inc",
    "changed_undefine.inc",
    "driver_forwards.inc",
    "error_names.inc",
    "undefine.inc",
}


def sources(room: str) -> list[Path]:
    return sorted(
        path
        for path in (ROOT / room).rglob("*")
        if path.suffix in (".c", ".cpp", ".h", ".hpp", ".inc")
    )


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
    """What the room's sources include of other rooms: (source: name as it stands there, the files
    of that name).
    """
    found = []
    for source in sources(room):
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', source.read_text(), re.MULTILINE):
            if (source.parent / name).exists() or name in GENERATED:
                continue
            files_of_name = [
                file for file in files().get(Path(name).name, []) if file.endswith(f"/{name}")
            ]
            if not any(room_of(file) == room for file in files_of_name):
                found.append((f"{source.relative_to(ROOT)}: {name}", files_of_name))
    return found


@pytest.mark.parametrize("room", BELOW)
def test_what_a_room_includes_lies_below_it(room: str) -> None:
    allowed = BELOW[room]
    wrong = [
        place
        for place, of_name in included(room)
        if not of_name or any(room_of(file) not in allowed for file in of_name)
    ]
    assert not wrong


@pytest.mark.parametrize("room", BELOW)
def test_a_room_includes_all_that_it_may(room: str) -> None:
    assert {room_of(file) for _, of_name in included(room) for file in of_name} == BELOW[room]


@pytest.mark.parametrize("below", [BELOW, PYTHON], ids=["native", "python"])
def test_no_room_lies_below_itself(below: dict[str, set[str]]) -> None:
    done: set[str] = set()
    while left := [room for room in below if room not in done and below[room] <= done]:
        done.update(left)
    assert done == set(below)


def test_all_rooms_are_named() -> None:
    assert {f"native/{path.name}" for path in (ROOT / "native").iterdir() if path.is_dir()} | {
        "kernel_hooks"
    } == set(BELOW)


def test_the_page_has_the_same_table() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| `(\w+(?:/\w+)?)/` \| C[^|]*\|[^|]*\| ([^|]*) \|$", page, re.MULTILINE)
    named = {
        room: {name for name in imports.split(", ") if " " not in name and name != "-"}
        for room, imports in rows
    }
    assert named == {
        room: {below.removeprefix("native/") for below in allowed}
        for room, allowed in BELOW.items()
    }


def modules(room: str) -> list[Path]:
    """The room's, without `deepum.__main__`, which is the command line, and the package itself,
    which hands out what programs use.
    """
    folder = ROOT / "deepum"
    if room == "deepum":
        return sorted(
            path for path in folder.glob("*.py") if path.stem not in ("__main__", "__init__")
        )
    return sorted((folder / room).rglob("*.py"))


def python_room(module: str) -> str:
    name = module.split(".")[1] if "." in module else ""
    return name if (ROOT / "deepum" / name).is_dir() and name else "deepum"


def imported(room: str) -> set[str]:
    """Rooms that it imports, anywhere in its modules."""
    found = set()
    for module in modules(room):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Import):
                found |= {
                    python_room(name.name)
                    for name in node.names
                    if name.name.split(".")[0] == "deepum"
                }
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "deepum":
                of_package = node.module == "deepum"
                found |= {
                    python_room(f"deepum.{name.name}" if of_package else str(node.module))
                    for name in node.names
                }
    return found - {room}


@pytest.mark.parametrize("room", PYTHON)
def test_a_room_of_python_imports_what_lies_below_it(room: str) -> None:
    assert imported(room) == PYTHON[room]


def test_no_room_of_the_runtime_lies_above_the_laboratory() -> None:
    assert all(below <= set(RUNTIME) for below in RUNTIME.values())


def test_all_rooms_of_python_are_named() -> None:
    assert {path.parent.name for path in (ROOT / "deepum").glob("*/__init__.py")} | {"deepum"} == {
        *PYTHON,
        "cli",
    }


def test_the_page_has_the_same_table_of_python() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(
        r"^\| `deepum\.?(\w*)` \| (runtime|laboratory) \|[^|]*\| ([^|]*) \|$", page, re.MULTILINE
    )
    named = {room or "deepum": set(imports.split(", ")) - {"-"} for room, _, imports in rows}
    assert named == PYTHON
    assert {room or "deepum" for room, part, _ in rows if part == "runtime"} == set(RUNTIME)


def test_the_runtime_needs_neither_numpy_nor_what_draws() -> None:
    rooms = [
        "deepum.cli.run",
        "deepum.cli.compare",
        "deepum.cli.doctor",
        "deepum.cli.machines",
        "deepum.daemon.server",
        "deepum.cli.log",
        "deepum.cli.ps",
        "deepum.cli.top",
        "deepum.client.looking",
        "deepum.top.panel",
    ]
    code = (
        f"import importlib, sys; [importlib.import_module(name) for name in {rooms}]; "
        f"print(*sys.modules)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"numpy", "pyarrow", "vl_convert", "dask", "torch", "textual"} & set(loaded)
    assert not [
        name for name in loaded if name.split(".")[:2] in [["deepum", room] for room in LABORATORY]
    ]
