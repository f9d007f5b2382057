"""Small workloads in G10's form, and cores that are driven event by event."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

from deepum.trace.g10 import Iteration, read

MIB = 1 << 20
TENSORS = "tensor_id,size_bytes,is_global\n"
KERNELS = "kernel_id,name,duration_us,reads,writes,workspace_bytes\n"

Kernel = tuple[str, float, Sequence[int], Sequence[int], int]


def write(folder: Path, tensors: dict[int, tuple[int, bool]], kernels: Sequence[Kernel]) -> Path:
    """The two files; tensors by id: bytes and whether they are global; kernels: name, us, reads,
    writes, workspace.
    """
    folder.mkdir(exist_ok=True)
    rows = [f"{tensor},{size},{int(is_global)}\n" for tensor, (size, is_global) in tensors.items()]
    (folder / "tensors.csv").write_text(TENSORS + "".join(rows))
    lines = [
        f"{number},{name},{us},{';'.join(map(str, reads))},{';'.join(map(str, writes))},{workspace}\n"
        for number, (name, us, reads, writes, workspace) in enumerate(kernels)
    ]
    (folder / "kernels.csv").write_text(KERNELS + "".join(lines))
    return folder


def training(
    folder: Path,
    layers: int = 12,
    weights_mib: int = 6,
    activations_mib: int = 24,
    us: float = 3000.0,
) -> Iteration:
    """A training step: forward through the layers, back again, then an update; each layer has a
    weight and makes an activation.
    """
    tensors: dict[int, tuple[int, bool]] = {}
    kernels: list[Kernel] = []
    for layer in range(layers):
        tensors[layer] = weights_mib * MIB, True
        tensors[100 + layer] = activations_mib * MIB, False
        tensors[200 + layer] = weights_mib * MIB, False
        before = [99 + layer] if layer else []
        kernels.append(("forward", us, [layer, *before], [100 + layer], 2 * MIB))
    for layer in reversed(range(layers)):
        kernels.append(("backward", 2 * us, [layer, 100 + layer], [200 + layer], 4 * MIB))
    kernels += [("update", us / 4, [layer, 200 + layer], [layer], 0) for layer in range(layers)]
    return read(write(folder, tensors, kernels))


def random_iteration(folder: Path, seed: int) -> Iteration:
    """Kernels on random tensors, some of them global, of up to 12 MiB."""
    random = Random(seed)
    tensors = {
        i: (random.randrange(1, 12 * MIB), random.random() < 0.4)
        for i in range(random.randrange(3, 14))
    }
    kernels: list[Kernel] = []
    for _ in range(random.randrange(3, 30)):
        touched = random.sample(sorted(tensors), random.randrange(1, min(4, len(tensors)) + 1))
        cut = random.randrange(len(touched) + 1)
        both = touched[:1] if random.random() < 0.3 else []
        workspace = random.choice((0, 0, random.randrange(1, 4 * MIB)))
        kernels.append(
            (
                f"k{random.randrange(5)}",
                random.uniform(5, 900),
                touched[:cut],
                sorted({*touched[cut:], *both}),
                workspace,
            )
        )
    return read(write(folder, tensors, kernels))
