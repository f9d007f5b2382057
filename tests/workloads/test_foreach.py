"""Foreach launches, beside PyTorch's own loop written out block by block."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from deepum.capture.foreach import Part, parts

CHUNK, BLOCKS = 65536, 2240
TENSORS = {1: 770, 2: 448, 3: 336, 4: 252, 5: 210}


def as_pytorch(elements: list[int], depth: int, scalars: bool) -> list[list[Part]]:
    """MultiTensorApply.cuh, multi_tensor_apply: a launch when the tensors or the blocks are as many
    as fit, and at the end.
    """
    most = 672 if scalars and depth == 1 else TENSORS[depth]
    done: list[list[tuple[int, int]]] = []
    blocks: list[tuple[int, int]] = []
    tensors = 0
    sizes = [(number, size) for number, size in enumerate(elements) if size]
    for number, size in sizes:
        tensors += 1
        chunks = -(-size // CHUNK)
        for chunk in range(chunks):
            blocks.append((number, chunk))
            tensors_full = tensors == most and chunk == chunks - 1
            if tensors_full or len(blocks) == BLOCKS:
                done.append(blocks)
                blocks = []
                tensors = 0 if chunk == chunks - 1 else 1
    if blocks:
        done.append(blocks)
    return [_merged(blocks, elements) for blocks in done]


def _merged(blocks: list[tuple[int, int]], elements: list[int]) -> list[Part]:
    merged: list[Part] = []
    for number, chunk in blocks:
        size = min(CHUNK, elements[number] - chunk * CHUNK)
        if merged and merged[-1][0] == number:
            merged[-1] = (number, merged[-1][1], merged[-1][2] + size)
        else:
            merged.append((number, chunk * CHUNK, size))
    return merged


sizes = some.lists(
    some.one_of(some.integers(0, 9), some.integers(1, 200 * CHUNK), some.just(3000 * CHUNK)),
    max_size=40,
)


@given(sizes, some.integers(1, 5), some.booleans())
def test_launches_are_pytorchs(elements: list[int], depth: int, scalars: bool) -> None:
    assert list(parts(elements, depth, scalars)) == as_pytorch(elements, depth, scalars)


@given(some.integers(1, 5), some.booleans(), some.integers(0, 2000), some.integers(0, 3 * CHUNK))
def test_many_small_tensors_are_cut_by_their_number(
    depth: int, scalars: bool, count: int, size: int
) -> None:
    elements = [size] * count
    assert list(parts(elements, depth, scalars)) == as_pytorch(elements, depth, scalars)
