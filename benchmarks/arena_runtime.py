"""What a planned arena holds of the driver at run time, beside PyTorch's caching allocator:
trainings on the simulated GPU by the CUDA build of PyTorch (docs/arena.md, At run time).

    python benchmarks/arena_runtime.py                      # all programs
    python benchmarks/arena_runtime.py --programs resnet50,gpt2-small
    python benchmarks/arena_runtime.py --page               # docs/arena.md of what is kept

A program's steps are taken under either allocator in a process of its own. `live` is the most that
is handed out at one time, in a late step: nothing that follows the program's order holds less.
Results are kept in FILE (--json) as each program is done.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from kept import Kept, circumstances, results_in, save
from simulated_gpu import measured_apart

from deepum.arena import pytorch as arena
from deepum.errors import DeepumError
from deepum.workloads.registry import Job

MACHINE, STEPS, LATE = "h100-80gb", 24, 8
ALLOCATORS = ("caching", "arena")
_PERIOD = 10  # steps from one that differs to the next


def _named(text: str) -> Callable[[], Job]:
    def build() -> Job:
        from deepum.workloads import parse

        return parse(text).build("cuda")

    return build


def _t5(batch: Callable[[int], int], evaluates: bool = False) -> Callable[[], Job]:
    """T5 1.1 Base with batches by the step's number; every tenth one is followed by three without
    gradients.
    """

    class Steps:
        def __init__(self) -> None:
            from deepum.workloads import t5

            self._number = 0
            self._training = t5.training(
                "cuda", lambda: batch(self._number), 512, 128, 12, 768, 12, 2048
            )

        def step(self) -> None:
            self._number += 1
            self._training.step()
            for _ in range(3 if evaluates and self._number % _PERIOD == 0 else 0):
                self._training.evaluate()

    return Steps


def _within(text: str, budget: str) -> Callable[[], Job]:
    """A named workload whose tensors are kept below a budget by `deepum.remat` throughout."""

    def build() -> Job:
        import deepum

        deepum.remat(budget, device="cuda").__enter__()
        return _named(text)()

    return build


@dataclass(frozen=True)
class Program:
    """build: makes it on the GPU. steps: how many are taken."""

    build: Callable[[], Job]
    steps: int = STEPS


PROGRAMS: Mapping[str, Program] = MappingProxyType(
    {
        "resnet50": Program(
            _named("resnet152:batch=96,image=224,stage1=3,stage2=4,stage3=6,stage4=3")
        ),
        "resnet50-remat": Program(
            _within("resnet152:batch=192,image=224,stage1=3,stage2=4,stage3=6,stage4=3", "8GiB")
        ),
        "gpt2-small-remat": Program(_within("gpt2-small:batch=8", "8GiB")),
        "resnet152": Program(_named("resnet152:batch=64")),
        "mobilenet": Program(_named("mobilenet:batch=128")),
        "bert-base": Program(_named("bert-base:batch=24")),
        "gpt2-small": Program(_named("gpt2-small:batch=8")),
        "unet": Program(_named("unet")),
        "t5-base": Program(_t5(lambda number: 16)),
        "t5-evaluation": Program(_t5(lambda number: 16, evaluates=True)),
        "t5-last-batch": Program(_t5(lambda number: 6 if number % _PERIOD == 0 else 16)),
        "t5-3-sizes": Program(_t5(lambda number: (8, 16, 12)[number * 7 % 11 % 3]), steps=60),
        "lstm": Program(_named("lstm:batch=96"), steps=60),
    }
)


def steps_of(program: Program, allocator: str) -> dict[str, Any]:
    """By step: the processor's seconds, and bytes; the arena's statistics besides. Is run in a
    process of its own, on the simulated GPU.
    """
    if allocator == "arena":
        arena.install(in_background=False)
    import torch

    torch.manual_seed(1)
    job = program.build()
    cuda = torch.cuda
    found: list[dict[str, float]] = []
    for _ in range(program.steps):
        began = time.process_time()
        job.step()
        cuda.synchronize()
        found.append(
            {
                "seconds": time.process_time() - began,
                "live_bytes": cuda.max_memory_allocated(),
                "held_bytes": cuda.memory_reserved(),
                "peak_held_bytes": cuda.max_memory_reserved(),
            }
        )
        cuda.reset_peak_memory_stats()
    counters = vars(arena.statistics()) if allocator == "arena" else {}
    return {"steps": found, "arena": counters}


def summary(record: dict[str, Any]) -> dict[str, Any]:
    """Bytes that live at most; that are held at most, in late steps and in all; the processor's
    seconds of a late step (median).
    """
    late = record["steps"][-LATE:]
    return {
        "live_bytes": max(step["live_bytes"] for step in record["steps"]),
        "held_bytes": max(step["peak_held_bytes"] for step in late),
        "most_held_bytes": max(step["peak_held_bytes"] for step in record["steps"]),
        "seconds": statistics.median(step["seconds"] for step in late),
        "arena": record["arena"],
    }


def measure(name: str, allocator: str) -> dict[str, Any]:
    """Of a program under an allocator. Raises DeepumError."""
    arguments = ("--run", name, "--allocator", allocator)
    return summary(measured_apart(__file__, arguments, MACHINE, f"{name}, {allocator}"))


def _mib(size: float) -> str:
    return f"{size / (1 << 20):.0f}"


def table(kept: dict[str, Any]) -> str:
    """Of all programs, in Markdown."""
    columns = ["program", "live", "caching allocator", "arena", "warm-up included", "of it"]
    columns += ["planned", "driver calls", "ms of the host, caching", "arena"]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for name, one in kept["programs"].items():
        caching, ours = one["caching"], one["arena"]
        counters = ours["arena"]
        cells = [name, _mib(ours["live_bytes"])]
        cells += [_mib(caching["most_held_bytes"]), _mib(ours["held_bytes"])]
        cells.append(_mib(ours["most_held_bytes"]))
        cells.append(f"{ours['held_bytes'] / caching['most_held_bytes']:.3f}")
        cells.append(f"{100 * counters['planned'] / counters['requests']:.0f} %")
        cells.append(str(counters["driver_calls"]))
        cells += [f"{1000 * each['seconds']:.0f}" for each in (caching, ours)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


KEPT = Kept("arena_runtime", "docs/arena.md", table, "arena-runtime.json")


def main() -> int:
    parser = KEPT.parser(__doc__)
    parser.add_argument("--programs", help="some of the programs, with commas between them")
    parser.add_argument("--run", metavar="PROGRAM", help="here, on the GPU; for the benchmark")
    parser.add_argument("--allocator", choices=ALLOCATORS, default="arena", help="of --run")
    given = parser.parse_args()
    if given.page:
        KEPT.write_page(given.json)
        return 0
    if given.run:
        save(given.json, steps_of(PROGRAMS[given.run], given.allocator))
        return 0
    chosen = given.programs.split(",") if given.programs else list(PROGRAMS)
    chosen = [name.strip() for name in chosen]
    kept = results_in(given.json, "programs")
    for name in chosen:
        try:
            found = {allocator: measure(name, allocator) for allocator in ALLOCATORS}
        except DeepumError as error:
            print(error.line, file=sys.stderr)
            continue
        kept |= circumstances(machine=MACHINE, late_steps=LATE)
        kept["programs"][name] = found
        save(given.json, kept)
        print(table({"programs": {name: found}}).splitlines()[-1], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
