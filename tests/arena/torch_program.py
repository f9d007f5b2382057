"""A program of PyTorch's on the simulated GPU, whose copies move data: `python torch_program.py
ALLOCATOR CASE`. What it prints is to be the same under both allocators; what the arena did goes to
standard error.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from typing import Any

from deepum.arena import pytorch as arena

ARENA = sys.argv[1] == "arena"
if ARENA:
    arena.install(seconds=0.2, in_background=False)

import torch  # noqa: E402


def iteration(rng: random.Random, count: int) -> list[tuple[str, int, int]]:
    """(what, which, size or from which): "new" from the host, "copy" of another, "free"."""
    script: list[tuple[str, int, int]] = []
    alive: list[int] = []
    for name in range(count):
        if alive and rng.random() < 0.4:
            script.append(("copy", name, rng.choice(alive)))
        else:
            script.append(("new", name, rng.choice([100, 20_000, 100_000, 300_000])))
        alive.append(name)
        while len(alive) > 2 and rng.random() < 0.45:
            script.append(("free", alive.pop(rng.randrange(len(alive))), 0))
    return script


def run(script: list[tuple[str, int, int]], seed: int, digest: Any) -> None:
    """All that is freed, and all that is left, goes into the digest."""
    tensors: dict[int, Any] = {}
    for number, (what, name, other) in enumerate(script):
        if what == "new":
            values = torch.arange(other, dtype=torch.int32) * (2 * number + 1) + seed
            tensors[name] = values.to("cuda")
        elif what == "copy" and other in tensors:
            tensors[name] = tensors[other].clone()
        elif what == "free" and name in tensors:
            digest.update(tensors.pop(name).cpu().numpy().tobytes())
    for name in sorted(tensors):
        digest.update(tensors[name].cpu().numpy().tobytes())


def random_programs() -> None:
    """Iterations that repeat, then deviate, then repeat."""
    digest = hashlib.sha256()
    rng = random.Random(11)
    for program in range(2):
        script = iteration(rng, 70)
        for step in range(10):
            varied = [
                (what, name, other + 1000 * (what == "new"))
                if step >= 5 and rng.random() < 0.04
                else (what, name, other)
                for what, name, other in script
                if step < 5 or rng.random() > 0.05
            ]
            run(varied, 100 * program + step, digest)
    print(digest.hexdigest())


def training() -> None:
    """Allocated bytes and shapes are the same; so are statistics that scripts print."""
    from deepum.workloads import images

    job = images.resnet("cuda", 4, 64, 1, 1, 1, 1)
    for _ in range(14):
        job.step()
    torch.cuda.synchronize()
    assert torch.cuda.memory_reserved() >= torch.cuda.memory_allocated() > 0
    peak = torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.empty_cache()
    assert torch.cuda.max_memory_allocated() < peak


def recomputing() -> None:
    """Under a budget, what leaves and comes back repeats itself as well."""
    import deepum
    from deepum.workloads import images

    job = images.resnet("cuda", 64, 128, 1, 1, 1, 1)
    job.step()
    torch.cuda.reset_peak_memory_stats()
    job.step()
    with deepum.remat(int(torch.cuda.max_memory_allocated() * 0.8), device="cuda") as remat:
        for _ in range(14):
            job.step()
        assert remat.statistics().recomputed > 0


def shortage() -> None:
    """PyTorch's own error, and the program goes on."""
    kept = torch.zeros(1 << 20, device="cuda")
    try:
        torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError as error:
        print("CUDA out of memory" in str(error))
    torch.cuda.set_per_process_memory_fraction(0.5)
    total = torch.cuda.get_device_properties(0).total_memory
    try:
        torch.empty(total // 2 + (8 << 20), dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        print("limited")
    print(torch.empty(1 << 20, device="cuda").numel(), kept.numel())


def graph() -> None:
    """Is refused by the arena."""
    held = torch.zeros(1 << 20, device="cuda")
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            held.add_(1)
    except RuntimeError as error:
        print(str(error).splitlines()[0])


def late() -> None:
    """Installed behind the first allocation."""
    print(torch.zeros(8, device="cuda").numel())
    try:
        arena.install()
    except Exception as error:
        print(type(error).__name__, error)


def reported() -> None:
    """PyTorch's profiler is told of blocks."""
    with torch.profiler.profile(profile_memory=True) as profile:
        held = torch.zeros(3 << 20, device="cuda")
        del held
    events = [one for one in profile.events() if one.name == "[memory]"]
    print(sorted({abs(one.device_memory_usage) for one in events if one.device_memory_usage}))


if __name__ == "__main__":
    cases = (random_programs, training, recomputing, shortage, graph, late, reported)
    {one.__name__: one for one in cases}[sys.argv[2]]()
    if ARENA:
        print(json.dumps(vars(arena.statistics())), file=sys.stderr)
