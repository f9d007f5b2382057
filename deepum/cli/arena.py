"""`deepum arena`: buffers with known lifetimes in one arena."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from deepum.arena import Buffer, Problem
from deepum.arena.allocator import ALLOCATORS, BY_NAME, Allocation
from deepum.arena.buffers import read, table
from deepum.cli.output import aligned, write, write_json
from deepum.cli.workload_options import time_limit_option
from deepum.errors import EXIT_FINDINGS, UsageError
from deepum.planners.planner import Limits
from deepum.simulate.lifetimes import lifetimes
from deepum.simulate.preset import preset_of
from deepum.simulate.workload import load
from deepum.sizes import parse_size, size


@dataclass(frozen=True)
class _Found:
    """An allocator's, and seconds from its beginning on."""

    allocator: str
    allocation: Allocation
    seconds: float


@dataclass(frozen=True)
class _Input:
    name: str
    buffers: Sequence[Buffer]
    reserved_bytes: int | None = None  # by PyTorch's caching allocator


def _input(name: str, machine: str | None) -> _Input:
    """Raises UsageError."""
    if name.lower().endswith(".csv"):
        if machine is not None:
            raise UsageError("--machine: is for workloads; leave it out for a CSV file")
        return _Input(Path(name).name, read(name))
    if machine is not None:
        preset_of(machine)  # said before the work
    loaded = load(name, None, False, machine)
    found = lifetimes(loaded, machine or loaded.machine)
    return _Input(loaded.name, found.buffers, found.reserved_bytes)


def _capacity(text: str | None) -> int | None:
    """Raises UsageError."""
    if text is None:
        return None
    try:
        return parse_size(text)
    except ValueError as error:
        raise UsageError(f"--capacity: {error}") from None


def _incumbents(
    problem: Problem, allocator: str, limits: Limits, capacity: int | None
) -> list[_Found]:
    began = time.monotonic()
    return [
        _Found(allocator, one, time.monotonic() - began)
        for one in BY_NAME[allocator]().incumbents(problem, limits, capacity)
    ]


def _lines(found: Sequence[_Found], capacity: int | None) -> list[str]:
    """For people: a line each."""
    rows = [("", "arena", "bytes", "bound", "gap", "found in", "")]
    for one in found:
        got = one.allocation
        fits = "" if capacity is None else "fits" if got.bytes <= capacity else "does not fit"
        rows.append(
            (
                one.allocator,
                size(got.bytes),
                str(got.bytes),
                str(got.bound_bytes),
                f"{got.gap:.2%}",
                f"{one.seconds:.2f} s",
                fits,
            )
        )
    return [line.rstrip() for line in aligned(rows)]


def _head(given: _Input, problem: Problem) -> str:
    reserved = given.reserved_bytes
    return (
        f"{given.name}: {len(problem)} buffers, at most {problem.overlap} at once, "
        f"{size(problem.load)} ({problem.load} bytes)"
        + (f"; the caching allocator has {size(reserved)} ({reserved} bytes)" if reserved else "")
    )


@click.command()
@click.argument("input_", metavar="FILE.csv|WORKLOAD")
@click.option(
    "--allocator",
    type=click.Choice([allocator.name for allocator in ALLOCATORS]),
    default="search",
    show_default=True,
    help="How offsets are found.",
)
@click.option("--compare", is_flag=True, help="The best of all allocators.")
@click.option(
    "--capacity",
    metavar="SIZE",
    help="Nothing lower is looked for; exit code 1 where nothing as low is found.",
)
@click.option("--machine", metavar="NAME", help="The machine; the workload's own by default.")
@time_limit_option(10.0, "each allocator")
@click.option("--seed", type=click.IntRange(0, (1 << 64) - 1), default=1, show_default=True)
@click.option("-o", "--output", metavar="FILE.csv", help="The buffers with offsets, to this file.")
@click.option("--json", "json_file", metavar="FILE", help="The same figures, to this file.")
def command(
    input_: str,
    allocator: str,
    compare: bool,
    capacity: str | None,
    machine: str | None,
    time_limit: float,
    seed: int,
    output: str | None,
    json_file: str | None,
) -> None:
    """Place buffers with known lifetimes in one arena, as low as can be.

    FILE.csv has the header id,lower,upper,size (and alignment): bytes that live in [lower, upper).
    Of a WORKLOAD, named or recorded, the buffers are what a steady iteration takes of PyTorch's
    caching allocator.
    """
    most = _capacity(capacity)
    given = _input(input_, machine)
    try:
        problem = Problem(given.buffers)
    except ValueError as error:
        raise UsageError(f"arena {given.name}: {error}") from None
    click.echo(_head(given, problem))
    found: list[_Found] = []
    for name in BY_NAME if compare else [allocator]:
        found += _incumbents(problem, name, Limits(time_limit, seed), most)[-1 if compare else 0 :]
    click.echo("\n".join(_lines(found, most)))
    best = min((one.allocation for one in found), key=lambda one: one.bytes)
    if output is not None:
        write(output, table(problem.buffers, best.offsets).encode())
    if json_file is not None:
        write_json(json_file, _document(given, problem, most, found))
    if most is not None and best.bytes > most:
        click.get_current_context().exit(EXIT_FINDINGS)


def _document(
    given: _Input, problem: Problem, capacity: int | None, found: Sequence[_Found]
) -> dict[str, Any]:
    return {
        "input": given.name,
        "buffers": len(problem),
        "overlap": problem.overlap,
        "load_bytes": problem.load,
        "reserved_bytes": given.reserved_bytes,
        "capacity_bytes": capacity,
        "found": [
            {
                "allocator": one.allocator,
                "bytes": one.allocation.bytes,
                "bound_bytes": one.allocation.bound_bytes,
                "gap": one.allocation.gap,
                "seconds": one.seconds,
            }
            for one in found
        ],
    }
