"""The stand-ins of CUDA 12: C programs that are linked with libcudart.so.12 and the like, alone and
with those of CUDA 13 loaded too.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from headers import folder_of

ROOT = Path(__file__).parents[2]
ROOMS = {"cudart": "cudart", "cublas": "cublas", "cublasLt": "cublas", "cupti": "cupti"}
OURS = {
    "cudart": {
        "_ZNK2at7Context16userEnabledCuDNNEv",
        "_ZNK2at7Context19userEnabledCuDNNSDPEv",
        "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE",
        "deepum_sim_cudart{major}_functions",
    },
    "cublas": {"deepum_host_module"},
    "cupti": {"deepum_sim_cupti_state"},
}
Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def cuda12_include() -> Path:
    """The folder of CUDA 12's cuda_runtime_api.h."""
    folder = folder_of("cuda_runtime_api.h", "cuda_runtime")
    if not folder:
        pytest.skip("no headers of CUDA 12: pip install nvidia-cuda-runtime-cu12")
    return folder


def _claims(ran: Any) -> None:
    lines = ran.out.splitlines()
    assert lines
    assert [line for line in lines if not line.endswith(": yes")] == []
    assert ran.err == ""


def test_functions_that_cuda_13_changed_are_as_cuda_12_has_them(
    run_sim: Callable[..., Any], compile_program: Compile, sim: Path
) -> None:
    _claims(run_sim(compile_program("sim_cuda12.c", flags=(f"-L{sim}", "-l:libcudart.so.12"))))


def test_they_are_so_under_deepum_too(
    deepum: Callable[..., Any], compile_program: Compile, sim: Path
) -> None:
    program = compile_program("sim_cuda12.c", flags=(f"-L{sim}", "-l:libcudart.so.12"))
    done = deepum("run", "--device", "sim:v100-16gb", "--", program)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 30
    assert [line for line in done.stdout.splitlines() if not line.endswith(": yes")] == []


def test_a_program_takes_those_of_its_own_version_when_both_are_loaded(
    run_sim: Callable[..., Any],
    compile_program: Compile,
    sim: Path,
    preloading: Callable[..., dict[str, str]],
) -> None:
    """Names are the same in both, and one that comes first would take the other's calls but for the
    versions of its symbols.
    """
    twelve = compile_program("sim_cuda12.c", flags=(f"-L{sim}", "-l:libcudart.so.12"))
    thirteen = compile_program(
        "sim_runtime_memory.c", flags=(f"-L{sim}", "-l:libcudart.so.13", "-l:libcuda.so.1")
    )
    for first, second in ((12, 13), (13, 12)):
        env = preloading(sim / f"libcudart.so.{first}", sim / f"libcudart.so.{second}")
        _claims(run_sim(twelve, env=env))
        assert ": no" not in run_sim(thirteen, env=env).out


