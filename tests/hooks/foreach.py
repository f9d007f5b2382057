"""PyTorch's foreach launches, on top of client.py: the struct of MultiTensorApply.cuh, laid out by
ctypes as a compiler would.
"""

from __future__ import annotations

import ctypes as c
from typing import Any

from client import alloc, function, launch

# By depth - 1: tensors, tensors with scalars, with c10::complex<double>, blocks; and the type that
# names a tensor.
CAPACITIES: dict[str, tuple[list[int], list[int], list[int], list[int], Any]] = {
    "4 KiB": (
        [110, 64, 48, 36, 30],
        [96, 64, 48, 36, 30],
        [72, 60, 48, 36, 30],
        [320] * 5,
        c.c_uint8,
    ),
    "32 KiB": (
        [770, 448, 336, 252, 210],
        [672, 448, 336, 252, 210],
        [504, 420, 336, 252, 210],
        [2240] * 5,
        c.c_uint16,
    ),
    "32 KiB of bytes": (
        [256] * 5,
        [256] * 5,
        [194, 182, 170, 158, 0],
        [5272, 4863, 4453, 4044, 3634],
        c.c_uint8,
    ),
}
SCALARS: dict[str, Any] = {
    "h": c.c_uint8,
    "f": c.c_float,
    "d": c.c_double,
    "N3c107complexIfEE": c.c_uint64,
    "N3c107complexIdEE": c.c_double * 2,
}
MiB = 1 << 20


class Foreach:
    """A kernel and its struct, in which every slot is stale: it points at an allocation that no
    launch uses.
    """

    def __init__(
        self,
        kind: str,
        depth: int,
        capacity: str,
        stale: int,
        scalar: str = "f",
        padding: int = 0,
        after: str = "",
    ) -> None:
        plain, with_scalars, with_complex, blocks, index = CAPACITIES[capacity]
        listed = {"scalars": with_complex if "complexId" in scalar else with_scalars}.get(
            kind, plain
        )
        self.room, self.blocks = listed[depth - 1], blocks[depth - 1]
        last = [] if kind == "scalars" else [("start", c.c_int)]
        middle = {
            "plain": [],
            "scalars": [("scalars", SCALARS[scalar] * self.room)],
            "fused": [("steps", c.c_uint64 * self.room)],
        }[kind]
        fields: list[Any] = [
            ("addresses", c.c_uint64 * self.room * depth),
            ("sizes", c.c_int64 * self.room),
            *middle,
        ]
        fields += [
            ("block_to_tensor", index * self.blocks),
            ("block_to_chunk", c.c_int * self.blocks),
            *last,
        ]
        if "complexId" in scalar:  # aligned to 16 bytes, and so is its struct
            chunks: Any = type("Unpadded", (c.Structure,), {"_fields_": fields}).block_to_chunk  # type: ignore[attr-defined]
            padding += -(chunks.offset + chunks.size) % 16
        fields += [("padding", c.c_char * padding)] if padding else []
        self.values: Any = type("Metadata", (c.Structure,), {"_fields_": fields})()
        self.depth = depth
        for row in self.values.addresses:
            row[:] = [stale] * self.room
        if kind == "fused":
            self.values.steps[:] = [stale] * self.room
        self.values.block_to_tensor[:] = [self.room - 1] * self.blocks
        struct = {
            "plain": "18TensorListMetadataI",
            "scalars": f"28TensorListScalarListMetadataI{scalar}",
            "fused": "32FusedOptimizerTensorListMetadataI",
        }[kind]
        bit = "Lb1E" if capacity == "32 KiB of bytes" else ""
        self.name = f"_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_{struct}Li{depth}E{bit}EENS1_7FunctorIfEEJEEEvT_T0_DpT1_"
        self.sizes = f"{c.sizeof(self.values)}{after}"

    def fill(
        self, tensors: list[list[int]], blocks_each: list[int], steps: list[int] | None = None
    ) -> int:
        """Puts these addresses, by list, and the blocks of each tensor; returns the grid."""
        for row, addresses in zip(self.values.addresses, tensors, strict=True):
            row[: len(addresses)] = addresses
        if steps:
            self.values.steps[: len(steps)] = steps
        order = [tensor for tensor, blocks in enumerate(blocks_each) for _ in range(blocks)]
        self.values.block_to_tensor[: len(order)] = order
        return len(order)

    def launch(self, *after: Any, grid: int, name: str | None = None, stream: Any = None) -> None:
        launch(
            function(f"{name or self.name}:{self.sizes}"),
            self.values,
            *after,
            grid=grid,
            stream=stream,
        )


def allocations(count: int) -> list[int]:
    """Each of one UM block, in slots that count on."""
    return [alloc(2 * MiB) for _ in range(count)]
