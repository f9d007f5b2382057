"""The Python ways to CUDA, unmodified, on the simulated driver."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from required import needed, required_packages

Script = Callable[..., Any]


def test_cuda_core_allocates_launches_and_captures(script: Script) -> None:
    needed("cuda.core")
    script(
        """
        from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, launch
        dev = Device(0)
        dev.set_current()
        assert dev.compute_capability == (8, 0)
        s = dev.create_stream()
        kernel = ObjectCode.from_cubin(Path(os.environ["SIM_MODULE"]).read_bytes()).get_kernel("scale")
        assert [tuple(x) for x in kernel.arguments_info] == [(0, 8), (8, 8), (16, 4)]
        host = LegacyPinnedMemoryResource().allocate(4096)
        values = np.from_dlpack(host).view(F)
        values[:] = 2
        buffer = dev.allocate(4096, stream=s)
        buffer.copy_from(host, stream=s)
        config = LaunchConfig(grid=4, block=256)
        launch(s, config, kernel, buffer, ctypes.c_uint64(1024), ctypes.c_float(4.0))
        buffer.copy_to(host, stream=s)
        done = s.record()
        done.sync()
        assert done.is_done and (values == 8).all()
        buffer.close(s)
        s.sync()
        """,
        bare=True,
    )


def test_cuda_core_builds_graphs_and_uses_pools_of_all_kinds(script: Script) -> None:
    needed("cuda.core")
    ran = script(
        """
        from cuda.core import Device, LaunchConfig, ManagedMemoryResource, ObjectCode, PinnedMemoryResource, launch
        dev = Device(0)
        dev.set_current()
        s = dev.create_stream()
        kernel = ObjectCode.from_cubin(Path(os.environ["SIM_MODULE"]).read_bytes()).get_kernel("scale")
        buffer = ManagedMemoryResource().allocate(4096, stream=s)
        PinnedMemoryResource().allocate(4096, stream=s).close(s)
        values = np.frombuffer((ctypes.c_float * 1024).from_address(int(buffer.handle)), dtype=F)
        values[:] = 1
        def scale(where):
            launch(where, LaunchConfig(grid=4, block=256), kernel, buffer, ctypes.c_uint64(1024), ctypes.c_float(2.0))
        builder = dev.create_graph_builder()
        builder.begin_building()
        scale(builder)
        builder.callback(lambda: print(values[0]))
        left, right = builder.split(2)
        scale(left)
        graph = type(builder).join(left, right).end_building().complete()
        for _ in range(2):
            graph.launch(s)
        s.sync()
        assert (values == 16).all()
        """,
        bare=True,
    )
    assert ran.out == "2.0\n8.0\n"


def test_numba_compiles_and_launches(script: Script) -> None:
    """The kernel is compiled by numba's own tool chain and launched; its arithmetic is not done,
    and its result reads as zeros.
    """
    needed("numba.cuda")
    ran = script(
        """
        from numba import cuda
        @cuda.jit
        def double(a):
            i = cuda.grid(1)
            if i < a.size:
                a[i] *= 2
        a = cuda.to_device(np.arange(4096, dtype=F))
        double[16, 256](a)
        cuda.synchronize()
        assert not a.copy_to_host().any()
        assert cuda.current_context().get_memory_info().total == 16 << 30
        """,
        bare=True,
    )
    (statistics,) = ran.statistics
    assert statistics["kernels"] == 1
    assert statistics["unparsed_kernels"] == []


def test_nvrtc_code_is_loaded_and_its_parameters_are_read(script: Script) -> None:
    nvrtc = needed("cuda.bindings.nvrtc")
    try:
        nvrtc.nvrtcVersion()
    except RuntimeError as error:  # the bindings come without the library
        if required_packages():
            raise
        pytest.skip(f"no libnvrtc: {error}".splitlines()[0])
    script(
        '''
        from cuda.bindings import nvrtc
        source = b"""struct pair { long long x; int y; };
        extern "C" __global__ void k(float *p, int n, pair q, const double *r) { if (n) p[n] = q.y + r[q.x]; }"""
        for option in ("sm_80", "compute_80"):
            program = ck(nvrtc.nvrtcCreateProgram(source, b"k.cu", 0, [], []))
            ck(nvrtc.nvrtcCompileProgram(program, 1, [f"--gpu-architecture={option}".encode()]))
            kind = "CUBIN" if option.startswith("sm") else "PTX"
            image = b" " * ck(getattr(nvrtc, f"nvrtcGet{kind}Size")(program))
            ck(getattr(nvrtc, f"nvrtcGet{kind}")(program, image))
            module = ck(d.cuModuleLoadData(image))
            k = ck(d.cuModuleGetFunction(module, b"k"))
            assert [ck(d.cuFuncGetParamInfo(k, i)) for i in range(4)] == [(0, 8), (8, 4), (16, 16), (32, 8)], kind
            assert error(d.cuFuncGetParamInfo(k, 4)) == "INVALID_VALUE"
            assert error(d.cuModuleGetFunction(module, b"other")) == "NOT_FOUND"
        '''
    )


def test_cupy_whose_modules_have_a_runtime_each(
    script: Script, sim: Path, preloading: Callable[..., dict[str, str]], cuda_include: Path
) -> None:
    """Each of its extension modules has NVIDIA's runtime linked in statically. Its own kernels want
    NVRTC; here it is given one.
    """
    if not importlib.util.find_spec("cupy"):
        pytest.skip("no CuPy")
    ran = script(
        """
        import cupy
        scale = cupy.RawModule(path=os.environ["SIM_MODULE"]).get_function("scale")
        values = cupy.asarray(np.full(1000, 2, F))
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            scale((4,), (256,), (values, np.uint64(1000), np.float32(3)))
            ended = stream.record()
        ended.synchronize()
        assert (cupy.asnumpy(values) == 6).all()
        assert cupy.cuda.runtime.getDeviceCount() == 1 and cupy.cuda.malloc_managed(1 << 20).ptr
        from cupy.cuda import cub, thrust
        """,
        bare=True,
        env=preloading(sim / "libcudart.so.13", sim / "libcudart.so.12")
        | {"CUDA_PATH": str(cuda_include.parent)},
    )
    assert "error" not in ran.err
    assert ran.statistics[0]["kernels"] == 1


def test_pycuda_allocates_copies_and_launches(
    script: Script, sim: Path, cuda_include: Path
) -> None:
    if not importlib.util.find_spec("pycuda"):
        pytest.skip("no PyCUDA")
    script(
        """
        import pycuda.autoinit
        import pycuda.driver as cuda
        scale = cuda.module_from_file(os.environ["SIM_MODULE"]).get_function("scale")
        values = np.full(1000, 2, F)
        memory = cuda.mem_alloc(values.nbytes)
        cuda.memcpy_htod(memory, values)
        scale(memory, np.uint64(1000), np.float32(3), block=(256, 1, 1), grid=(4, 1))
        scale.prepare("PQf").prepared_call((4, 1), (256, 1, 1), memory, 1000, 2)
        cuda.memcpy_dtoh(values, memory)
        assert (values == 12).all()
        assert scale.num_regs and pycuda.autoinit.device.name()
        """,
        bare=True,
        env={"LD_LIBRARY_PATH": f"{sim}:{cuda_include.parent / 'lib'}"},  # it is linked with cuRAND
    )
