"""However a program reaches the driver, it reaches the hooks, and nothing else changes."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from running import Ran

ROOT = Path(__file__).parent.parent.parent
REPORT = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"


@pytest.fixture(scope="module")
def other_library(compile_c: Callable[..., Path]) -> Path:
    after = compile_c("hook_after.c", "other/libafter.so", "-shared", "-fPIC")
    return compile_c(
        "hook_next.c",
        "other/libother.so",
        "-shared",
        "-fPIC",
        "-Wl,--no-as-needed",
        str(after),
        f"-Wl,-rpath,{after.parent}",
    )


def table_symbols() -> set[str]:
    """Every exported name that hooks.def declares."""
    names: set[str] = set()
    text = re.sub(r"//.*", "", (ROOT / "kernel_hooks" / "hooks.def").read_text())
    for match in re.finditer(r"^HOOK(_PER_THREAD)?\((\w+), \w+, \d+,(?:\s*(\w+),)?", text, re.M):
        names.add(match[2])
        if match[1]:
            names.add(match[2] + match[3])
    return names


def test_exports_exactly_what_it_interposes(shim: Path) -> None:
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", shim], check=True, capture_output=True, text=True
    ).stdout
    exported = {line.split()[-1] for line in listing.splitlines()}
    assert len(table_symbols()) > 150
    assert exported == table_symbols() | {
        "dlsym",
        REPORT,
        "cuptiSubscribe",
        "cuptiSubscribe_v2",
        "cuptiActivityRegisterCallbacks",
    }


@pytest.mark.skipif(
    bool(os.environ.get("DEEPUM_TEST_PRELOAD")),
    reason="under a sanitizer it needs that one's runtime",
)
def test_needs_only_libc(shim: Path) -> None:
    listing = subprocess.run(
        ["readelf", "-d", shim], check=True, capture_output=True, text=True
    ).stdout
    needed = set(re.findall(r"NEEDED.*\[(.+)\]", listing))
    assert all(re.match(r"(libc|libm|libpthread|libdl|ld-linux.*)\.so", name) for name in needed), (
        needed
    )


def test_linked_program(
    run: Callable[..., Ran], compile_c: Callable[..., Path], fake_driver: Path
) -> None:
    program = compile_c("hook_linked.c", "linked", str(fake_driver / "libcuda.so.1"))
    facts = run([program]).facts()
    assert facts == {
        "alloc": "cuMemAllocManaged",
        "memset": "cuMemsetD32_v2",
        "prefetch": "cuMemPrefetchAsync_v2",
        "launch": "cuLaunchKernel",
    }


def test_linked_program_with_per_thread_streams(
    run: Callable[..., Ran], compile_c: Callable[..., Path], fake_driver: Path
) -> None:
    program = compile_c(
        "hook_linked.c",
        "linked_per_thread",
        "-DCUDA_API_PER_THREAD_DEFAULT_STREAM",
        str(fake_driver / "libcuda.so.1"),
    )
    facts = run([program]).facts()
    assert facts["memset"] == "cuMemsetD32_v2_ptds"
    assert facts["prefetch"] == "cuMemPrefetchAsync_v2_ptsz"
    assert facts["launch"] == "cuLaunchKernel_ptsz"


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("preloaded", [True, False])
def test_resolvers(
    run: Callable[..., Ran],
    compile_c: Callable[..., Path],
    other_library: Path,
    preloading: Callable[..., dict[str, str]],
    level: str,
    preloaded: bool,
) -> None:
    program = compile_c("hook_resolvers.c", f"resolvers{level}", level, "-ldl")
    without = {} if preloaded else {"LD_PRELOAD": preloading().get("LD_PRELOAD")}
    ran = run([program, other_library], DEEPUM_LOG="1", **without)
    facts = ran.facts()
    # A form of a later CUDA, of another signature: it cannot be hooked, and that is said once.
    assert (
        ran.err.count("cuMemAlloc: the program asks for the form of CUDA 13.5")
        == ran.err.count("\n")
        == int(preloaded)
    )
    if preloaded:
        assert facts["dlsym_alloc"] == facts["gpa_alloc"] == facts["gpa1_alloc"] == "shim"
        assert all(
            facts[key] == 1
            for key in (
                "gpa_gpa",
                "gpa_gpa_v1",
                "prefetch_8000",
                "prefetch_12020",
                "launch_ptsz",
                "launch",
            )
        )
        assert facts["next_cu"] != "shim"
    else:
        assert facts["dlsym_alloc"] == "driver"
    assert facts["dlsym_alloc_v1"] == facts["dlsym_missing"] == "none"
    assert (
        facts["dlsym_init"]
        == facts["gpa_init"]
        == facts["unknown"]
        == facts["later_form"]
        == "driver"
    )
    assert (
        facts["error"] == 1
        and facts["empty_name"] == 500
        and facts["null_function"] == 1
        and facts["gpa_too_old"] == 1
    )
    assert facts["cublas"] == facts["cudnn"] == facts["fancy"] == "other"
    assert facts["next"] == "after"
    assert facts["default"] == 1


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_rtld_next_from_a_preloaded_library(
    run: Callable[..., Ran],
    compile_c: Callable[..., Path],
    other_library: Path,
    shim: Path,
    preloading: Callable[..., dict[str, str]],
    level: str,
) -> None:
    program = compile_c("hook_resolvers.c", f"resolvers{level}", level, "-ldl")
    for order in ((shim, other_library), (other_library, shim)):
        assert run([program, other_library], **preloading(*order)).facts()["next"] == "after"


def test_driver_that_answers_with_other_addresses(
    run: Callable[..., Ran], compile_c: Callable[..., Path], other_library: Path
) -> None:
    program = compile_c("hook_resolvers.c", "resolvers-O2", "-O2", "-ldl")
    assert run([program, other_library], FAKE_OTHER_POINTERS="1").facts()["launch"] == 1


def test_disabled_is_inert(
    run: Callable[..., Ran], compile_c: Callable[..., Path], fake_driver: Path, other_library: Path
) -> None:
    linked = compile_c("hook_linked.c", "linked", str(fake_driver / "libcuda.so.1"))
    assert run([linked], DEEPUM_DISABLE="1").facts()["alloc"] == "cuMemAlloc_v2"
    program = compile_c("hook_resolvers.c", "resolvers-O2", "-O2", "-ldl")
    facts = run([program, other_library], DEEPUM_DISABLE="1").facts()
    assert facts["dlsym_alloc"] == facts["gpa_alloc"] == "driver"


def test_programs_without_cuda_are_left_alone(run: Callable[..., Ran]) -> None:
    assert run(["/bin/echo", "hello"]).out == "hello\n"
    done = run(["/bin/sh", "-c", "exit 7"])
    assert done.code == 7 and done.err == ""
