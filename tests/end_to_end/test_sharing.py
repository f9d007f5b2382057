"""Memory that other processes and devices use: what stays device memory works there, and what does
not is explained (docs/sharing.md).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Deepum = Callable[..., "subprocess.CompletedProcess[str]"]

DRIVER = """
import ctypes as c, json
cuda = c.CDLL("libcuda.so.1")
MiB = 1 << 20
def ok(result):
    assert result == 0, result
def context(device):
    made = c.c_void_p()
    ok(cuda.cuDevicePrimaryCtxRetain(c.byref(made), device)); ok(cuda.cuCtxSetCurrent(made))
    return made
def allocate(size):
    address = c.c_uint64()
    return cuda.cuMemAlloc_v2(c.byref(address), c.c_size_t(size)), address
ok(cuda.cuInit(0))
"""


def test_listed_memory_drives_other_memory_out_and_is_refused_when_the_card_is_full(
    deepum: Deepum, tmp_path: Path
) -> None:
    program = f"""{DRIVER}
context(0)
filled = allocate(120 * MiB)
ok(cuda.cuMemsetD8_v2(filled[1], 1, c.c_size_t(120 * MiB)))
plain, again, managed = allocate(100 * MiB), allocate(100 * MiB), allocate(99 * MiB)
handle, byte = (c.c_char * 64)(), c.c_ubyte()
ok(cuda.cuMemcpyDtoH_v2(c.byref(byte), filled[1], c.c_size_t(1)))
shared = [cuda.cuIpcGetMemHandle(handle, memory[1]) for memory in (plain, managed)]
def attribute(which, memory):
    value = c.c_uint()
    ok(cuda.cuPointerGetAttribute(c.byref(value), which, memory[1]))
    return value.value
capable = [attribute(10, memory) for memory in (plain, managed)]  # CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE
print(json.dumps([filled[0], plain[0], again[0], managed[0], byte.value, shared, capable, attribute(8, managed)]))
"""
    flags = (
        "--device",
        "sim",
        "--gpu-memory",
        "128MiB",
        "--plain-memory",
        "100MiB",
        "--stats",
        "s.json",
    )
    result = deepum("run", *flags, "--", sys.executable, "-c", program)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == [0, 0, 2, 0, 1, [0, 1], [1, 0], 0]
    assert (
        "deepum: warning: cuIpcGetMemHandle: an allocation of 99MiB is managed memory"
        in result.stderr
    )
    statistics = json.loads((tmp_path / "s.json").read_text())
    assert statistics["handles_refused"] == 1
    refused = (
        "refused requests to share managed memory with other processes or devices: 1; "
        "--plain-memory helps (docs/sharing.md)"
    )
    assert [text.partition(": ")[2] for text in statistics["warnings"]] == [refused]


def test_devices_copy_each_others_managed_memory(deepum: Deepum, tmp_path: Path) -> None:
    program = f"""{DRIVER}
first = context(0); source = allocate(16 * MiB)
data = (c.c_ubyte * (16 * MiB)).from_buffer(bytearray(range(256)) * (MiB // 16))
ok(cuda.cuMemcpyHtoD_v2(source[1], data, c.c_size_t(16 * MiB)))
second = context(1); target = allocate(16 * MiB)
ok(cuda.cuMemcpyPeer(target[1], second, source[1], first, c.c_size_t(16 * MiB)))
back = (c.c_ubyte * (16 * MiB))()
ok(cuda.cuMemcpyDtoH_v2(back, target[1], c.c_size_t(16 * MiB)))
print(bytes(back) == bytes(data))
"""
    result = deepum(
        "run",
        "--device",
        "sim",
        "--stats",
        "s.json",
        "--",
        sys.executable,
        "-c",
        program,
        env={"DEEPUM_SIM_DEVICES": "2"},
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "True\n"
    assert json.loads((tmp_path / "s.json").read_text())["peak_allocated_bytes"] == 32 << 20


@pytest.mark.parametrize("rules", ["", "libx:", "2MiB-1MiB", "/lib/libx.so"])
def test_unusable_rules_are_refused_in_one_line(deepum: Deepum, rules: str) -> None:
    result = deepum("run", "--device", "sim", "--plain-memory", rules, "--", "true")
    assert result.returncode == 2
    assert (
        result.stderr.startswith("deepum: error: --plain-memory: ")
        and result.stderr.count("\n") == 1
    )


TENSORS = """
import json, sys, torch
import torch.multiprocessing as processes
from torch.cuda.memory import CUDAPluggableAllocator, MemPool, use_mem_pool

def change(given, answers):
    for tensor in given.get():
        answers.put([tensor.sum().is_cuda, tensor[-3:].tolist()])
        tensor.copy_(torch.full(tensor.shape, 7.0))
    torch.cuda.synchronize()
    del tensor
    answers.put("written")
    given.get()

if __name__ == "__main__":
    context = processes.get_context("spawn")
    given, answers = context.Queue(), context.Queue()
    other = context.Process(target=change, args=(given, answers))
    other.start()
    pool = MemPool(CUDAPluggableAllocator(sys.argv[1], "segment_alloc", "segment_free").allocator())
    small = torch.arange(1 << 20, dtype=torch.float32).cuda()
    with use_mem_pool(pool):
        large = torch.empty(6 << 20, device="cuda")
    large.copy_(torch.arange(6 << 20, dtype=torch.float32))
    private = torch.empty(12 << 20, device="cuda")
    try:
        private.untyped_storage()._share_cuda_()
        refused = ""
    except RuntimeError as error:
        refused = str(error).splitlines()[0]
    given.put([small, large])
    seen = [answers.get(timeout=100) for _ in range(3)]
    values = [tensor.cpu().unique().tolist() for tensor in (small, large)]
    given.put(None)
    other.join()
    print(json.dumps({"seen": seen, "values": values, "refused": refused}))
"""


@pytest.mark.torch
def test_pytorch_shares_tensors_of_listed_segments(
    deepum: Deepum, compile_program: Callable[..., Path], tmp_path: Path
) -> None:
    """By the size of the caching allocator's segments, and by a pool whose allocator is a library
    of its own.
    """
    (tmp_path / "share.py").write_text(TENSORS)
    library = tmp_path / "libshared_segments.so"
    library.write_bytes(compile_program("shared_segments.c", shared=True).read_bytes())
    flags = ("--device", "sim", "--plain-memory", "20MiB,libshared_segments", "--stats", "s.json")
    result = deepum("run", *flags, "--", sys.executable, "share.py", library, timeout=200)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    last = [[float(n - 3), float(n - 2), float(n - 1)] for n in (1 << 20, 6 << 20)]
    assert report["seen"] == [[True, last[0]], [True, last[1]], "written"]
    assert report["values"] == [[7.0], [7.0]]
    assert report["refused"] == "CUDA error: invalid argument"
    assert (
        "an allocation of 48MiB is managed memory, which cannot be shared with another "
        "process (CUDA IPC)"
    ) in result.stderr
    statistics = json.loads((tmp_path / "s.json").read_text())
    assert statistics["handles_refused"] == 1
    assert not [text for text in statistics["warnings"] if "disagreed" in text]
