"""Programs and libraries with NVIDIA's CUDA runtime linked in statically, nvcc's default: the
simulated GPU's takes its place.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from headers import folder_of

ROOT = Path(__file__).parents[2]
PACKAGES = {12: "cuda_runtime", 13: "cu13"}
Compile = Callable[..., Path]
Run = Callable[..., Any]


def archive(major: int) -> str:
    """NVIDIA's static runtime."""
    include = folder_of("cuda_runtime_api.h", PACKAGES[major])
    found = include.parent / "lib" / "libcudart_static.a" if include else None
    if found is None or not found.is_file():
        pytest.skip(
            f"no libcudart_static.a of CUDA {major}: pip install "
            f"nvidia-cuda-runtime{'-cu12' if major == 12 else ''}"
        )
    return str(found)


@pytest.fixture
def preloaded(run_sim: Run, sim: Path, preloading: Callable[..., dict[str, str]]) -> Run:
    """Runs a program with both runtimes preloaded, as `deepum run` does."""

    def run(*command: object, **options: Any) -> Any:
        return run_sim(
            *command, env=preloading(sim / "libcudart.so.13", sim / "libcudart.so.12"), **options
        )

    return run


def all_hold(out: str) -> bool:
    """Every line is a claim that holds."""
    lines = out.splitlines()
    return bool(lines) and all(line.endswith(": yes") for line in lines)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("sim_runtime_graph.c", "pie"),
        ("sim_runtime_streams.c", "no-pie"),
        ("sim_runtime_memory.c", "pie"),
    ],
)
def test_the_programs_of_the_shared_runtime_run_with_a_static_one(
    preloaded: Run, compile_program: Compile, sim: Path, sim_module: Path, source: str, kind: str
) -> None:
    program = compile_program(
        source, flags=(f"-{kind}", archive(13), f"-L{sim}", "-l:libcuda.so.1", "-lrt")
    )
    ran = preloaded(program, sim_module)
    assert all_hold(ran.out), ran.out
    assert "error" not in ran.err


def test_it_is_replaced_by_that_of_its_own_release(
    preloaded: Run, compile_program: Compile
) -> None:
    """CUDA 12's functions have other parameters than those of the same names in CUDA 13."""
    ran = preloaded(compile_program("sim_cuda12.c", flags=(archive(12), "-lrt")))
    assert all_hold(ran.out), ran.out


def test_libraries_are_looked_at_before_their_constructors_register_kernels(
    preloaded: Run, compile_program: Compile, tmp_path: Path
) -> None:
    """One that the program is linked with, and two that it loads one after the other, to where the
    first one was perhaps.
    """
    library = compile_program(
        "static_kernels.c", shared=True, flags=(archive(13), "-lrt", "-Wl,--exclude-libs,ALL")
    )
    linked = compile_program(
        "static_loading.c", flags=("-DLINKED", str(library), f"-Wl,-rpath,{library.parent}")
    )
    assert all_hold(preloaded(linked).out)
    copy = tmp_path / "copy.so"
    shutil.copy(library, copy)
    ran = preloaded(compile_program("static_loading.c"), library, copy, library)
    assert all_hold(ran.out), ran.out
    assert len(ran.out.splitlines()) == 3


def test_a_stripped_one_is_refused_in_one_line(
    preloaded: Run, compile_program: Compile, sim: Path
) -> None:
    program = compile_program(
        "sim_runtime_streams.c", flags=("-s", archive(13), f"-L{sim}", "-l:libcuda.so.1", "-lrt")
    )
    ran = preloaded(program)
    cause = "has NVIDIA's CUDA runtime in it, which accepts NVIDIA's own driver only"
    assert ran.err == (
        f"deepum-sim: error: {program}: {cause}; link it with -cudart shared, or do not strip "
        f"it, or use a real GPU\n"
    )
    assert ran.statistics[0]["not_simulated"] == [f"cuGetExportTable for {program.name}"]


def test_functions_of_a_programs_own_stay_what_they_are(
    preloaded: Run, compile_program: Compile
) -> None:
    assert all_hold(preloaded(compile_program("static_own.c")).out)


def test_the_simulated_gpus_runtime_stays_when_it_is_closed(
    run_sim: Run, sim: Path, compile_program: Compile
) -> None:
    """Loaded by the program itself, not preloaded: the loader goes on calling into it, and so do
    the libraries that come after.
    """
    library = compile_program(
        "static_kernels.c", shared=True, flags=(archive(13), "-lrt", "-Wl,--exclude-libs,ALL")
    )
    ran = run_sim(compile_program("static_loading.c"), sim / "libcudart.so.13", library, library)
    assert [line.rpartition(": ")[2] for line in ran.out.splitlines()] == ["no", "yes", "yes"]


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("libnccl.so.2", "use PyTorch's gloo backend here, or a real GPU"),
        ("libcufft.so.12", "do on the CPU what needs it, or use a real GPU"),
        (
            "libcudart.so.11.0",
            "use CUDA 12 or 13, whose runtimes deepum run replaces by the simulated GPU's",
        ),
        ("libnvrtc.so.13", None),
    ],
)
def test_who_asks_for_the_drivers_private_tables_is_told_what_to_do(
    run_sim: Run, compile_program: Compile, tmp_path: Path, name: str, advice: str | None
) -> None:
    """A library of that name, not the real one."""
    library = tmp_path / name
    shutil.copy(compile_program("static_asking.c", shared=True), library)
    ran = run_sim(compile_program("static_asking.c"), library)
    assert ran.err.count("\n") == (advice is not None)
    assert ran.statistics[0]["not_simulated"] == (
        [f"cuGetExportTable for {name}"] if advice else []
    )
    if advice:
        assert ran.err.startswith(f"deepum-sim: error: {library}: ")
        assert ran.err.endswith(f"; {advice}\n")


def test_jax_is_told_to_compute_on_the_cpu(
    preloaded: Run, compile_program: Compile, tmp_path: Path
) -> None:
    """Its plugin is loaded and then left without a call, where there is no /dev/nvidia0; a library
    of its name, not the real one.
    """
    plugin = tmp_path / "xla_cuda_plugin.so"
    shutil.copy(compile_program("static_asking.c", shared=True), plugin)
    ran = preloaded(compile_program("static_loading.c"), plugin)
    what = "JAX does not run on the simulated GPU, it computes on the CPU or stops; use a real GPU"
    assert ran.err == f"deepum-sim: error: {plugin}: {what}\n"


@pytest.mark.parametrize(
    "flags",
    [(), ("-Xlinker", "-no-pie"), ("-cudart", "shared")],
    ids=["static", "no-pie", "shared"],
)
def test_what_nvcc_makes_runs_under_deepum(
    deepum: Callable[..., Any], tmp_path: Path, flags: tuple[str, ...]
) -> None:
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc")
    program = tmp_path / "saxpy"
    sources = [ROOT / "tests" / "programs" / name for name in ("saxpy.cu", "saxpy_fill.cu")]
    made = subprocess.run(
        ["nvcc", "-o", program, *sources, *flags], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"nvcc does not work: {made.stderr.splitlines()[0]}")
    done = deepum("run", "--device", "sim:v100-16gb", "--", program)
    assert done.returncode == 0, done.stderr
    assert all_hold(done.stdout), done.stdout
    assert "3 kernels" in done.stderr
