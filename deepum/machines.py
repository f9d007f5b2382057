"""The machines of the simulated GPU: presets (native/um_model/machine.hpp), and files that say what
differs from one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepum._core import ffi, lib
from deepum.errors import UsageError


@dataclass(frozen=True)
class Machine:
    """A host with its GPU: sizes in bytes, rates in GFLOP/s and GB/s (10^9), times in nanoseconds,
    sustained: of the peak.
    """

    name: str
    description: str
    gpu_name: str
    memory_bytes: int
    presented_major: int
    presented_minor: int
    multiprocessors: int
    launch_queue: int
    fp32_gflops: float
    tensor_gflops: float
    memory_gbps: float
    fp32_sustained: float
    tensor_sustained: float
    memory_sustained: float
    h2d_gbps: float
    d2h_gbps: float
    fault_batch_ns: float
    fault_ns_per_byte: float
    fault_batch_no_prefetcher_ns: float
    fault_ns_per_byte_no_prefetcher: float
    eviction_ns_per_block: float
    launch_ns: float
    # Of a wait for a value in memory: to queue it, and of the stream once the value is there.
    value_wait_ns: float
    block_ns: float  # driver's handling of each UM block that a prefetch or a discard names
    # By which a transfer takes longer while the other direction has one, 1 or more.
    both_ways: float
    discards: int  # 0: they empty a block; 1: as NVIDIA's driver does it; 2: it has none
    # 1: a kernel that needs a block of a prefetch under way that has not come to it faults; 0: it
    # waits.
    queued_prefetch_faults: int
    # That block their caller until the stream has come to them: 0: none; 1: prefetches; 2: discards
    # as well.
    blocking_calls: int
    decision_latency_ns: float
    host_memory_bytes: int  # 0: as much as there is to hold
    disk_read_gbps: float  # of the disk behind it; 0: none
    disk_write_gbps: float
    disk_read_latency_ns: float
    disk_write_latency_ns: float
    disk_buffer_bytes: int
    # 1: what comes to a full host goes to the disk; 0: what the host used longest ago does.
    host_keeps: int


def machines() -> list[Machine]:
    """All presets, in their own order."""
    known = []
    native = ffi.new("deepum_machine *")
    for index in range(int(lib.deepum_machine_count())):
        if lib.deepum_machine_get(index, native) != 0:
            break
        values = {name: getattr(native, name) for name in Machine.__dataclass_fields__}
        known.append(
            Machine(
                **{
                    name: ffi.string(value).decode() if isinstance(value, ffi.CData) else value
                    for name, value in values.items()
                }
            )
        )
    return known


# What a file may change, and the figures' C types: all numbers of `deepum_machine`.
_FIGURES = {
    name: field.type.cname
    for name, field in ffi.typeof("deepum_machine").fields
    if field.type.kind == "primitive"
}
# A file may have them, as `deepum machines --json` prints them; nothing depends on them.
_TEXTS = ("name", "description", "gpu_name")


@dataclass(frozen=True)
class Named:
    """A machine as it was named: a preset, and the figures in which it differs."""

    preset: str
    figures: Mapping[str, float]

    @property
    def text(self) -> str:
        """The figures for the simulated driver (native/um_model/figures.hpp)."""
        return ",".join(f"{name}={value!r}" for name, value in self.figures.items())

    def native(self) -> Any:
        """As `deepum_machine`."""
        made = ffi.new("deepum_machine *")
        lib.deepum_machine_find(self.preset.encode(), made)
        for name, value in self.figures.items():
            setattr(made, name, value)
        return made


def is_file(name: str) -> bool:
    """Whether a machine's name is that of a file: FILE.json."""
    return name.endswith(".json")


def named(name: str) -> Named:
    """The machine of that name: a preset's, or a file, an object with the preset that it is `like`
    and figures of its own by the names of `deepum_machine` (native/um_model/um_model.h). Raises
    ValueError for an unknown name, UsageError for a file that cannot be used.
    """
    if not is_file(name):
        if lib.deepum_machine_find(name.encode(), ffi.new("deepum_machine *")) != 0:
            raise ValueError(f"no machine is called {name}")
        return Named(name, {})
    try:
        content = json.loads(Path(name).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"machine {name}: {error.strerror}; name a file that can be read, or see `deepum "
            f"machines`"
        ) from None
    except (ValueError, RecursionError):
        raise UsageError(f"machine {name}: is no JSON; see docs/simulate.md, Machines") from None
    return of_figures(name, content)


def of_figures(name: str, content: object) -> Named:
    """A file's content. Raises UsageError."""
    if not isinstance(content, dict):
        raise UsageError(f"machine {name}: is no JSON object; see docs/simulate.md, Machines")
    like = content.get("like")
    if (
        not isinstance(like, str)
        or lib.deepum_machine_find(like.encode(), ffi.new("deepum_machine *")) != 0
    ):
        raise UsageError(
            f'machine {name}: names no preset to be like; give it "like": "v100-16gb" or '
            f"another of `deepum machines`"
        )
    figures = {
        figure: _number(name, figure, value)
        for figure, value in content.items()
        if figure != "like" and figure not in _TEXTS
    }
    made = Named(like, figures)
    try:
        model = lib.deepum_model_create_with(made.native(), ffi.NULL)
    except OverflowError:
        model = ffi.NULL
    if model == ffi.NULL:
        raise UsageError(
            f"machine {name}: no machine can have these figures; rates and counts have to be "
            f"above 0 and in range"
        )
    lib.deepum_model_destroy(model)
    return made


def _number(name: str, figure: str, value: object) -> float:
    """A figure's value. Raises UsageError."""
    if figure not in _FIGURES:
        raise UsageError(
            f"machine {name}: '{figure}' is no figure of a machine; see `deepum machines "
            f"--json` for their names"
        )
    whole = _FIGURES[figure] != "double"
    if (
        isinstance(value, bool)
        or not isinstance(value, int if whole else (int, float))
        or not 0 <= value < 1e18
    ):
        kind = "whole number" if whole else "number"
        raise UsageError(
            f"machine {name}: {figure}: '{value}' is no {kind} that it can be; see "
            f"docs/simulate.md, Machines"
        )
    return int(value) if whole else float(value)
