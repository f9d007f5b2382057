"""The stand-in libcupti: records of page faults as a client of NVIDIA's takes them, and one
subscriber at a time.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Script = Callable[..., Any]
START = "        from cupti_client import *\n"


def test_records_are_the_faults_of_the_card(script: Script) -> None:
    ran = script(
        START
        + """
        import json
        m, cupti = Module(), Cupti(room=3)
        cupti.start()
        p = managed(8 * BLOCK // 4)
        first = int(p) // BLOCK
        ck(m.set(0, p, BLOCK // 4, 2.0))
        ck(m.add(0, int(p) + BLOCK, int(p) + 2 * BLOCK, int(p) + 3 * BLOCK, BLOCK // 4))
        ck(m.scale(0, int(p) + 4 * BLOCK, 4 * BLOCK // 4, 2.0))
        ck(d.cuCtxSynchronize())
        seen = cupti.flush()
        assert [(f.block - first, f.kind) for f in seen] == [(0, "w"), (1, "r"), (2, "r"), (3, "w"), *((4 + i, "w") for i in range(4))]
        assert all(f.device == 0 and 0 < f.start < f.end for f in seen)
        assert cupti.buffers == 3 and cupti.dropped() == 0
        assert cupti.flush() == []
        print(json.dumps(sum(f.faults for f in seen)))
        """
    )
    assert json.loads(ran.out) == ran.statistics[-1]["faults"] > 0


def test_a_write_to_a_duplicate_is_recorded_as_one_write(script: Script) -> None:
    script(
        START
        + """
        m, cupti = Module(), Cupti()
        p = managed(BLOCK // 4)
        q = device(BLOCK // 4)
        put(p, np.ones(BLOCK // 4))
        ck(d.cuMemPrefetchAsync(p, BLOCK, CPU, 0, 0))
        ck(d.cuMemAdvise(p, BLOCK, d.CUmem_advise.CU_MEM_ADVISE_SET_READ_MOSTLY, GPU))
        ck(m.add(0, p, p, q, BLOCK // 4))
        ck(d.cuCtxSynchronize())
        cupti.start()
        ck(m.set(0, p, BLOCK // 4, 1.0))
        ck(d.cuCtxSynchronize())
        assert [(f.block, f.faults, f.kind) for f in cupti.flush()] == [(int(p) // BLOCK, 1, "w")]
        """
    )


def test_only_what_happens_while_it_is_enabled_is_recorded(script: Script) -> None:
    script(
        START
        + """
        m, cupti = Module(), Cupti()
        p = managed(3 * BLOCK // 4)
        touch = lambda i: (ck(m.set(0, int(p) + i * BLOCK, BLOCK // 4, 1.0)), ck(d.cuCtxSynchronize()))
        touch(0)
        cupti.start()
        touch(1)
        assert cupti.disable() == 0
        touch(2)
        assert [f.block - int(p) // BLOCK for f in cupti.flush()] == [1]
        """
    )


def test_a_client_without_buffers_loses_records_and_is_told(script: Script) -> None:
    script(
        START
        + """
        m, cupti = Module(), Cupti(room=0)
        cupti.start()
        p = managed(3 * BLOCK // 4)
        ck(m.set(0, p, 3 * BLOCK // 4, 1.0))
        ck(d.cuCtxSynchronize())
        assert cupti.flush() == []
        assert cupti.dropped() == 3 and cupti.dropped() == 0
        """
    )


def test_there_is_one_subscriber_at_a_time(script: Script) -> None:
    script(
        START
        + """
        cupti = Cupti()
        error, handle = cupti.subscribe()
        assert error == 0
        assert cupti.subscribe()[0] == MULTIPLE_SUBSCRIBERS
        assert cupti.unsubscribe(None) == 1
        assert cupti.unsubscribe(handle) == 0
        assert cupti.unsubscribe(handle) == 1
        assert cupti.subscribe()[0] == 0
        """
    )


def test_calls_in_a_wrong_order_or_of_what_is_not_simulated_are_refused(script: Script) -> None:
    script(
        START
        + """
        cupti = Cupti()
        assert cupti.lib.cuptiActivityFlushAll(0) == 7         # INVALID_OPERATION: nobody to give records to
        assert cupti.configure() == 15                         # NOT_INITIALIZED
        ctx = context()
        assert cupti.enable() == 7                             # before it is configured
        assert cupti.configure(kind=9) == 1                    # INVALID_PARAMETER
        assert cupti.configure(kind=1) == 28                   # UM_PROFILING_NOT_SUPPORTED
        assert cupti.configure() == 0 and cupti.enable() == 0
        assert cupti.enable(3) == 21                           # INVALID_KIND: kernels are not recorded
        assert cupti.lib.cuptiActivityRegisterCallbacks(None, None) == 1
        assert cupti.lib.cuptiEnableDomain(1, None, 1) == 27   # NOT_SUPPORTED
        text = ctypes.c_char_p()
        assert cupti.lib.cuptiGetResultString(27, ctypes.byref(text)) == 0 and text.value == b"CUPTI_ERROR_NOT_SUPPORTED"
        """,
        bare=True,
    )


def test_layouts_and_numbers_are_those_of_nvidias_header(
    cuda_include: Path, tmp_path: Path
) -> None:
    if not (cuda_include / "cupti.h").is_file():
        pytest.skip("no cupti.h: pip install nvidia-cuda-cupti")
    pairs = {
        "DEEPUM_CUPTI_API_VERSION": "CUPTI_API_VERSION",
        **{
            f"DEEPUM_CUPTI_{name}": f"CUPTI_{name}"
            for name in ("SUCCESS", "ERROR_INVALID_PARAMETER", "ERROR_INVALID_OPERATION")
        },
        **{
            f"DEEPUM_CUPTI_ERROR_{n}": f"CUPTI_ERROR_{n}"
            for n in ("MAX_LIMIT_REACHED", "NOT_INITIALIZED", "INVALID_KIND")
        },
        **{
            f"DEEPUM_CUPTI_ERROR_{n}": f"CUPTI_ERROR_{n}"
            for n in ("NOT_SUPPORTED", "UM_PROFILING_NOT_SUPPORTED", "UNKNOWN")
        },
        "DEEPUM_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED": (
            "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
        ),
        "DEEPUM_CUPTI_KIND_UNIFIED_MEMORY_COUNTER": "CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER",
        "DEEPUM_CUPTI_FLUSH_FORCED": "CUPTI_ACTIVITY_FLAG_FLUSH_FORCED",
        "DEEPUM_CUPTI_SCOPE_PROCESS_SINGLE_DEVICE": (
            "CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE"
        ),
        "DEEPUM_CUPTI_SCOPE_PROCESS_ALL_DEVICES": (
            "CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES"
        ),
        "DEEPUM_CUPTI_COUNTER_GPU_PAGE_FAULT": (
            "CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT"
        ),
        "(DEEPUM_CUPTI_COUNTER_LAST + 1)": "CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_COUNT",
        **{
            f"DEEPUM_CUPTI_ACCESS_{name}": f"CUPTI_ACTIVITY_UNIFIED_MEMORY_ACCESS_TYPE_{name}"
            for name in ("UNKNOWN", "READ", "WRITE", "ATOMIC", "PREFETCH")
        },
        "sizeof(deepum_cupti_counter)": "sizeof(CUpti_ActivityUnifiedMemoryCounter3)",
        "offsetof(deepum_cupti_counter, processors)": "sizeof(CUpti_ActivityUnifiedMemoryCounter2)",
        "sizeof(deepum_cupti_counter_config)": "sizeof(CUpti_ActivityUnifiedMemoryCounterConfig)",
    }
    members = {
        "counter_kind": "counterKind", "value": "value", "start": "start", "end": "end", "address": "address", "source": "srcId",
        "destination": "dstId", "stream": "streamId", "process": "processId", "flags": "flags", "processors": "processors",
    }  # fmt: skip
    theirs = "CUpti_ActivityUnifiedMemoryCounter"
    layout = [
        (f"offsetof(deepum_cupti_counter, {m})", f"offsetof({theirs}3, {member})")
        for m, member in members.items()
    ]
    layout += [
        (ours, member.replace("Counter3", "Counter2"))
        for ours, member in layout
        if "processors" not in member
    ]
    layout += [
        (f"offsetof(deepum_cupti_counter_config, {m})", f"offsetof({theirs}Config, {member})")
        for m, member in {
            "scope": "scope",
            "kind": "kind",
            "device": "deviceId",
            "enable": "enable",
        }.items()
    ]
    checks = [
        f'_Static_assert({ours} == {expected}, "{expected}");'
        for ours, expected in [*pairs.items(), *layout]
    ]
    source = tmp_path / "check.c"
    source.write_text(
        "\n".join(
            [
                "#include <cupti.h>",
                "#include <cupti_activity_deprecated.h>",
                '#include "cupti_abi.h"',
                *checks,
                "",
            ]
        )
    )
    abi = Path(__file__).resolve().parent.parent.parent / "native" / "cupti_abi"
    subprocess.run(
        ["gcc", "-fsyntax-only", f"-I{cuda_include}", f"-I{abi}", str(source)], check=True
    )


@pytest.mark.torch
def test_pytorchs_profiler_says_what_is_missing_and_the_program_goes_on(
    run_sim: Callable[..., Any], sim: Path
) -> None:
    program = """
import torch
from torch.profiler import ProfilerActivity, profile
x = torch.ones(64, 64, device="cuda")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
    y = x @ x
    torch.cuda.synchronize()
print(any(event.key == "aten::mm" for event in seen.key_averages()))
"""
    libraries = ("libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libcupti.so.13")
    ran = run_sim(
        sys.executable,
        "-c",
        program,
        env={"LD_PRELOAD": " ".join(str(sim / name) for name in libraries)},
    )
    assert ran.out == "True\n"
    assert "CUPTI_ERROR_NOT_SUPPORTED" in ran.err
