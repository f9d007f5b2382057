"""How PyTorch's foreach kernels cut lists of tensors into launches:
ATen/native/cuda/MultiTensorApply.cuh, PyTorch 2.12 on, CUDA 13.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_CHUNK = 65536  # elements that a thread block works on
_BLOCKS = 2240  # depth_to_max_blocks
_TENSORS = (770, 448, 336, 252, 210)  # depth_to_max_tensors, by depth - 1
_TENSORS_WITH_SCALARS = (672, 448, 336, 252, 210)  # depth_to_max_tensors_scalarlist

Part = tuple[int, int, int]  # number of the tensor, first element, elements


def parts(elements: Sequence[int], depth: int, scalars: bool) -> Iterator[list[Part]]:
    """For each launch what it works on. `elements`: of each tensor of a list; `depth`: lists;
    `scalars`: a number for each tensor.
    """
    most = (_TENSORS_WITH_SCALARS if scalars else _TENSORS)[min(depth, len(_TENSORS)) - 1]
    begun: list[Part] = []
    blocks = 0
    for number, size in enumerate(elements):
        first = 0
        while first < size:
            room = _BLOCKS - blocks
            taken = min(size - first, room * _CHUNK)
            begun.append((number, first, taken))
            blocks += -(-taken // _CHUNK)
            first += taken
            # The list of tensors is full only once the last chunk of its last tensor is in.
            if blocks == _BLOCKS or (len(begun) == most and first == size):
                yield begun
                begun, blocks = [], 0
    if begun:
        yield begun
