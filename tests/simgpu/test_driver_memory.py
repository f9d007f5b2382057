"""Memory: allocations of all kinds, copies, memsets, migration calls, and what they cost
the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Script = Callable[..., Any]


def test_device_memory_is_as_large_as_the_card(script: Script) -> None:
    script(
        """
        free, total = ck(d.cuMemGetInfo())
        big = ck(d.cuMemAlloc(total - 64 * MIB))
        assert error(d.cuMemAlloc(128 * MIB)) == "OUT_OF_MEMORY"
        assert ck(d.cuMemGetInfo())[0] == 64 * MIB
        ck(d.cuMemFree(big))
        assert ck(d.cuMemGetInfo())[0] == free
        ck(d.cuMemAllocManaged(2 * total, 1))           # managed memory may exceed it
        assert error(d.cuMemAlloc(0)) == "INVALID_VALUE"
        assert error(d.cuMemFree(12345)) == "INVALID_VALUE"
        ck(d.cuMemFree(0))
        """
    )


def test_small_allocations_share_blocks_and_come_back(script: Script) -> None:
    script(
        """
        free = ck(d.cuMemGetInfo())[0]
        pieces = [int(ck(d.cuMemAlloc(1000))) for _ in range(3000)]
        assert len(set(pieces)) == 3000 and all(p % 512 == 0 for p in pieces)
        assert free - ck(d.cuMemGetInfo())[0] == 4 * MIB
        assert [int(x) for x in ck(d.cuMemGetAddressRange(pieces[5] + 7))] == [pieces[5], 1000]
        for p in pieces:
            ck(d.cuMemFree(p))
        assert ck(d.cuMemGetInfo())[0] == free
        """
    )


def test_memory_never_written_costs_the_host_nothing(script: Script) -> None:
    script(
        """
        size = 4 << 30
        before = resident_bytes()
        p, q = ck(d.cuMemAlloc(size)), ck(d.cuMemAllocManaged(size, 1))
        ck(d.cuMemsetD8(p, 0, size))
        ck(d.cuMemcpyDtoD(q, p, size))
        ck(d.cuMemcpyDtoD(p, q, size))
        ck(d.cuCtxSynchronize())
        assert resident_bytes() - before < 64 * MIB
        """
    )


def test_sparse_copies_keep_every_byte(script: Script) -> None:
    script(
        """
        rng = np.random.default_rng(0)
        size = 3 * MIB
        for shift in (0, 1, 4095, 4096):
            data = np.zeros(size, dtype=np.uint8)
            for _ in range(20):
                at = int(rng.integers(0, size - 9000))
                data[at : at + int(rng.integers(1, 9000))] = rng.integers(1, 255)
            p, q = ck(d.cuMemAlloc(size + 8192)), ck(d.cuMemAlloc(size + 8192))
            ck(d.cuMemsetD8(q, 0xAB, size + 8192))
            ck(d.cuMemcpyHtoD(int(p) + shift, data.ctypes.data, size))
            ck(d.cuMemcpyDtoD(int(q) + 17, int(p) + shift, size))
            back = np.empty(size + 8192, dtype=np.uint8)
            ck(d.cuMemcpyDtoH(back.ctypes.data, q, size + 8192))
            assert (back[17 : 17 + size] == data).all()
            assert (back[:17] == 0xAB).all() and (back[17 + size :] == 0xAB).all()
            ck(d.cuMemFree(p)); ck(d.cuMemFree(q))
        """
    )


def test_rectangles_and_boxes(script: Script) -> None:
    script(
        """
        T = d.CUmemorytype
        host = np.arange(20 * 16, dtype=np.uint8).reshape(20, 16)
        p, pitch = ck(d.cuMemAllocPitch(16, 20, 4))
        assert pitch % 512 == 0
        c = d.CUDA_MEMCPY2D()
        c.srcMemoryType, c.srcHost, c.srcPitch, c.srcXInBytes, c.srcY = T.CU_MEMORYTYPE_HOST, host.ctypes.data, 16, 3, 2
        c.dstMemoryType, c.dstDevice, c.dstPitch, c.WidthInBytes, c.Height = T.CU_MEMORYTYPE_DEVICE, p, pitch, 8, 10
        ck(d.cuMemcpy2D(c))
        out = np.zeros((10, 8), dtype=np.uint8)
        c = d.CUDA_MEMCPY2D()
        c.srcMemoryType, c.srcDevice, c.srcPitch = T.CU_MEMORYTYPE_UNIFIED, p, pitch
        c.dstMemoryType, c.dstHost, c.dstPitch, c.WidthInBytes, c.Height = T.CU_MEMORYTYPE_HOST, out.ctypes.data, 8, 8, 10
        s = stream()
        ck(d.cuMemcpy2DAsync(c, s)); ck(d.cuStreamSynchronize(s))
        assert (out == host[2:12, 3:11]).all()
        box = np.arange(4 * 5 * 6, dtype=np.uint8).reshape(4, 5, 6)
        q = ck(d.cuMemAlloc(4 * 5 * 6))
        c = d.CUDA_MEMCPY3D()
        c.srcMemoryType, c.srcHost, c.srcPitch, c.srcHeight, c.srcZ, c.srcY = T.CU_MEMORYTYPE_HOST, box.ctypes.data, 6, 5, 1, 2
        c.dstMemoryType, c.dstDevice, c.dstPitch, c.dstHeight = T.CU_MEMORYTYPE_DEVICE, q, 6, 2
        c.WidthInBytes, c.Height, c.Depth = 6, 2, 3
        ck(d.cuMemcpy3D(c))
        out = np.zeros((3, 2, 6), dtype=np.uint8)
        ck(d.cuMemcpyDtoH(out.ctypes.data, q, out.nbytes))
        assert (out == box[1:, 2:4]).all()
        """
    )


def test_memsets_of_all_widths(script: Script) -> None:
    script(
        """
        p = ck(d.cuMemAlloc(4096))
        def bytes_of():
            out = np.empty(4096, dtype=np.uint8)
            ck(d.cuMemcpyDtoH(out.ctypes.data, p, 4096))
            return out
        ck(d.cuMemsetD8(p, 0x11, 4096)); assert (bytes_of() == 0x11).all()
        ck(d.cuMemsetD16(p, 0x2233, 2048)); assert (bytes_of().view(np.uint16) == 0x2233).all()
        ck(d.cuMemsetD32Async(p, 0x44556677, 1024, 0)); assert (bytes_of().view(np.uint32) == 0x44556677).all()
        ck(d.cuMemsetD2D8(p, 64, 0, 16, 64))
        rows = bytes_of().reshape(64, 64)
        assert (rows[:, :16] == 0).all() and (rows.reshape(-1).view(np.uint32).reshape(64, 16)[:, 4:] == 0x44556677).all()
        assert error(d.cuMemsetD8(p, 0, 4097)) == "INVALID_VALUE"
        assert error(d.cuMemsetD32(int(p) + 1, 0, 4)) == "INVALID_VALUE"
        """
    )


def test_pageable_sources_may_be_reused_when_the_call_returns(script: Script) -> None:
    script(
        """
        module, s, gate = Module(), stream(), Gate()
        small = np.full(1000, 1, dtype=F)
        p = managed(1000)
        gate.hold(s)
        ck(d.cuMemcpyHtoDAsync(p, small.ctypes.data, small.nbytes, s))
        small[:] = 7
        gate.open()
        ck(d.cuStreamSynchronize(s))
        assert (get(p, 1000) == 1).all()
        large = np.full(1 << 20, 2, dtype=F)
        q = managed(1 << 20)
        ck(d.cuMemcpyHtoDAsync(q, large.ctypes.data, large.nbytes, s))
        large[:] = 7
        ck(d.cuStreamSynchronize(s))
        assert (get(q, 1 << 20) == 2).all()
        """
    )


def test_pinned_copies_happen_when_the_stream_gets_there(script: Script) -> None:
    script(
        """
        s, gate, n = stream(), Gate(), 1 << 18
        h = ck(d.cuMemAllocHost(4 * n))
        data = np.frombuffer((ctypes.c_float * n).from_address(h), dtype=F)
        data[:] = 1
        p = managed(n)
        gate.hold(s)
        ck(d.cuMemcpyHtoDAsync(p, h, 4 * n, s))
        data[:] = 2
        gate.open()
        ck(d.cuStreamSynchronize(s))
        assert (get(p, n) == 2).all()
        own = np.full(n, 3, dtype=F)
        ck(d.cuMemHostRegister(own.ctypes.data, own.nbytes, 0))
        assert error(d.cuMemHostRegister(own.ctypes.data, own.nbytes, 0)) == "HOST_MEMORY_ALREADY_REGISTERED"
        assert int(ck(d.cuMemHostGetDevicePointer(own.ctypes.data, 0))) == own.ctypes.data
        ck(d.cuMemHostUnregister(own.ctypes.data))
        assert error(d.cuMemHostUnregister(own.ctypes.data)) == "HOST_MEMORY_NOT_REGISTERED"
        ck(d.cuMemFreeHost(h))
        """
    )


def test_pointer_attributes_tell_the_kinds_apart(script: Script) -> None:
    script(
        """
        A = d.CUpointer_attribute
        p, m, h = device(1024), managed(1024), ck(d.cuMemAllocHost(4096))
        kind = lambda x: int(ck(d.cuPointerGetAttribute(A.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, x)))
        is_managed = lambda x: bool(ck(d.cuPointerGetAttribute(A.CU_POINTER_ATTRIBUTE_IS_MANAGED, x)))
        assert [kind(x) for x in (p, m, h)] == [2, 2, 1]
        assert [is_managed(x) for x in (p, m, h)] == [False, True, False]
        assert int(ck(d.cuPointerGetAttribute(A.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, int(p) + 100))) == int(p)
        assert error(d.cuPointerGetAttribute(A.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 4096)) == "INVALID_VALUE"
        kinds = [A.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, A.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL]
        assert [int(x) for x in ck(d.cuPointerGetAttributes(2, kinds, 4096))] == [0, -2]
        """
    )


def test_prefetch_moves_and_both_forms_agree(script: Script) -> None:
    ran = script(
        """
        module, s, n = Module(), stream(), 8 << 20
        p = managed(n)
        R = d.CUmem_range_attribute.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION
        ck(module.set(s, p, n, 1.0))
        ck(d.cuMemPrefetchAsync(p, 4 * n, CPU, 0, s))
        assert ck(d.cuMemRangeGetAttribute(4, R, p, 4 * n)) == -1
        ck(d.cuMemPrefetchBatchAsync([p], [4 * n], 1, [GPU], [0], 1, 0, s))
        ck(module.scale(s, p, n, 2.0))
        ck(d.cuStreamSynchronize(s))
        assert ck(d.cuMemRangeGetAttribute(4, R, p, 4 * n)) == 0
        assert (get(p, n) == 2).all()
        assert error(d.cuMemPrefetchAsync(device(1024), 4096, GPU, 0, s)) == "INVALID_VALUE"
        assert error(d.cuMemPrefetchAsync(p, 4 * n + 2 * MIB, GPU, 0, s)) == "INVALID_VALUE"
        assert error(d.cuMemPrefetchBatchAsync([p], [4 * n], 1, [GPU], [0], 1, 0, 0)) == "INVALID_VALUE"   # not on the default stream
        """
    )
    (statistics,) = ran.statistics
    assert statistics["bytes_prefetched_out"] == 32 << 20
    assert statistics["bytes_prefetched"] == 32 << 20
    assert statistics["bytes_prefetched_used"] == 32 << 20
    assert statistics["faults"] == 0 or statistics["bytes_demand"] == 0


def test_the_first_forms_of_prefetch_and_advice(run_sim: Script, compile_program: Script) -> None:
    for line in run_sim(compile_program("sim_first_forms.c", link_cuda=True)).out.splitlines():
        assert line.endswith(": yes"), line


def test_advice_is_kept_with_the_range(script: Script) -> None:
    script(
        """
        A, R = d.CUmem_advise, d.CUmem_range_attribute
        p = managed(1 << 20)
        ck(d.cuMemAdvise(p, 4 << 20, A.CU_MEM_ADVISE_SET_READ_MOSTLY, GPU))
        ck(d.cuMemAdvise(p, 4 << 20, A.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, GPU))
        ck(d.cuMemAdvise(p, 4 << 20, A.CU_MEM_ADVISE_SET_ACCESSED_BY, CPU))
        assert ck(d.cuMemRangeGetAttribute(4, R.CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 4 << 20)) == 1
        assert ck(d.cuMemRangeGetAttribute(4, R.CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, 4 << 20)) == 0
        assert list(ck(d.cuMemRangeGetAttribute(8, R.CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, 4 << 20))) == [-1, -2]
        ck(d.cuMemAdvise(p, 4 << 20, A.CU_MEM_ADVISE_UNSET_READ_MOSTLY, GPU))
        assert ck(d.cuMemRangeGetAttribute(4, R.CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 4 << 20)) == 0
        GPU.id = 5
        assert error(d.cuMemAdvise(p, 4096, A.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, GPU)) == "INVALID_DEVICE"
        """
    )


def test_memory_and_code_are_given_back_without_a_current_context(script: Script) -> None:
    script(
        """
        module, n = Module(), 1 << 20
        p, q = device(n), managed(n)
        h, own = ck(d.cuMemHostAlloc(4096, 0)), np.zeros(4096, dtype=np.uint8)
        ck(d.cuMemHostRegister(own.ctypes.data, 4096, 0))
        ck(module.scale(0, q, n, 2.0))
        free = ck(d.cuMemGetInfo())[0]
        ck(d.cuCtxSetCurrent(0))
        assert error(d.cuMemAlloc(4096)) == "INVALID_CONTEXT"
        ck(d.cuMemFree(p)); ck(d.cuMemFree(q)); ck(d.cuMemFreeHost(h)); ck(d.cuMemHostUnregister(own.ctypes.data))
        ck(d.cuModuleUnload(module.handle))
        assert error(d.cuMemFree(p)) == "INVALID_VALUE" and error(d.cuMemFreeHost(h)) == "INVALID_VALUE"
        assert error(d.cuMemHostUnregister(own.ctypes.data)) == "HOST_MEMORY_NOT_REGISTERED"
        assert error(d.cuModuleUnload(module.handle)) == "INVALID_HANDLE"
        ck(d.cuCtxSetCurrent(ctx))
        assert ck(d.cuMemGetInfo())[0] > free
        """
    )


def test_a_free_does_not_wait_for_a_helpers_discard_which_then_hits_what_comes_next(
    script: Script,
) -> None:
    """Nobody says that a driver does: who discards has to wait before the free."""
    script(
        """
        import threading
        module, n = Module(), 1 << 20
        p, held = managed(n), managed(64 << 20)
        ck(module.set(0, held, 64 << 20, 1.0))
        ck(module.set(0, p, n, 1.0))
        ck(d.cuCtxSynchronize())
        def helper():
            ck(d.cuCtxSetCurrent(ctx))
            s = stream()
            ck(d.cuMemPrefetchAsync(held, 256 * MIB, CPU, 0, s))
            ck(d.cuMemDiscardBatchAsync([p], [4 * n], 1, 0, s))
        thread = threading.Thread(target=helper)
        thread.start()
        thread.join()
        ck(d.cuMemFree(p))
        q = managed(n)
        assert int(q) == int(p)
        ck(module.set(0, q, n, 7.0))
        ck(d.cuCtxSynchronize())
        for s in range(3):
            ck(d.cuStreamSynchronize(stream()))
        assert not (get(q, n) == 7).any()
        """
    )


def test_demand_faults_and_driver_eviction_when_the_card_is_oversubscribed(script: Script) -> None:
    ran = script(
        """
        module, n = Module(), 32 << 20
        pointers = [managed(n) for _ in range(3)]
        for p in pointers:
            ck(module.set(0, p, n, 1.0))
        for _ in range(2):
            for p in pointers:
                ck(module.scale(0, p, n, 2.0))
        ck(d.cuCtxSynchronize())
        for p in pointers:
            assert (get(p, n) == 4).all()
        """,
        env={"DEEPUM_SIM_MEMORY": str(256 << 20)},
    )
    (statistics,) = ran.statistics
    assert statistics["faults"] > 0
    assert statistics["bytes_demand"] > 6 * (100 << 20)
    assert statistics["bytes_driver_evicted"] > 0
    assert statistics["stall_s"] > 0
    assert statistics["peak_resident_bytes"] <= 256 << 20
