"""What other processes and devices need of memory: what does the driver answer for device memory,
and for managed memory?
"""

from __future__ import annotations

import ctypes
from typing import Any

from acceptance.bench import Bench
from deepum.doctor.driver import MIB

_BYTES = 4 * MIB
# enum CUpointer_attribute of cuda.h
_P2P_TOKENS = 5
_SYNC_MEMOPS = 6
_IS_LEGACY_CUDA_IPC_CAPABLE = 10
_IS_GPU_DIRECT_RDMA_CAPABLE = 15


def answer(bench: Bench) -> dict[str, Any]:
    cuda = bench.cuda
    library = ctypes.CDLL("libcuda.so.1")

    def attribute(function: str, number: int, address: int) -> tuple[str, int]:
        value = (ctypes.c_uint64 * 2)(1)  # the tokens are two words
        result = getattr(library, function)(value, number, ctypes.c_uint64(address))
        return "SUCCESS" if result == 0 else cuda.name_of(result), int(value[0])

    def examine(address: int) -> dict[str, Any]:
        findings: dict[str, Any] = {
            "ipc": cuda.answer("cuIpcGetMemHandle", address),
            "dma_buf": cuda.answer(
                "cuMemGetHandleForAddressRange",
                address,
                _BYTES,
                cuda.api.CUmemRangeHandleType.CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
                0,
            ),
            "p2p_tokens": attribute("cuPointerGetAttribute", _P2P_TOKENS, address)[0],
            "sync_memops": attribute("cuPointerSetAttribute", _SYNC_MEMOPS, address)[0],
        }
        for name, number in (
            ("says_ipc", _IS_LEGACY_CUDA_IPC_CAPABLE),
            ("says_gpu_direct", _IS_GPU_DIRECT_RDMA_CAPABLE),
        ):
            result, value = attribute("cuPointerGetAttribute", number, address)
            findings[name] = bool(value & 0xFFFFFFFF) if result == "SUCCESS" else result
        return findings

    device, managed = int(cuda("cuMemAlloc", _BYTES)), cuda.managed(_BYTES)
    return {
        "able": {
            name.lower(): cuda.attribute(name)
            for name in ("IPC_EVENT_SUPPORTED", "DMA_BUF_SUPPORTED", "GPU_DIRECT_RDMA_SUPPORTED")
        },
        "device": examine(device),
        "managed": examine(managed),
        "own_handle_opened": cuda.answer(
            "cuIpcOpenMemHandle", cuda("cuIpcGetMemHandle", device), 1
        ),
    }
