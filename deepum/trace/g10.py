"""Reads workloads in the form of G10's simulator (MICRO'23): one training iteration as tensors and
kernels with measured times.

A folder holds `tensors.csv` (tensor_id, size_bytes, is_global) and `kernels.csv` (kernel_id, name,
duration_us, reads, writes, workspace_bytes; ids separated by semicolons). Global tensors live
across iterations. Any other is alive from the first kernel that uses it to the last that reads it,
both included; one that is never read is alive during its first kernel only. Its first touch has
nothing to fetch, even if it is a read.

What is known of the future in these files goes nowhere but into the program that they are turned
into: tensors become blocks of PyTorch's caching allocator, handed out before their first kernel is
launched and taken back after their last; kernels become launches whose identity is their name and
the sizes they work on, as a real one's is its name and its grid.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deepum.trace.allocator import Block
from deepum.trace.program import Program, distinct, hashed
from deepum.trace.trace import Trace
from deepum.trace.work import READ, WRITE, Access

_INITIAL_NS = 2e3  # a kernel that fills a global tensor before the first iteration


@dataclass(frozen=True)
class Tensor:
    """Bytes, and whether it lives across iterations."""

    bytes: int
    is_global: bool


@dataclass(frozen=True)
class Kernel:
    """`us`: microseconds with all of its memory there. Tensors by id."""

    name: str
    us: float
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    workspace_bytes: int

    @property
    def tensors(self) -> tuple[int, ...]:
        """Each once, those read first."""
        return tuple(dict.fromkeys((*self.reads, *self.writes)))


@dataclass(frozen=True)
class Iteration:
    """One iteration, and when its tensors are born and die (kernels, counted from 0)."""

    name: str
    tensors: dict[int, Tensor]
    kernels: tuple[Kernel, ...]
    births: dict[int, int]
    deaths: dict[int, int]  # of those that are not global

    @property
    def compute_us(self) -> float:
        """Without any wait."""
        return sum(kernel.us for kernel in self.kernels)

    def alive(self, kernel: int) -> list[int]:
        """The tensors that kernel touches and that are alive then."""
        return [t for t in self.kernels[kernel].tensors if self.deaths.get(t, kernel) >= kernel]


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames is None or not set(columns) <= set(reader.fieldnames):
            raise ValueError(f"{path.name}: its columns are not {', '.join(columns)}")
        for row in reader:
            if any(row[column] is None for column in columns):
                raise ValueError(f"{path.name}: line {reader.line_num} is cut off")
            yield row


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(";") if part)


def is_workload(folder: Path) -> bool:
    """Whether the folder has both files."""
    return (folder / "kernels.csv").is_file() and (folder / "tensors.csv").is_file()


def read(folder: Path) -> Iteration:
    """The iteration of a folder. Raises OSError, and ValueError with the cause when the files are
    not what they should be.
    """
    try:
        tensors = {
            int(row["tensor_id"]): Tensor(int(row["size_bytes"]), row["is_global"] == "1")
            for row in _rows(folder / "tensors.csv", ("tensor_id", "size_bytes", "is_global"))
        }
        kernels = tuple(
            Kernel(
                row["name"],
                float(row["duration_us"]),
                _ids(row["reads"]),
                _ids(row["writes"]),
                int(row["workspace_bytes"]),
            )
            for row in _rows(
                folder / "kernels.csv",
                ("name", "duration_us", "reads", "writes", "workspace_bytes"),
            )
        )
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(str(error)) from None
    births: dict[int, int] = {}
    last_read: dict[int, int] = {}
    for number, kernel in enumerate(kernels):
        if not 0 <= kernel.us < 1e12 or kernel.workspace_bytes < 0:
            raise ValueError(
                f"kernels.csv: kernel {number} takes {kernel.us} us and "
                f"{kernel.workspace_bytes} bytes of workspace"
            )
        for tensor in kernel.tensors:
            if tensor not in tensors or tensors[tensor].bytes <= 0:
                raise ValueError(
                    f"kernels.csv: kernel {number} names tensor {tensor}, which tensors.csv "
                    f"does not have"
                )
            births.setdefault(tensor, number)
        last_read |= dict.fromkeys(kernel.reads, number)
    if not kernels:
        raise ValueError("kernels.csv: has no kernels")
    deaths = {t: last_read.get(t, births[t]) for t in births if not tensors[t].is_global}
    return Iteration(folder.name, tensors, kernels, births, deaths)


def names(iteration: Iteration) -> dict[int, str]:
    """Kernels' names by the execution hashes that `trace` gives them."""
    return {_identity(kernel, iteration.tensors): kernel.name for kernel in iteration.kernels}


def _identity(kernel: Kernel, tensors: dict[int, Tensor]) -> int:
    sizes = [str(tensors[t].bytes) for t in (*kernel.reads, *kernel.writes)]
    text = f"{kernel.name} {len(kernel.reads)} {' '.join(sizes)} {kernel.workspace_bytes}"
    return hashed(text)


class _Program(Program):
    """The iteration as a program."""

    def __init__(self, iteration: Iteration) -> None:
        super().__init__()
        self._iteration = iteration
        self._blocks: dict[int, Block] = {}

    def initialise(self) -> None:
        """Global tensors get their first values."""
        for tensor, entry in self._iteration.tensors.items():
            if entry.is_global:
                block = self._blocks[tensor] = self.allocate(entry.bytes)
                access = Access(block.segment.slot, WRITE, block.offset, entry.bytes)
                self.writer.launch(0x1A17 + entry.bytes, [block.range], [access], _INITIAL_NS)

    def step(self, synchronise: bool) -> None:
        """One iteration."""
        iteration = self._iteration
        for number, kernel in enumerate(iteration.kernels):
            alive = iteration.alive(number)
            for tensor in alive:
                if tensor not in self._blocks:
                    self._blocks[tensor] = self.allocate(iteration.tensors[tensor].bytes)
            workspace = self.allocate(kernel.workspace_bytes) if kernel.workspace_bytes else None
            touched, accesses = [], []
            for tensor in alive:
                block = self._blocks[tensor]
                first = (
                    not iteration.tensors[tensor].is_global and iteration.births[tensor] == number
                )
                read, written = (
                    tensor in kernel.reads and not first,
                    tensor in kernel.writes or first,
                )
                flags = (READ if read else 0) | (WRITE if written else 0)
                touched.append(block.range)
                accesses.append(
                    Access(block.segment.slot, flags, block.offset, iteration.tensors[tensor].bytes)
                )
            if workspace is not None:
                touched.append(workspace.range)
                accesses.append(
                    Access(workspace.segment.slot, WRITE, workspace.offset, kernel.workspace_bytes)
                )
            last = number == len(iteration.kernels) - 1
            self.writer.launch(
                _identity(kernel, iteration.tensors),
                distinct(touched),
                accesses,
                kernel.us * 1e3,
                ends_step=last,
            )
            if workspace is not None:
                self.free(workspace)
            for tensor in alive:
                if iteration.deaths.get(tensor) == number:
                    self.free(self._blocks.pop(tensor))
        if synchronise:
            self.writer.synchronise()


def trace(iteration: Iteration, steps: int, synchronise: bool = False) -> Trace:
    """A program that makes `steps` iterations. `synchronise`: it waits for the GPU at the end of
    each.
    """
    program = _Program(iteration)
    program.initialise()
    for _ in range(steps):
        program.step(synchronise)
    return program.trace(iteration.name)
