"""benchmarks/ablation.py as a module whose runs are written down, not made."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
Call = Callable[..., None]


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder, from which its scripts import each other."""
    folder = ROOT / "benchmarks"
    ours = {path.stem for path in folder.glob("*.py")}
    before = {name: sys.modules.pop(name) for name in ours if name in sys.modules}
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in ours:
        sys.modules.pop(name, None)
    sys.modules.update(before)


class Made:
    """The runs asked for, in order, and what becomes of them."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, list[str], list[str]]] = []
        self.fails: dict[str, BaseException] = {}  # by the end of the name
        self.still = False  # nothing moves

    @property
    def rows(self) -> list[str]:
        return [name.rsplit(": ", 1)[1] for name, _, _ in self.runs]


@pytest.fixture
def ablation(benchmarks: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    import ablation
    from main_job import Run, Step

    made = Made()

    def run(
        name: str, options: list[str], script: list[str], tell: Callable[[str], None], errors: Path
    ) -> Any:
        made.runs.append((name, options, script))
        errors.write_text("RuntimeError: CUDA error\n")
        for end, error in made.fails.items():
            if name.endswith(end):
                raise error
        moved = 0 if made.still else 2**30
        counts = {
            "faults": 10,
            "bytes_h2d": moved,
            "bytes_d2h": 2 * moved,
            "fault_batches": 1,
            "kernels": 5,
        }
        ms = 100.0 if "on-demand" in name or made.still else 40.0 if "unlimited" in name else 50.0
        steps = int(script[script.index("--steps") + 1])
        for number in range(steps):
            tell(f"[{name}] step {number + 1}: {ms} ms")
        warm = [Step(7777.0, dict.fromkeys(counts, 10**12))] * (steps - 2)
        return Run(
            name,
            [*warm, *[Step(ms, counts)] * 2],
            2**29 if made.still else 3 * 2**30,
            {"bytes_discarded": 0},
        )

    monkeypatch.setattr(ablation, "run", run)
    monkeypatch.setattr(ablation, "made", made, raising=False)
    assert isinstance(ablation, ModuleType)
    return ablation


@pytest.fixture
def call(ablation: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Call:
    """The script, with these arguments, on the tiny case."""

    def call(what: str, *arguments: object) -> None:
        monkeypatch.setattr(sys, "argv", ["ablation.py", what, "--tiny", *map(str, arguments)])
        ablation.main()

    return call
