"""What convolutions without cuDNN, pooling, normalisation, random numbers and compiled kernels
touch, worked out by hand.
"""

from __future__ import annotations

import struct
from pathlib import Path

import probe as p
import pytest

A, B, C, D, E = (0x2000_0000_0000 + (i << 28) for i in range(5))
ROOM = [(start, 256 << 20) for start in (A, B, C, D, E)]

IM2COL = "_ZN2at6native13im2col_kernelIN3c104HalfEEEvlPKT_llllllllllllPS4_"
COL2IM = "_ZN2at6native13col2im_kernelIffEEvlPKT_llllllllllllPS2_"
MAX_POOL = "_ZN2at6native12_GLOBAL__N_121max_pool_forward_nchwIfiEEvT0_PKT_lllyyyyyyyyyyPS4_Pl"
MAX_POOL_BACKWARD = (
    "_ZN2at6native12_GLOBAL__N_122max_pool_backward_nchwIffiEEvPKT_PKlT1_iiiiiiiiiiiiiPS3_"
)
AVERAGE_POOL = "_ZN2at6native12_GLOBAL__N_125avg_pool2d_out_cuda_frameIffEEviPKT_lllliiiiiiiPS3_ibb"
AVERAGE_POOL_BACKWARD = (
    "_ZN2at6native12_GLOBAL__N_134avg_pool2d_backward_out_cuda_frameIffiEEviPKT_llllliiiiiiPS3_ibb"
)
ADAPTIVE = "_ZN2at6native12_GLOBAL__N_121adaptive_average_poolIfEEvPKT_PS3_iiiilll"
ADAPTIVE_BACKWARD = (
    "_ZN2at6native12_GLOBAL__N_133atomic_adaptive_average_gradinputIfEEvPT_PKS3_iiii"
)
STATISTICS = "_ZN2at6native36batch_norm_collect_statistics_kernelINS0_3VarEN3c104HalfES4_fiEEv"
TRANSFORM = "_ZN2at6native33batch_norm_transform_input_kernelIfffLb1EiEEv"
BACKWARD = "_ZN2at6native26batch_norm_backward_kernelIN3c104HalfEfflEEv"
LAST_BACKWARD = "_ZN2at6native51batch_norm_backward_reduce_channels_last_kernelILi4EfffEEv"
NEAREST = "_ZN2at6native12_GLOBAL__N_128upsample_nearest2d_out_frameIfXadL_Z1fEEEEvPKT_PS3_mmmmmff"
NEAREST_BACKWARD = "_ZN2at6native12_GLOBAL__N_137upsample_nearest2d_backward_out_frameIffXadL_Z1fEEEEvPKT_mmmmmmPS3_ff"
DEPTHWISE = "_ZN2at6native12_GLOBAL__N_131conv_depthwise2d_forward_kernelILi3EfiEEv"
NORMAL = (
    "_ZN2at6native12_GLOBAL__N_143distribution_elementwise_grid_stride_kernelIfLi4EZNS0_9templates4cuda20normal_and_transformIN3c104HalfEfEEv"
    "ENKUlvE_clEvEUlP24curandStatePhilox4_32_10E0_ZNS1_27distribution_nullary_kernelIN3c104HalfEf6float4EEvEUlifE_EEvlNS_15PhiloxCudaStateET1_T2_"
)
MULTIPLE = "_ZN2at6native45unrolled_elementwise_kernel_for_multi_outputsILi2EZNS0_1fEvEUlffE_St5arrayIPcLm4EEEEviT0_T1_"
CLEANUP = (
    "_ZN2at6native14lpnorm_cleanupIfLNS0_8NormTypeE2EfLb1EfEEvPKT3_NS0_19TensorListAddressesEi"
)
SCAN = "_ZN2at6native32tensor_kernel_scan_innermost_dimIlSt4plusIlEEEvPT_PKS4_jjjS4_T0_"


