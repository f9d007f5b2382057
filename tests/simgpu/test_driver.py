"""The simulated driver as such: how it is reached, what it answers, how it fails, what it leaves
behind.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Script = Callable[..., Any]


@pytest.mark.parametrize("flags", [(), ("-DRESOLVE",)], ids=["linked", "dlopen+cuGetProcAddress"])
def test_c_program_runs_host_kernels_on_its_data(
    run_sim: Script, compile_program: Script, sim_module: Path, flags: tuple[str, ...]
) -> None:
    program = compile_program("sim_vectors.c", link_cuda=not flags, flags=flags)
    assert run_sim(program, sim_module).out == "ok\n"


def test_version_and_flavour_select_the_symbol(run_sim: Script, compile_program: Script) -> None:
    answers = run_sim(compile_program("sim_resolver.c")).out.split("\n")
    for line in answers:
        assert not line or line.endswith(": yes"), line


def test_what_is_not_simulated_says_so_once(script: Script) -> None:
    ran = script(
        """
        for _ in range(3):
            assert error(d.cuMipmappedArrayCreate(d.CUDA_ARRAY3D_DESCRIPTOR(), 1)) == "NOT_SUPPORTED"
        """
    )
    assert ran.err.count("deepum-sim: cuMipmappedArrayCreate is not simulated") == 1
    assert ran.statistics[0]["not_simulated"] == ["cuMipmappedArrayCreate"]


def test_device_answers_as_the_machine_says(script: Script) -> None:
    script(
        """
        A = d.CUdevice_attribute
        assert ck(d.cuDriverGetVersion()) == 13000
        assert ck(d.cuDeviceGetCount()) == 2
        dev = ck(d.cuDeviceGet(1))
        assert ck(d.cuDeviceTotalMem(dev)) == 3 << 30
        assert ck(d.cuDeviceGetAttribute(A.CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, dev)) == 1
        assert ck(d.cuDeviceGetAttribute(A.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, dev)) == 108
        assert ck(d.cuDeviceGetAttribute(A.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, dev)) == 8
        assert ck(d.cuDeviceGetUuid(dev)).bytes != ck(d.cuDeviceGetUuid(ck(d.cuDeviceGet(0)))).bytes
        assert error(d.cuDeviceGet(2)) == "INVALID_DEVICE"
        assert int(ck(d.cuDeviceGetByPCIBusId(ck(d.cuDeviceGetPCIBusId(32, dev))))) == 1
        assert ck(d.cuMemGetInfo()) == (3 << 30, 3 << 30)
        """,
        env={
            "DEEPUM_SIM_MACHINE": "a100-40gb",
            "DEEPUM_SIM_MEMORY": str(3 << 30),
            "DEEPUM_SIM_DEVICES": "2",
        },
    )


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("DEEPUM_SIM_MACHINE", "abacus"),
        ("DEEPUM_SIM_MEMORY", "lots"),
        ("DEEPUM_SIM_DEVICES", "0"),
        ("DEEPUM_SIM_FIGURES", "h2d_gbps=11,colour=3"),
        ("DEEPUM_SIM_FIGURES", "h2d_gbps=0"),
        ("DEEPUM_SIM_FIGURES", "h2d_gbps"),
        ("DEEPUM_SIM_FIGURES", "launch_queue=1.5"),
    ],
)
def test_unusable_settings_are_one_line(script: Script, variable: str, value: str) -> None:
    ran = script("assert error(d.cuInit(0)) == 'INVALID_VALUE'", bare=True, env={variable: value})
    assert ran.err.startswith(f"deepum: error: {variable}={value}: ")
    assert ran.err.count("\n") == 1


def test_calls_before_init_and_without_context_are_refused(script: Script) -> None:
    script(
        """
        assert error(d.cuDeviceGetCount()) == "NOT_INITIALIZED"
        ck(d.cuInit(0))
        assert error(d.cuMemAlloc(16)) == "INVALID_CONTEXT"
        assert int(ck(d.cuCtxGetCurrent())) == 0
        """,
        bare=True,
    )


def test_contexts_stack_per_thread(script: Script) -> None:
    script(
        """
        import threading
        own = ck(d.cuCtxCreate(None, 0, 0))
        assert int(ck(d.cuCtxGetCurrent())) == int(own) != int(ctx)
        seen = []
        thread = threading.Thread(target=lambda: seen.append(int(ck(d.cuCtxGetCurrent()))))
        thread.start()
        thread.join()
        assert seen == [0]
        assert int(ck(d.cuCtxPopCurrent())) == int(own)
        assert int(ck(d.cuCtxGetCurrent())) == int(ctx)
        ck(d.cuCtxPushCurrent(own))
        ck(d.cuCtxDestroy(own))
        assert error(d.cuCtxPushCurrent(own)) == "INVALID_CONTEXT"
        assert ck(d.cuDevicePrimaryCtxGetState(0)) == (0, 1)
        ck(d.cuDevicePrimaryCtxRelease(0))
        assert error(d.cuMemAlloc(16)) == "CONTEXT_IS_DESTROYED"
        """
    )


def test_error_names_and_words(script: Script) -> None:
    script(
        """
        assert ck(d.cuGetErrorName(d.CUresult(2))) == b"CUDA_ERROR_OUT_OF_MEMORY"
        assert ck(d.cuGetErrorString(d.CUresult(700))) == b"an illegal memory access was encountered"
        assert ck(d.cuGetErrorString(d.CUresult(217))) == b"peer access unsupported"
        """,
        bare=True,
    )


def test_parameter_layouts_and_attributes_of_host_kernels(script: Script) -> None:
    script(
        """
        module = Module()
        f = ck(d.cuModuleGetFunction(module.handle, b"mixed"))
        assert [ck(d.cuFuncGetParamInfo(f, i)) for i in range(4)] == [(0, 1), (8, 8), (16, 2), (24, 12)]
        assert error(d.cuFuncGetParamInfo(f, 4)) == "INVALID_VALUE"
        assert ck(d.cuFuncGetName(f)) == b"mixed"
        assert error(d.cuModuleGetFunction(module.handle, b"none")) == "NOT_FOUND"
        assert ck(d.cuModuleGetFunctionCount(module.handle)) == 8
        assert ck(d.cuFuncGetAttribute(d.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f)) == 1024
        assert ck(d.cuOccupancyMaxActiveBlocksPerMultiprocessor(f, 256, 0)) == 8
        ck(d.cuModuleUnload(module.handle))
        assert error(d.cuFuncGetName(f)) == "INVALID_HANDLE"
        library = ck(d.cuLibraryLoadData(open(os.environ["SIM_MODULE"], "rb").read(), [], [], 0, [], [], 0))
        kernel = ck(d.cuLibraryGetKernel(library, b"shape"))
        assert ck(d.cuKernelGetParamInfo(kernel, 0)) == (0, 8)
        assert ck(d.cuKernelGetName(kernel)) == b"shape"
        assert ck(d.cuFuncGetName(ck(d.cuKernelGetFunction(kernel)))) == b"shape"
        """
    )


def test_all_ways_to_launch_hand_over_grid_block_and_parameters(script: Script) -> None:
    script(
        """
        module = Module()
        p, s = device(7), stream()
        shape = lambda: [int(x) for x in get(p, 7).view(np.uint32)]
        f, values = module.functions["shape"], module.values("shape", p)
        ck(d.cuLaunchKernel(f, 2, 3, 4, 5, 6, 7, 64, s, values, 0)); ck(d.cuStreamSynchronize(s))
        assert shape() == [2, 3, 4, 5, 6, 7, 64]
        config = d.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ, config.blockDimX, config.blockDimY, config.blockDimZ = 7, 6, 5, 4, 3, 2
        config.hStream = s
        ck(d.cuLaunchKernelEx(config, f, values, 0)); ck(d.cuStreamSynchronize(s))
        assert shape() == [7, 6, 5, 4, 3, 2, 0]
        ck(d.cuLaunchCooperativeKernel(f, 9, 1, 1, 1, 1, 1, 0, s, values)); ck(d.cuStreamSynchronize(s))
        assert shape()[0] == 9
        packed, size = ctypes.c_uint64(int(p)), ctypes.c_size_t(8)
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(packed), 2, ctypes.addressof(size), 0)
        ck(d.cuLaunchKernel(f, 11, 1, 1, 1, 1, 1, 0, s, 0, ctypes.addressof(extra))); ck(d.cuStreamSynchronize(s))
        assert shape()[0] == 11
        assert error(d.cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, s, values, 0)) == "INVALID_VALUE"
        assert error(d.cuLaunchKernel(f, 1, 1, 1, 2048, 1, 1, 0, s, values, 0)) == "INVALID_VALUE"
        """
    )


def test_access_outside_live_memory_is_an_error_that_stays(script: Script) -> None:
    ran = script(
        """
        module = Module()
        p = managed(1024)
        put(p, np.ones(1024))
        ck(module.scale(0, p, 1025, 2.0))
        assert error(d.cuCtxSynchronize()) == "ILLEGAL_ADDRESS"
        assert error(d.cuMemAlloc(16)) == "ILLEGAL_ADDRESS"
        assert error(module.scale(0, p, 1, 2.0)) == "ILLEGAL_ADDRESS"
        """
    )
    assert "kernel scale touches 4100 bytes" in ran.err


def test_statistics_are_cumulative_and_have_a_timeline(script: Script) -> None:
    ran = script(
        """
        module, s, n = Module(), stream(), 1 << 20
        p = managed(n)
        put(p, np.ones(n))
        for _ in range(3):
            ck(module.scale(s, p, n, 2.0))
            ck(d.cuStreamSynchronize(s))
        """
    )
    (statistics,) = ran.statistics
    assert statistics["machine"] == "v100-16gb"
    assert statistics["device_count"] == 1
    assert statistics["kernels"] == 3
    assert statistics["gpu_time_s"] > 0
    assert statistics["bytes_accessed"] == 3 * (4 << 20)
    points = statistics["timeline"]
    assert [point["kernels"] for point in points] == [0, 1, 2, 3]
    assert sorted(point["t_s"] for point in points) == [point["t_s"] for point in points]
    assert points[-1]["bytes_accessed"] == statistics["bytes_accessed"]


def test_work_that_nobody_waited_for_is_counted_at_the_end(script: Script) -> None:
    ran = script(
        """
        module, n = Module(), 1 << 20
        host = np.ones(n, dtype=F)
        ck(d.cuMemHostRegister(host.ctypes.data, host.nbytes, 0))
        p = managed(n)
        ck(module.slow(0, 10**13))
        ck(d.cuMemcpyHtoDAsync(p, host.ctypes.data, host.nbytes, 0))
        ck(module.scale(0, p, n, 2.0))
        """
    )
    assert ran.statistics[0]["kernels"] == 2
    assert ran.statistics[0]["gpu_time_s"] > 0.5


def test_an_end_in_the_middle_of_a_wait_is_no_hang(script: Script) -> None:
    ran = script(
        """
        module, s, gate, p = Module(), stream(), Gate(), managed(1024)
        gate.hold(s)
        ck(module.set(s, p, 1024, 1.0))
        """
    )
    assert ran.statistics[0]["kernels"] == 1


def test_forked_child_has_no_driver_and_leaves_no_statistics(script: Script) -> None:
    ran = script(
        """
        import sys
        p = device(16)
        child = os.fork()
        if child == 0:
            assert error(d.cuMemAlloc(16)) == "NOT_INITIALIZED"
            assert error(d.cuInit(0)) == "NOT_INITIALIZED"
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """
    )
    assert len(ran.statistics) == 1


def test_immediate_exit_leaves_no_statistics(script: Script) -> None:
    assert script("os._exit(0)").statistics == []


def test_private_tables_are_not_found(script: Script) -> None:
    script("assert error(d.cuGetExportTable(d.CUuuid())) == 'NOT_FOUND'")


def test_a_context_ends_with_its_last_detach(script: Script) -> None:
    script(
        """
        own = ck(d.cuCtxCreate(None, 0, 0))
        assert int(ck(d.cuCtxAttach(0))) == int(own)
        p = device(1 << 20)
        ck(d.cuCtxDetach(own))
        ck(d.cuMemsetD8(p, 1, 16))
        ck(d.cuCtxDetach(own))
        assert int(ck(d.cuCtxGetCurrent())) == int(ctx)
        assert error(d.cuMemsetD8(p, 1, 16)) == "INVALID_VALUE"
        assert error(d.cuCtxDetach(own)) == error(d.cuCtxDetach(ctx)) == "INVALID_CONTEXT"
        """
    )


def test_a_function_keeps_its_old_style_launch(script: Script) -> None:
    """Shape and parameters, set one by one, until they are set anew; the functions are declared by
    no header that cuda-bindings has.
    """
    script(
        """
        library = ctypes.CDLL("libcuda.so.1")
        assert library.cuProfilerInitialize(b"", b"", 0) == 0
        f = ctypes.c_void_p(int(Module().functions["set"]))
        p = device(4096)
        number = ctypes.c_uint64(1024)
        assert library.cuFuncSetBlockShape(f, 0, 1, 1) == 1 and library.cuFuncSetBlockShape(f, 256, 1, 1) == 0
        assert library.cuFuncSetSharedSize(f, 64) == 0
        assert library.cuParamSetv(f, 0, ctypes.byref(ctypes.c_uint64(int(p))), 8) == 0
        assert library.cuParamSetv(f, 8, ctypes.byref(number), 8) == 0
        library.cuParamSetf.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_float)
        assert library.cuParamSetf(f, 16, 5.0) == 0 and library.cuParamSetSize(f, 20) == 0
        assert library.cuParamSetf(f, 4096, 5.0) == 1 and library.cuParamSetf(f, -1, 5.0) == 1
        assert library.cuLaunchGrid(f, 4, 1) == 0 and library.cuLaunchGrid(f, 0, 1) == 1
        assert (get(p, 1024) == 5).all()
        assert library.cuParamSetf(f, 16, 7.0) == 0 and library.cuLaunchGridAsync(f, 4, 1, None) == 0
        assert (get(p, 1024) == 7).all()
        """
    )