def test_what_is_declared_here_is_what_nvidias_header_declares(
    run_sim: Callable[..., Any], sim: Path, cuda12_include: Path, cuda_include: Path, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    source = ROOT / "tests" / "programs" / "sim_cuda12.c"
    # The compiler's own header, which both releases include, comes with CUDA 13's here.
    include = (f"-I{cuda12_include}", "-idirafter", str(cuda_include))
    libraries = (f"-L{sim}", "-l:libcudart.so.12", "-ldl")
    warnings = ("-Wall", "-Werror", "-Wno-deprecated-declarations")
    subprocess.run(
        [
            "gcc",
            *warnings,
            "-DNVIDIAS_HEADER",
            "-o",
            str(program),
            str(source),
            *include,
            *libraries,
        ],
        check=True,
    )
    _claims(run_sim(program))


def test_layouts_are_those_of_nvidias_header(
    cuda12_include: Path, cuda_include: Path, tmp_path: Path
) -> None:
    """Every field of cudaDeviceProp; the structures that the shared objects take are alike in both
    majors.
    """
    ours = (ROOT / "native" / "simgpu" / "cudart" / "cuda12_layouts.hpp").read_text()
    body = re.search(r"struct DeviceProp \{(.*?)\n\};", ours, re.S)
    assert body
    fields = re.findall(r"(\w+)(?:\[\d+\])?[,;]", body[1])
    assert len(fields) > 90
    shared = (
        "cudaFuncAttributes", "cudaMemPoolProps", "cudaKernelNodeParams", "cudaMemsetParams", "cudaMemcpy3DParms",
        "cudaGraphNodeParams", "cudaMemLocation", "cudaMemAccessDesc", (
            "cudaGraphExecUpdateResultInfo_st"
        ), "cudaLaunchConfig_st",
        "cudaLaunchAttribute_st", "cudaGraphEdgeData_st", "cudaGraphInstantiateParams_st",
    )  # fmt: skip

    def layout(name: str, head: str, type_of: str, include: tuple[str, ...]) -> list[str]:
        lines = [
            f'printf("{f} %zu %zu\\n", offsetof({type_of}, {f}), sizeof((({type_of}*)0)->{f}));'
            for f in fields
        ]
        lines += [f'printf("{s} %zu\\n", sizeof(struct {s}));' for s in shared]
        source = tmp_path / f"{name}.cpp"
        source.write_text(
            f"#include <cstddef>\n#include <cstdio>\n{head}\nint main() {{ {' '.join(lines)} }}\n"
        )
        subprocess.run(
            ["g++", "-std=c++20", "-o", str(tmp_path / name), str(source), *include], check=True
        )
        return subprocess.run(
            [str(tmp_path / name)], capture_output=True, text=True, check=True
        ).stdout.splitlines()

    theirs = layout(
        "theirs",
        "#include <driver_types.h>",
        "cudaDeviceProp",
        (f"-I{cuda12_include}", "-idirafter", str(cuda_include)),
    )
    head = '#include "cuda12_layouts.hpp"'
    mine = layout(
        "ours",
        head,
        "deepum::simgpu::cudart::cuda12::DeviceProp",
        (f"-I{ROOT}/native/simgpu/cudart", f"-I{cuda_include}"),
    )
    assert mine == theirs


@pytest.mark.parametrize("major", ["12", "13"])
@pytest.mark.parametrize("library", sorted(ROOMS))
def test_only_and_all_names_of_the_real_library_are_exported(
    sim: Path, library: str, major: str
) -> None:
    """The .names lists tell what the real libraries export, of which major a name is."""
    entries = [
        line.split()
        for line in (ROOT / "native" / "simgpu" / ROOMS[library] / f"{library}.names")
        .read_text()
        .splitlines()
    ]
    names = {entry[0] for entry in entries if entry[1:] in ([], [major])}
    lines = subprocess.run(
        ["nm", "-D", "--defined-only", sim / f"lib{library}.so.{major}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    exported = {line.split()[-1] for line in lines if re.search(r" [TRD] ", line)}
    node = f"lib{library}.so.{major}"
    ours = {name.format(major=major) for name in OURS.get(ROOMS[library], set())}
    assert exported == {f"{name}@@{node}" for name in names | ours}


def test_products_by_both_libraries_are_the_same_kernel(script: Callable[..., Any]) -> None:
    """A handle, its version and a product of each; both launch the kernels of one host module."""
    ran = script(
        """
        for major in (12, 13):
            blas = ctypes.CDLL(f"libcublas.so.{major}")
            lt = ctypes.CDLL(f"libcublasLt.so.{major}")
            lt.cublasLtGetVersion.restype = lt.cublasLtGetCudartVersion.restype = ctypes.c_size_t
            handle, version, one = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_float(1)
            assert blas.cublasCreate_v2(ctypes.byref(handle)) == 0
            assert blas.cublasGetVersion_v2(handle, ctypes.byref(version)) == 0
            print(version.value // 10000, lt.cublasLtGetVersion() // 10000, lt.cublasLtGetCudartVersion() // 1000)
            p = [ctypes.c_void_p(int(device(64 * 64))) for _ in range(3)]
            n, f = ctypes.c_int(64), ctypes.byref(one)
            assert blas.cublasSgemm_v2(handle, 0, 0, n, n, n, f, p[0], n, p[1], n, f, p[2], n) == 0
        ck(d.cuCtxSynchronize())
        """
    )
    assert ran.out.splitlines() == ["12 12 12", "13 13 13"]
    assert ran.statistics[-1]["kernels"] == 2


def test_cupti_is_one_whichever_library_is_asked(script: Callable[..., Any]) -> None:
    script(
        """
        from cupti_client import Cupti
        twelve, thirteen = Cupti(library="libcupti.so.12"), Cupti(library="libcupti.so.13")
        versions = [ctypes.c_uint32(), ctypes.c_uint32()]
        for client, version in zip((twelve, thirteen), versions):
            assert client.lib.cuptiGetVersion(ctypes.byref(version)) == 0
        assert 18 <= versions[0].value < 100 and versions[1].value == 130001
        one, other = ctypes.c_void_p(), ctypes.c_void_p()
        assert twelve.lib.cuptiSubscribe(ctypes.byref(one), twelve._callback, None) == 0
        assert thirteen.lib.cuptiSubscribe(ctypes.byref(other), thirteen._callback, None) == 39  # MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
        assert thirteen.lib.cuptiUnsubscribe(one) == 0
        m = Module()
        twelve.start()
        p = managed(1 << 19)
        ck(m.set(0, p, 1 << 19, 1.0))
        ck(d.cuCtxSynchronize())
        assert thirteen.lib.cuptiActivityFlushAll(0) == 0
        assert [fault.kind for fault in twelve.faults] == ["w"]
        """
    )
