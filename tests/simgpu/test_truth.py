"""What launches of known kernels touch in truth, against counts worked out by hand from the
kernels' sources.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Sequence
from pathlib import Path
from random import Random

import probe as p
import pytest

from deepum.capture.runs import strided

A, B, C, D = 0x2000_0000_0000, 0x2000_1000_0000, 0x2000_2000_0000, 0x2000_3000_0000
ROOM = [(A, 256 << 20), (B, 256 << 20), (C, 256 << 20), (D, 256 << 20)]

ADD = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_"
FILL = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_"
ADD_HALF = ADD.replace("IfE", "IN3c104HalfEE")
COPY = (
    "_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastIZZZNS0_23direct_copy_kernel_cudaERNS_18TensorIteratorBaseEENKUlvE1_"
    "clEvENKUlvE5_clEvEUlfE_EEvS4_RKT_EUliE_EEviT1_"
)
TO_BFLOAT16 = (
    "_ZN2at6native29vectorized_elementwise_kernelILi4EZNS0_25bfloat16_copy_kernel_cudaERNS_18TensorIteratorBaseEE"
    "UlfE_St5arrayIPcLm2EEEEviT0_T1_"
)
MASKED_SCALE = (
    "_ZN2at6native29vectorized_elementwise_kernelILi4EZNS0_43_GLOBAL__N__50f1b6c4_10_Dropout_cu_0e96ed3819masked_scale_kernelIbN3c108BFloat16EfEEv"
    "RNS_6TensorERKS6_S9_T1_EUlS5_bE_St5arrayIPcLm3EEEEviT0_SA_"
)
GATHER = "_ZN2at6native24vectorized_gather_kernelILi16ElEEvPcS2_PT0_illllb"
INDEX_SELECT = (
    "_ZN2at6native44_GLOBAL__N__50c743a2_11_Indexing_cu_89862edb21indexSelectLargeIndexIfljLi2ELi2ELin2ELb1EEEvNS_4cuda6detail10TensorInfoIT_T1_EE"
    "NS5_IKS6_S7_EENS5_IKT0_S7_EEiiS7_S7_l"
)
FOREACH = (
    "_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_18TensorListMetadataILi3EEENS1_24PointwiseOpScalarFunctorIfLi3ELi3ELi0EEE"
    "JSt10multipliesIfEfEEEvT_T0_DpT1_"
)
SCALARS = (
    "_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_28TensorListScalarListMetadataIfLi1EEENS1_25BinaryOpScalarListFunctorIfLi1ELi1E"
    "Li0EEEJSt7dividesIfEEEEvT_T0_DpT1_"
)
REDUCE = (
    "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_14func_wrapper_tIfZNS0_11sum_functorIfffEclERNS_14TensorIteratorEEUlffE_EEjfLi4ELi4EEEEE"
    "vT1_"
)
SOFTMAX = "_ZN2at6native12_GLOBAL__N_119cunn_SoftMaxForwardILi4EfffNS1_25LogSoftMaxForwardEpilogueEEEvPT2_PKT0_i"
ATTENTION = "fmha_cutlassF_f32_aligned_64x64_rf_sm80"


def i32(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


def i64(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def calculator(sizes: Sequence[int], strides: Sequence[Sequence[int]]) -> bytes:
    """OffsetCalculator: strides[operand][dimension] in bytes."""
    dividers = b""
    for size in sizes:
        shift = (size - 1).bit_length()
        dividers += i32(size, (((1 << 32) * ((1 << shift) - size)) // size + 1) & 0xFFFFFFFF, shift)
    table = [
        strides[o][d] if d < len(sizes) else 0xDEAD for d in range(25) for o in range(len(strides))
    ]
    return i32(len(sizes)) + dividers + b"\x55" * (300 - len(dividers)) + i32(*table)


@pytest.fixture(scope="session")
def probe(kernels_probe: Path) -> p.Probe:
    return p.Probe(kernels_probe)


def test_elementwise(probe: p.Probe) -> None:
    found, _ = probe.truth(ADD, [i32(1000), i32(0), i64(A, B, C)], ROOM)
    assert found == [(B, 4000, "r"), (C, 4000, "r"), (A, 4000, "w")]


def test_elementwise_in_place_and_half(probe: p.Probe) -> None:
    found, _ = probe.truth(ADD_HALF, [i32(1000), i32(0), i64(A, A, C)], ROOM)
    assert found == [(A, 2000, "r"), (C, 2000, "r"), (A, 2000, "rw")]


def test_a_copy_to_another_type_writes_elements_of_that_type(probe: p.Probe) -> None:
    found, _ = probe.truth(TO_BFLOAT16, [i32(1000), i32(0), i64(A, B)], ROOM)
    assert found == [(B, 4000, "r"), (A, 2000, "w")]


def test_a_dropouts_mask_is_of_bytes(probe: p.Probe) -> None:
    """The lambda's types are told by reference to earlier ones, the kernel's own in full."""
    found, _ = probe.truth(MASKED_SCALE, [i32(1000), i32(0), i64(A, B, C)], ROOM)
    assert found == [(B, 2000, "r"), (C, 1000, "r"), (A, 2000, "w")]


def test_nothing_beyond_the_allocation(probe: p.Probe) -> None:
    found, _ = probe.truth(FILL, [i32(1 << 20), i32(0), i64(A + 512)], [(A, 4096)])
    assert found == [(A + 512, 4096 - 512, "w")]


def test_strided_elementwise(probe: p.Probe) -> None:
    # A transposed copy of [64, 100] out of rows of 128 floats.
    strides = [[4, 400], [512, 4]]
    lambda_ = calculator([100, 64], strides) + i64(A, B) + bytes(16)
    found, _ = probe.truth(COPY, [i32(6400), lambda_ + bytes(-len(lambda_) % 8)], ROOM)
    assert found == [(B, 99 * 512 + 63 * 4 + 4, "r"), (A, 99 * 4 + 63 * 400 + 4, "w")]


def strided_copy(
    probe: p.Probe, sizes: Sequence[int], to: Sequence[int], source: Sequence[int]
) -> list[tuple[int, int, str]]:
    """What a copy of floats touches; strides in bytes."""
    lambda_ = calculator(sizes, [to, source]) + i64(A, B) + bytes(16)
    found, _ = probe.truth(COPY, [i32(math.prod(sizes)), lambda_ + bytes(-len(lambda_) % 8)], ROOM)
    return found


def test_what_lies_between_rows_far_apart_is_not_touched(probe: p.Probe) -> None:
    # A row of 128 floats for each of 3 x 2 matrices, 256 KiB each, of which the last two dimensions
    # are packed.
    found = strided_copy(probe, [128, 2, 3], [4, 1 << 18, 2 << 18], [4, 512, 1024])
    assert found == [(B, 3 * 1024, "r"), *((A + (matrix << 18), 512, "w") for matrix in range(6))]


def test_gaps_shorter_than_a_region_are_touched(probe: p.Probe) -> None:
    for gap, runs in ((65532, 1), (65536, 4)):
        found = strided_copy(probe, [4], [gap + 4], [4])
        assert [access for access in found if access[2] == "w"] == [
            (A + at * (gap + 4), 4 if runs > 1 else 3 * (gap + 4) + 4, "w") for at in range(runs)
        ]


def test_attention_reads_what_a_cache_holds_and_not_its_room(probe: p.Probe) -> None:
    # flash.h: one query for each of 2 sequences and 3 heads; keys and values are 512 of 1024 rows
    # of 128 halves.
    batches, heads, depth, keys, room = 2, 3, 128, 512, 1024
    parameters = bytearray(200)
    parameters[0:24] = i64(A, B, C)
    whole = heads * room * depth
    strides = (
        heads * depth,
        whole,
        whole,
        heads * depth,
        depth,
        depth,
        depth,
        room * depth,
        room * depth,
    )
    parameters[24:96] = i64(*strides)
    parameters[96:104] = i32(heads, heads)
    parameters[112:120] = i64(D)
    parameters[176:196] = i32(batches, 1, keys, 0, depth)
    found, _ = probe.truth("flash_fwd_splitkv_kernel", [bytes(parameters)], ROOM)
    rows = [(head * room * depth * 2, keys * depth * 2) for head in range(batches * heads)]
    for base in (B, C):
        assert [
            (at - base, size) for at, size, mode in found if base <= at < base + (256 << 20)
        ] == rows
        assert all(mode == "r" for at, _, mode in found if base <= at < base + (256 << 20))


@pytest.mark.parametrize("seed", range(20))
def test_strided_operands_are_where_their_elements_are(probe: p.Probe, seed: int) -> None:
    """Every element is touched, nothing that is a region away from all; a captured program has the
    same places.
    """
    random = Random(seed)
    sizes = [random.randint(1, 6) for _ in range(random.randint(1, 4))]
    strides = [4 * random.choice((1, 3, 64, 5000, 16000, 17000, 40000, 300000)) for _ in sizes]
    packed = [4 * math.prod(sizes[:dimension]) for dimension in range(len(sizes))]
    found = [
        (at - A, size)
        for at, size, mode in strided_copy(probe, sizes, strides, packed)
        if mode == "w"
    ]
    elements = sorted(
        sum(offsets)
        for offsets in itertools.product(
            *(range(0, n * s, s) for n, s in zip(sizes, strides, strict=True))
        )
    )
    for at, size in found:
        inside = [element for element in elements if at <= element < at + size]
        assert inside[0] == at
        assert inside[-1] + 4 == at + size
        assert all(later - (earlier + 4) < 65536 for earlier, later in itertools.pairwise(inside))
    assert all(later - sum(earlier) >= 65536 for earlier, (later, _) in itertools.pairwise(found))
    assert all(any(at <= element < at + size for at, size in found) for element in elements)
    places = strided(tuple(sizes), tuple(stride // 4 for stride in strides), 4)
    assert found == (list(places.at(0)) if places is not None else [(0, elements[-1] + 4)])


def test_gather_reads_rows_of_the_table(probe: p.Probe) -> None:
    rows, row, count = 50257, 3072, 100
    parameters = [
        i64(A),
        i64(B),
        i64(C),
        i32(count),
        i64(row),
        i64(rows),
        i64(row),
        i64(row),
        b"\0",
    ]
    found, _ = probe.truth(GATHER, parameters, ROOM, ordinal=7)
    table = [access for access in found if access[0] >= B and access[0] < C]
    assert 95 <= len(table) <= count
    assert all(
        mode == "r" and size == row and (at - B) % row == 0 and at - B < rows * row
        for at, size, mode in table
    )
    assert len({at for at, _, _ in table}) == len(table)
    assert (A, count * row, "w") in found
    assert (C, count * 8, "r") in found
    again, _ = probe.truth(GATHER, parameters, ROOM, ordinal=7)
    other, _ = probe.truth(GATHER, parameters, ROOM, ordinal=8)
    assert again == found
    assert other != found


def test_multi_tensor(probe: p.Probe) -> None:
    # Two tensors of three lists: 100000 elements (its second chunk in this launch only) and 10.
    # Unused slots hold rubbish.
    tensors = 336
    metadata = bytearray(i64(*[D + 8] * (3 * tensors)) + i64(*[1 << 40] * tensors))
    for index, base in enumerate((A, B, C)):
        metadata[8 * tensors * index : 8 * tensors * index + 16] = i64(base, base + (1 << 20))
    metadata[8 * tensors * 3 : 8 * tensors * 3 + 16] = i64(100000, 10)
    metadata += struct.pack("<2240H", 0, 1, *[7] * 2238) + i32(1, 0, *[9] * 2238) + bytes(8)
    found, _ = probe.truth(
        FOREACH, [bytes(metadata), b"\0", b"\0", i32(0)], ROOM, grid=(2, 1, 1), block=(512, 1, 1)
    )
    second = 65536 * 4
    expected = []
    for base, mode in ((A, "rw"), (B, "r"), (C, "r")):
        expected += [(base + second, (100000 - 65536) * 4, mode), (base + (1 << 20), 40, mode)]
    assert sorted(found) == sorted(expected)


def test_multi_tensor_of_builds_for_4_kib_of_parameters(probe: p.Probe) -> None:
    tensors = 48
    metadata = bytearray(i64(*[D + 8] * (3 * tensors)) + i64(*[1 << 40] * tensors))
    for index, base in enumerate((A, B, C)):
        metadata[8 * tensors * index : 8 * tensors * index + 16] = i64(base, base + (1 << 20))
    metadata[8 * tensors * 3 : 8 * tensors * 3 + 16] = i64(100000, 10)
    metadata += struct.pack("<320B", 0, 1, *[7] * 318) + i32(1, 0, *[9] * 318) + bytes(8)
    found, _ = probe.truth(
        FOREACH, [bytes(metadata), b"\0", b"\0", i32(0)], ROOM, grid=(2, 1, 1), block=(512, 1, 1)
    )
    expected = []
    for base, mode in ((A, "rw"), (B, "r"), (C, "r")):
        expected += [(base + 65536 * 4, (100000 - 65536) * 4, mode), (base + (1 << 20), 40, mode)]
    assert sorted(found) == sorted(expected)


def test_multi_tensor_with_scalars(probe: p.Probe) -> None:
    metadata = (
        i64(A, *[D] * 671)
        + i64(30, *[1 << 30] * 671)
        + i32(*[0] * 672)
        + struct.pack("<2240H", *[0] * 2240)
        + i32(*[0] * 2240)
    )
    found, _ = probe.truth(SCALARS, [metadata, b"\0", b"\0"], ROOM, block=(512, 1, 1))
    assert found == [(A, 120, "rw")]


def test_index_select(probe: p.Probe) -> None:
    # 20 rows of 64 floats from a table of 1000; the selected dimension counts as 1 in the sizes.
    def info(pointer: int, sizes: list[int], strides: list[int]) -> bytes:
        pad = [0] * (25 - len(sizes))
        return i64(pointer) + i32(*sizes, *pad) + i32(*strides, *pad) + i32(len(sizes), 0)

    tensors = [info(A, [1, 64], [64, 1]), info(B, [1, 64], [64, 1]), info(C, [20], [1])]
    found, _ = probe.truth(
        INDEX_SELECT,
        [*tensors, i32(0), i32(0), i32(20 * 64), i32(64), i64(1000)],
        ROOM,
        grid=(10, 1, 1),
    )
    assert (C, 160, "r") in found
    assert (A, 20 * 256, "w") in found
    rows = [(at, size) for at, size, mode in found if B <= at < C]
    assert sum(size for _, size in rows) == 20 * 256
    assert all(at >= B and at + size <= B + 1000 * 256 and (at - B) % 256 == 0 for at, size in rows)
    assert len(rows) > 1


def test_reduction(probe: p.Probe) -> None:
    # Sums over the rows of [1000, 50] floats: 50 outputs of 1000 inputs each.
    config = i32(4, 1000, 50, 256, 1, 1, 1, 0, 0, 0, 0, 32, 8, 256, 0, 1)
    operation = bytes(8) + config + calculator([1000], [[200]]) + calculator([50], [[4], [4]])
    operation += bytes(-len(operation) % 8) + i64(A, B, 0, 0, 0, 0, 0) + i32(0, 1)
    found, _ = probe.truth(REDUCE, [operation], ROOM, grid=(7, 1, 1), block=(32, 8, 1))
    assert found == [(A, 1000 * 50 * 4, "r"), (B, 200, "w")]


def test_a_reduction_of_halves_that_is_accumulated_in_floats_reads_no_more_than_them(
    probe: p.Probe,
) -> None:
    # Means over the rows of [1000, 50] halves.
    config = i32(4, 1000, 50, 256, 1, 1, 1, 0, 0, 0, 0, 32, 8, 256, 0, 1)
    operation = bytes(8) + config + calculator([1000], [[100]]) + calculator([50], [[2], [2]])
    operation += bytes(-len(operation) % 8) + i64(A, B, 0, 0, 0, 0, 0) + i32(0, 1)
    found, _ = probe.truth(
        REDUCE.replace("ReduceOpIf", "ReduceOpIN3c104HalfE"),
        [operation],
        ROOM,
        grid=(7, 1, 1),
        block=(32, 8, 1),
    )
    assert found[0] == (A, 1000 * 50 * 2, "r")


def test_softmax(probe: p.Probe) -> None:
    found, _ = probe.truth(
        SOFTMAX, [i64(A), i64(B), i32(50257)], ROOM, grid=(100, 1, 1), block=(1024, 1, 1)
    )
    assert found == [(B, 100 * 50257 * 4, "r"), (A, 100 * 50257 * 4, "w")]


def test_attention(probe: p.Probe) -> None:
    batches, heads, length, depth = 2, 12, 128, 64
    row = heads * depth
    parameters = (
        i64(A, B, C, 0, 0, 0, 0, 0, D, D, 0)
        + i32(0, 0)
        + i32(depth, depth, length, length, length, 1)
    )
    parameters += (
        i32(row, row, row, 0, row, depth, depth, depth)
        + i64(0, length * row, length * row, length * row, 0)
        + bytes(80)
    )
    found, flops = probe.truth(
        ATTENTION, [parameters], ROOM, grid=(2, heads, batches), block=(32, 4, 1)
    )
    whole = batches * length * row * 4
    assert found == [(A, whole, "r"), (B, whole, "r"), (C, whole, "r"), (D, whole, "w")]
    assert flops == 4 * batches * heads * length * length * depth / 2  # causal


def test_general_rule(probe: p.Probe) -> None:
    found, flops = probe.truth(
        "my_kernel",
        [i64(A), i32(5), i64(B + 16), i64(12345)],
        ROOM,
        grid=(10, 2, 1),
        block=(64, 1, 1),
    )
    assert found == [(A, 10 * 2 * 64 * 4, "rw"), (B + 16, 10 * 2 * 64 * 4, "rw")]
    assert flops == 0


@pytest.mark.parametrize(
    "kernel",
    [
        ADD,
        FILL,
        COPY,
        GATHER,
        INDEX_SELECT,
        FOREACH,
        SCALARS,
        REDUCE,
        SOFTMAX,
        ATTENTION,
        "flash_fwd_kernel",
        "_ZN9",
        "L",
        "S1",
    ],
)
@pytest.mark.parametrize("size", [0, 1, 8, 64, 700, 30000])
def test_parameters_of_another_form_do_no_harm(probe: p.Probe, kernel: str, size: int) -> None:
    for fill in (b"\0", b"\xff", struct.pack("<Q", A), struct.pack("<Q", 25)):
        value = (fill * (size + 8))[:size]
        for parameters in ([value], [i32(7), value, value], [value] * 8):
            found, _ = probe.truth(kernel, [v for v in parameters if v] or [b"\1"], ROOM)
            assert all(
                any(start <= at and at + length <= start + room for start, room in ROOM)
                for at, length, _ in found[:20000]
            )
