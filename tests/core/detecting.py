"""Programs for the detector of iterations, and what it says of them, launch by launch."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from reference.iteration.iteration_detector import IterationDetector

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "native" / "core"

WAIT, FORGET = "wait", "forget"
Happening = int | str | tuple[int, int]
"""A launch by its hash, or by that and its hash with names; WAIT; FORGET."""


class State(NamedTuple):
    """After a launch. `period` 0: no pattern is held."""

    period: int
    position: int
    begins: bool
    as_expected: bool
    iterations: int


def compiled(folder: Path) -> Path:
    """The program that says what the native detector says."""
    compiler = shutil.which("g++")
    assert compiler, "g++: apt-get install g++"
    program = folder / "states"
    sources = sorted((CORE / "iteration").glob("*.cpp"))
    flags = ("-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-D_GLIBCXX_ASSERTIONS")
    main = Path(__file__).resolve().parent / "detector" / "states.cpp"
    command = [compiler, *flags, "-fsanitize=undefined", f"-I{CORE}"]
    subprocess.run([*command, main, *sources, "-o", program], check=True)
    return program


def _pair(launch: int | tuple[int, int]) -> tuple[int, int]:
    return launch if isinstance(launch, tuple) else (launch, launch)


def native_states(program: Path, happenings: Sequence[Happening]) -> list[State]:
    """By the native detector."""
    lines = [
        each if isinstance(each, str) else " ".join(map(str, _pair(each))) for each in happenings
    ]
    done = subprocess.run(
        [program], input="\n".join(lines), check=True, capture_output=True, text=True
    )
    assert not done.stderr
    return [
        State(int(a), int(b), c == "1", d == "1", int(e))
        for a, b, c, d, e in map(str.split, done.stdout.splitlines())
    ]


def expected(happenings: Iterable[Happening]) -> list[State]:
    """By the plain-Python one."""
    detector = IterationDetector()
    states = []
    for each in happenings:
        if each == WAIT:
            detector.waited()
        elif each == FORGET:
            detector.forget()
        else:
            assert not isinstance(each, str)
            detector.launched(*_pair(each))
            held = detector.held
            states.append(
                State(
                    detector.period,
                    held.latest if held else 0,
                    bool(held and held.begins),
                    bool(held and held.as_expected),
                    detector.iterations,
                )
            )
    return states


def changes(states: Sequence[State]) -> list[tuple[int, int]]:
    """Launches after which another period was known, counted from 1, and the period."""
    found, before = [], 0
    for number, state in enumerate(states, 1):
        if state.period != before:
            found.append((number, state.period))
        before = state.period
    return found


def kernels(first: int, count: int) -> list[Happening]:
    """Launches that are all different."""
    return list(range(first, first + count))


def layers(count: int, launches: int, first: int, named: bool = False) -> list[Happening]:
    """The same launches over and over. Named: on memory of their own each time."""
    return [
        (first + i, 1_000_000 * (layer + 1) + first + i) if named else first + i
        for layer in range(count)
        for i in range(launches)
    ]
