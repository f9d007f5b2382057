"""--host-memory: beyond the GPU's and the host's budget there is an error at the allocation, and nowhere later."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from budget_tools import HERE, MIB, SOFT, Ran

OUT_OF_MEMORY = 2
BUDGETS = ["--gpu-memory", "256MiB", "--host-memory", "128MiB"]
Python = Callable[..., Ran]


@pytest.mark.parametrize("env", [{}, SOFT], ids=["card", "budget"])
def test_both_budgets_are_there_and_no_more(python: Python, env: dict[str, str]) -> None:
    facts = python(
        BUDGETS,
        """
start()
before = mem_info()
taken = [try_alloc(size * MiB) for size in (300, 60, 24)]
full = mem_info()
refused = [try_alloc(2 * MiB)[0], try_managed(4096)[0], try_alloc_async(2 * MiB)[0]]
free(taken[1][1])
again = try_alloc(60 * MiB)[0]
tell(before=before, taken=[result for result, _ in taken], full=full, refused=refused, again=again, after=mem_info())
""",
        env=env,
    ).facts
    assert facts["before"] == [384 * MIB, 384 * MIB]
    assert facts["taken"] == [0, 0, 0]
    assert facts["full"] == [0, 384 * MIB] == facts["after"]
    assert facts["refused"] == [OUT_OF_MEMORY] * 3
    assert facts["again"] == 0


def test_the_programs_own_managed_memory_and_pools_count_and_are_given_back(python: Python) -> None:
    facts = python(
        BUDGETS,
        """
start()
own, pooled = try_managed(200 * MiB)[1], try_alloc_async(150 * MiB)[1]
refused = [try_alloc(50 * MiB)[0], try_managed(50 * MiB)[0]]
cuda.cuMemFreeAsync(c.c_uint64(pooled), None)
cuda.cuCtxSynchronize()
free(own)
tell(refused=refused, after=mem_info(), again=try_alloc(384 * MiB)[0])
""",
    ).facts
    assert facts == {"refused": [OUT_OF_MEMORY] * 2, "after": [384 * MIB, 384 * MIB], "again": 0}


def test_threads_cannot_both_take_the_last_piece(python: Python) -> None:
    facts = python(
        BUDGETS,
        """
context = start()
results = []
def take():
    cuda.cuCtxSetCurrent(context)
    while True:
        results.append(try_alloc(2 * MiB)[0])
        if results[-1]:
            return
threads = [threading.Thread(target=take) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
tell(taken=results.count(0), refused=results.count(2), all=len(results), after=mem_info())
""",
    ).facts
    assert facts == {"taken": 192, "refused": 8, "all": 200, "after": [0, 384 * MIB]}


def test_more_than_the_machine_has_is_cut_with_one_line(package: Path, environment: dict[str, str]) -> None:
    by_hand = {
        "LD_PRELOAD": str(package / "lib" / "libdeepum.so"),
        "LD_LIBRARY_PATH": str(package / "sim"),
        "DEEPUM_SIM_MEMORY": str(256 * MIB),
        "DEEPUM_SYNC": "1",
        "DEEPUM_DAEMON": sys.executable,
        "DEEPUM_HOST_MEMORY": str(1 << 60),
        "PYTHONPATH": f"{HERE}:{package.parent}",
    }
    snippet = "from budget_client import *\nstart(); tell(refused=try_alloc(1 << 50)[0], info=mem_info())"
    done = subprocess.run(
        [sys.executable, "-c", snippet], env=environment | by_hand, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    total = next(int(line.split()[1]) for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal")) * 1024
    assert facts["refused"] == OUT_OF_MEMORY
    assert 256 * MIB < facts["info"][1] < 256 * MIB + total
    lines = [line for line in done.stderr.splitlines() if "DEEPUM_HOST_MEMORY" in line]
    assert len(lines) == 1 and lines[0].startswith("deepum: warning: DEEPUM_HOST_MEMORY: ")


TORCH = """
import torch
before = torch.cuda.mem_get_info()
kept = torch.empty(300 << 20, dtype=torch.uint8, device="cuda")
try:
    torch.empty(100 << 20, dtype=torch.uint8, device="cuda")
    error = None
except torch.OutOfMemoryError as caught:
    error = str(caught)
del kept
torch.cuda.empty_cache()
again = torch.ones(96 << 20, dtype=torch.float32, device="cuda")
tell(before=before, error=error, again=again.numel(), after=torch.cuda.mem_get_info())
"""


@pytest.mark.torch
def test_pytorch_raises_its_usual_error_and_goes_on(python: Python) -> None:
    facts = python(BUDGETS, TORCH).facts
    assert facts["before"] == [384 * MIB, 384 * MIB]
    assert "Tried to allocate 100.00 MiB" in facts["error"]
    assert "total capacity of 384.00 MiB" in facts["error"]
    assert facts["again"] == 96 << 20
    assert facts["after"] == [0, 384 * MIB]
