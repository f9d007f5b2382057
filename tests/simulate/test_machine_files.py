"""Machines that are like a preset but for what a file says, wherever a machine is named."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from deepum._core import ffi
from small import training

from deepum.machines import machines, named
from deepum.simulate.replay import machine

Deepum = Callable[..., "subprocess.CompletedProcess[str]"]
# Prefetches 64 MiB to the host and back through the driver; the launcher's statistics say how long
# that takes in virtual time.
_PREFETCH = """
import ctypes as c
cuda = c.CDLL("libcuda.so.1")
context, address = c.c_void_p(), c.c_uint64()
def ok(result): assert result == 0, result
ok(cuda.cuInit(0)); ok(cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0)); ok(cuda.cuCtxSetCurrent(context))
ok(cuda.cuMemAllocManaged(c.byref(address), c.c_size_t(64 << 20), 1))
ok(cuda.cuMemsetD8_v2(address, 1, c.c_size_t(64 << 20)))
for place in (-1, 0): ok(cuda.cuMemPrefetchAsync(address, c.c_size_t(64 << 20), place, None))
ok(cuda.cuCtxSynchronize())
"""


def write(folder: Path, content: object) -> Path:
    path = folder / "machine.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_file_changes_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    preset = machine("a100-40gb")
    changed = machine(
        str(
            write(
                tmp_path, {"like": "a100-40gb", "name": "mine", "h2d_gbps": 11, "launch_queue": 64}
            )
        )
    )
    assert (changed.h2d_gbps, changed.launch_queue) == (11.0, 64)
    changed.h2d_gbps, changed.launch_queue = preset.h2d_gbps, preset.launch_queue
    assert ffi.buffer(changed) == ffi.buffer(preset)


def test_a_workload_is_simulated_on_it(deepum: Deepum, tmp_path: Path) -> None:
    training(tmp_path / "training")
    slower = write(tmp_path, {"like": "a100-40gb", "d2h_gbps": 3, "h2d_gbps": 3})
    options = ("--gpu-memory", "192MiB", "--policy", "deepum", "--json", tmp_path / "out.json")
    result = deepum("simulate", tmp_path / "training", "--machine", f"a100-40gb,{slower}", *options)
    assert result.returncode == 0, result.stderr
    whole, slow = json.loads((tmp_path / "out.json").read_text())["simulations"]
    assert slow["machine"] == str(slower)
    assert slow["policies"]["deepum"]["step_ms"] > 1.3 * whole["policies"]["deepum"]["step_ms"]
    assert slow["policies"]["unlimited"]["step_ms"] == whole["policies"]["unlimited"]["step_ms"]


def test_programs_run_on_it(deepum: Deepum, tmp_path: Path) -> None:
    half = write(tmp_path, {"like": "v100-16gb", "h2d_gbps": 6.45, "d2h_gbps": 6.45})
    seconds = []
    for on in ("v100-16gb", half):
        ran = deepum(
            "run",
            "--device",
            f"sim:{on}",
            "--stats",
            tmp_path / "stats.json",
            "--",
            "python",
            "-c",
            _PREFETCH,
        )
        assert ran.returncode == 0, ran.stderr
        simulated = json.loads((tmp_path / "stats.json").read_text())["processes"][0]["simulated"]
        seconds.append(simulated["gpu_time_s"])
        assert simulated["machine"] == ("v100-16gb" if on == "v100-16gb" else "v100-16gb, changed")
    assert seconds[1] == pytest.approx(2 * seconds[0], rel=0.05)


def test_every_figure_may_be_given(deepum: Deepum, tmp_path: Path) -> None:
    """To the model and to the simulated driver, which has its own list."""
    preset = machine("a100-40gb-g10-ssd")
    figures = {
        name: getattr(preset, name)
        for name, field in ffi.typeof("deepum_machine").fields
        if field.type.kind == "primitive"
    }
    path = write(tmp_path, {"like": "v100-16gb", **figures})
    made = machine(str(path))
    assert {name: getattr(made, name) for name in figures} == figures
    ran = deepum("run", "--device", f"sim:{path}", "--", "python", "-c", _PREFETCH)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{", "is no JSON"),
        ([], "is no JSON object"),
        ({"h2d_gbps": 11}, "names no preset to be like"),
        ({"like": "abacus"}, "names no preset to be like"),
        ({"like": "h200", "colour": 3}, "'colour' is no figure"),
        ({"like": "h200", "h2d_gbps": "fast"}, "'fast' is no number"),
        ({"like": "h200", "launch_queue": 1.5}, "'1.5' is no whole number"),
        ({"like": "h200", "launch_queue": 1 << 40}, "no machine can have these figures"),
        ({"like": "h200", "h2d_gbps": 0}, "no machine can have these figures"),
        ('{"like": "h200", "h2d_gbps": NaN}', "'nan' is no number"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(
    deepum: Deepum, tmp_path: Path, content: object, text: str
) -> None:
    path = write(tmp_path, content)
    training(tmp_path / "training")
    for ran in (
        deepum("simulate", tmp_path / "training", "--machine", path),
        deepum("run", "--device", f"sim:{path}", "--", "true"),
    ):
        assert (ran.returncode, ran.stdout) == (2, "")
        assert (
            ran.stderr.startswith(f"deepum: error: machine {path}: ")
            and ran.stderr.count("\n") == 1
        )
        assert text in ran.stderr


def test_a_file_that_is_not_there_is_one_line(deepum: Deepum, tmp_path: Path) -> None:
    ran = deepum("run", "--device", f"sim:{tmp_path}/none.json", "--", "true")
    assert ran.returncode == 2
    assert "No such file" in ran.stderr and ran.stderr.count("\n") == 1


def test_presets_are_named_as_ever() -> None:
    assert [named(known.name).figures for known in machines()] == [{}] * len(machines())
    with pytest.raises(ValueError, match="no machine is called abacus"):
        named("abacus")