def i32(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


def i64(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def each(*values: bytes | int) -> list[bytes]:
    """Parameters; numbers are of 8 bytes."""
    return [value if isinstance(value, bytes) else i64(value) for value in values]


def ints(*values: int) -> list[bytes]:
    return [i32(value) for value in values]


def accessor(pointer: int, sizes: list[int], *, wide: bool = False) -> bytes:
    """PackedTensorAccessor of a contiguous tensor."""
    strides = [1]
    for size in reversed(sizes[1:]):
        strides.insert(0, strides[0] * size)
    return i64(pointer) + (i64 if wide else i32)(*sizes, *strides)


@pytest.fixture(scope="session")
def probe(kernels_probe: Path) -> p.Probe:
    return p.Probe(kernels_probe)


def test_columns(probe: p.Probe) -> None:
    # 16 channels of 20 x 30, kernel 3 x 3, no padding: 18 x 28 outputs.
    shape = [20, 30, 3, 3, 0, 0, 1, 1, 1, 1, 18, 28]
    image, columns = 16 * 20 * 30, 16 * 9 * 18 * 28
    found, flops = probe.truth(IM2COL, each(16 * 18 * 28, A, *shape, B), ROOM)
    assert (found, flops) == ([(A, image * 2, "r"), (B, columns * 2, "w")], 0)
    found, flops = probe.truth(COL2IM, each(image, B, *shape, A), ROOM)
    assert (found, flops) == ([(B, columns * 4, "r"), (A, image * 4, "w")], columns)


def test_pooling(probe: p.Probe) -> None:
    # 2 x 8 planes of 32 x 40, windows of 2 x 2.
    planes = 16
    inner, outer = planes * 32 * 40 * 4, planes * 16 * 20 * 4
    windows = ints(16, 20, 2, 2, 2, 2, 0, 0, 1, 1)
    found, flops = probe.truth(
        MAX_POOL, [i32(outer // 4), *each(A, 8, 32, 40), *windows, i64(B), i64(C)], ROOM
    )
    assert (found, flops) == ([(A, inner, "r"), (B, outer, "w"), (C, 2 * outer, "w")], outer)
    found, _ = probe.truth(
        MAX_POOL_BACKWARD, [i64(B), i64(C), *ints(2, 8, 32, 40), *windows, i64(A)], ROOM
    )
    assert found == [(B, outer, "r"), (C, 2 * outer, "r"), (A, inner, "w")]
    found, _ = probe.truth(
        AVERAGE_POOL,
        [i32(outer // 4), *each(A, 8, 32, 40, 16), *ints(20, 2, 2, 2, 2, 0, 0), i64(B), i32(0)],
        ROOM,
    )
    assert found == [(A, inner, "r"), (B, outer, "w")]
    shape = [*each(B, 8, 32, 40, 16, 20), *ints(2, 2, 2, 2, 0, 0)]
    found, _ = probe.truth(AVERAGE_POOL_BACKWARD, [i32(inner // 4), *shape, i64(A), i32(0)], ROOM)
    assert found == [(B, outer, "r"), (A, inner, "w")]
    sides = ints(32, 40, 16, 20)
    found, _ = probe.truth(
        ADAPTIVE, [i64(A), i64(B), *sides, i64(0), i64(0), i64(0)], ROOM, grid=(planes, 1, 1)
    )
    assert found == [(A, inner, "r"), (B, outer, "w")]
    found, _ = probe.truth(ADAPTIVE_BACKWARD, [i64(A), i64(B), *sides], ROOM, grid=(planes, 1, 1))
    assert found == [(B, outer, "r"), (A, inner, "rw")]


def test_batch_norm(probe: p.Probe) -> None:
    # 4 samples of 32 channels of 100 pixels.
    tensor, channels = 4 * 32 * 100, 32
    parameters = [accessor(A, [4, 32, 100]), i32(0), i32(0), accessor(B, [32]), accessor(C, [32])]
    found, flops = probe.truth(STATISTICS, parameters, ROOM)
    assert (
        found == [(A, tensor * 2, "r"), (B, channels * 4, "w"), (C, channels * 4, "w")]
        and flops > tensor
    )
    parameters = [accessor(at, [4, 32, 100]) for at in (A, B)] + [
        accessor(C + 4096 * i, [32]) for i in range(4)
    ]
    found, _ = probe.truth(TRANSFORM, [*parameters, i32(0)], ROOM)
    assert found == [
        (A, tensor * 4, "r"),
        *((C + 4096 * i, channels * 4, "r") for i in range(4)),
        (B, tensor * 4, "w"),
    ]
    parameters = [accessor(at, [4, 32, 100], wide=True) for at in (A, B, C)] + [
        accessor(D + 4096 * i, [32], wide=True) for i in range(7)
    ]
    found, _ = probe.truth(BACKWARD, parameters, ROOM)
    assert (
        found[:2] == [(A, tensor * 2, "r"), (B, tensor * 2, "r")] and (C, tensor * 2, "w") in found
    )
    assert [at for at, _, mode in found if mode == "w"] == [C, D, D + 4096]
    # Channels last: 400 rows of 32 channels, two rows of blocks.
    parameters = [i64(at) for at in (A, B, *(C + 4096 * i for i in range(6)), D, E)] + ints(400, 32)
    found, _ = probe.truth(LAST_BACKWARD, parameters, ROOM, grid=(1, 2, 1))
    assert found[:2] == [(A, tensor * 4, "r"), (B, tensor * 4, "r")]
    assert [at for at, _, mode in found if mode == "w"] == [C + 4096 * i for i in range(2, 6)]


def test_upsampling_and_depthwise_convolution(probe: p.Probe) -> None:
    found, _ = probe.truth(NEAREST, [*each(A, B, 6, 10, 10, 20, 20), i32(0), i32(0)], ROOM)
    assert found == [(A, 600 * 4, "r"), (B, 2400 * 4, "w")]
    found, _ = probe.truth(
        NEAREST_BACKWARD, [*each(B, 2, 3, 20, 20, 10, 10, A), i32(0), i32(0)], ROOM
    )
    assert found == [(B, 2400 * 4, "r"), (A, 600 * 4, "w")]
    tensors = [
        accessor(A, [2, 8, 16, 16]),
        accessor(B, [2, 8, 14, 14]),
        accessor(C, [8, 1, 3, 3]),
        accessor(D, [8]),
    ]
    found, flops = probe.truth(DEPTHWISE, [*tensors, b"\1"], ROOM)
    assert found == [(A, 4096 * 4, "r"), (B, 3136 * 4, "w"), (C, 72 * 4, "r"), (D, 32, "r")]
    assert flops == 2 * 3136 * 9
    # For any size of the window; behind the types stand those of the accessors, with an
    # ArrayRef<long>.
    generic = DEPTHWISE.replace(
        "31conv_depthwise2d_forward_kernelILi3EfiEEv",
        "39conv_depthwise2d_forward_kernel_genericIfiEEvRN3c108ArrayRefIlEE",
    )
    assert generic != DEPTHWISE and probe.truth(generic, [*tensors, b"\1"], ROOM)[0] == found


def test_rolled_windows(probe: p.Probe) -> None:
    found, _ = probe.truth(
        "_ZN2at6native16roll_cuda_kernelIfEEvPKT_PS2_llllll",
        each(A, B, 6000, 10, 3, 7, 20, 60),
        ROOM,
    )
    assert found == [(A, 24000, "r"), (B, 24000, "w")]


def test_random_numbers(probe: p.Probe) -> None:
    found, flops = probe.truth(
        NORMAL, [i64(5000), bytes(24), b"\1", i64(0) + i64(A)], ROOM, grid=(4, 1, 1)
    )
    assert found == [(A, 10000, "w")] and flops > 0


def test_several_outputs(probe: p.Probe) -> None:
    found, _ = probe.truth(MULTIPLE, [i32(100), i32(0), i64(A, B, C, D)], ROOM)
    assert found == [(C, 400, "r"), (D, 400, "r"), (A, 400, "w"), (B, 400, "w")]


def test_norms_and_scans(probe: p.Probe) -> None:
    found, _ = probe.truth(
        CLEANUP, [i64(A), i64(B, C, D) + bytes(64), i32(5)], ROOM, grid=(2, 1, 1)
    )
    assert found == [(A, 40, "r"), (B, 4, "w"), (C, 4, "w")]
    found, _ = probe.truth(SCAN, [i64(A), i64(B), *ints(3, 100, 5), i64(0)], ROOM)
    assert found == [(B, 2400, "r"), (A, 2400, "w")]


def test_kernels_of_inductor(probe: p.Probe) -> None:
    # Two pointers to one allocation: the first tensor ends where the second begins, at the latest.
    # Not where another test's tensors are, whose sizes are known.
    at, behind, other = A + (64 << 20), A + (64 << 20) + 4096, B + (64 << 20)
    parameters = [i64(at), i64(behind), i64(other), i32(64), i32(1000), i64(0), i64(0)]
    found, flops = probe.truth("triton_red_fused_sum_0", parameters, ROOM, grid=(3, 1, 1))
    assert found == [(at, 4096, "rw"), (behind, 64000 * 4, "rw"), (other, 64000 * 4, "rw")]
    assert flops == 3 * 64000
    # The size of a dynamic shape, of 8 bytes, is no number of elements.
    found, _ = probe.truth(
        "triton_poi_fused_add_0", [i64(at), i64(other), i64(640), i32(640), i64(0), i64(0)], ROOM
    )
    assert found == [(at, 2560, "rw"), (other, 2560, "rw")]


CONVOLUTIONAL = [
    IM2COL,
    COL2IM,
    MAX_POOL,
    MAX_POOL_BACKWARD,
    AVERAGE_POOL,
    AVERAGE_POOL_BACKWARD,
    ADAPTIVE,
    ADAPTIVE_BACKWARD,
    DEPTHWISE,
]
OTHERS = [
    STATISTICS,
    TRANSFORM,
    BACKWARD,
    LAST_BACKWARD,
    NEAREST,
    NEAREST_BACKWARD,
    NORMAL,
    MULTIPLE,
    CLEANUP,
    SCAN,
    "triton_poi_",
]


@pytest.mark.parametrize("kernel", [*CONVOLUTIONAL, *OTHERS, "max_pool_forward_nhwc"])
@pytest.mark.parametrize("size", [8, 40, 700])
def test_parameters_of_another_form_do_no_harm(probe: p.Probe, kernel: str, size: int) -> None:
    for fill in (b"\0", b"\xff", struct.pack("<Q", A), struct.pack("<Q", 25)):
        value = (fill * (size + 8))[:size]
        for parameters in ([value], [i32(7), value, value], [value] * 8, [value] * 18):
            found, _ = probe.truth(kernel, parameters, ROOM)
            assert all(
                any(start <= at and at + length <= start + room for start, room in ROOM)
                for at, length, _ in found[:20000]
            )
