"""--host-memory: beyond the GPU's and the host's budget there is an error at the allocation, and
nowhere later.
"""

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
    ran = python(
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
    )
    facts = ran.facts
    assert facts["before"] == [384 * MIB, 384 * MIB]
    assert facts["taken"] == [0, 0, 0]
    assert facts["full"] == [0, 384 * MIB] == facts["after"]
    assert facts["refused"] == [OUT_OF_MEMORY] * 3
    assert facts["again"] == 0
    assert ran.statistics["allocations_refused"] == 3
    assert ran.statistics["allocatable_bytes"] == 384 * MIB
    message = (
        "memory ran out: 3 allocations were refused, beyond the 384.0 MiB that GPU and host memory"
    )
    assert message in ran.err and "try: --host-memory SIZE" in ran.err


def test_what_is_nearly_used_up_is_said(python: Python) -> None:
    """370 of 384 MiB; of 512 they are not."""
    snippet = "start()\ntry_alloc(370 * MiB)\ntell(done=1)"
    ran = python(BUDGETS, snippet)
    assert ran.statistics["allocations_refused"] == 0
    assert "memory is nearly used up: 370.0 MiB of the 384.0 MiB" in ran.err
    ran = python([*BUDGETS[:2], "--host-memory", "256MiB"], snippet)
    assert "nearly used up" not in ran.err


def test_the_programs_own_managed_memory_and_pools_count_and_are_given_back(python: Python) -> None:
    ran = python(
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
    )
    assert (
        ran.err.count(
            "deepum: warning: out of memory: 50 MiB beside 350 MiB on GPU 0 do not fit in its "
            "256 MiB and the 128 MiB of host memory"
        )
        == 1
    )
    assert ran.err.count("--host-memory SIZE (") == ran.err.count("out of memory") == 1
    assert ran.facts == {
        "refused": [OUT_OF_MEMORY] * 2,
        "after": [384 * MIB, 384 * MIB],
        "again": 0,
    }


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


@pytest.fixture
def by_hand(
    package: Path, environment: dict[str, str]
) -> Callable[..., tuple[list[int], list[str]]]:
    """What cuMemGetInfo tells on a card of 256 MiB without the launcher, and what was said of the
    host budget.
    """

    def run(*preloads: Path, **settings: str) -> tuple[list[int], list[str]]:
        made = {
            "LD_PRELOAD": " ".join(map(str, (package / "lib" / "libdeepum.so", *preloads))),
            "LD_LIBRARY_PATH": str(package / "sim"),
            "DEEPUM_SIM_MEMORY": str(256 * MIB),
            "DEEPUM_SYNC": "1",
            "DEEPUM_DAEMON": sys.executable,
            "PYTHONPATH": f"{HERE}:{package.parent}",
        }
        snippet = (
            "from budget_client import *\nstart(); refused = try_alloc(1 << 50)[0]; "
            "tell(refused=refused, info=mem_info())"
        )
        command = [sys.executable, "-c", snippet]
        done = subprocess.run(
            command,
            env=environment | made | settings,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        facts = json.loads(done.stdout)
        assert facts["refused"] == OUT_OF_MEMORY
        return facts["info"], [
            line
            for line in done.stderr.splitlines()
            if line.startswith("deepum: warning: DEEPUM_HOST_MEMORY:")
        ]

    return run


def test_more_than_the_machine_has_is_cut_with_one_line(
    by_hand: Callable[..., tuple[list[int], list[str]]],
) -> None:
    info, warnings = by_hand(DEEPUM_HOST_MEMORY=str(1 << 60))
    total = (
        next(
            int(line.split()[1])
            for line in Path("/proc/meminfo").read_text().splitlines()
            if line.startswith("MemTotal")
        )
        * 1024
    )
    assert 256 * MIB < info[1] < 256 * MIB + total
    assert len(warnings) == 1 and warnings[0].startswith("deepum: warning: DEEPUM_HOST_MEMORY: ")


V2 = ("", "0::/", {"max": "memory.max", "used": "memory.current", "cache": "inactive_file"})
V1 = (
    "memory",
    "4:memory:/",
    {
        "max": "memory.limit_in_bytes",
        "used": "memory.usage_in_bytes",
        "cache": "total_inactive_file",
    },
)


@pytest.mark.parametrize(("folder", "entry", "names"), [V2, V1], ids=["v2", "v1"])
def test_a_control_group_with_less_than_the_machine_counts(
    by_hand: Callable[..., tuple[list[int], list[str]]],
    compile_program: Callable[..., Path],
    tmp_path: Path,
    folder: str,
    entry: str,
    names: dict[str, str],
) -> None:
    def group(path: str, limit: str, used: int, cache: int) -> None:
        place = tmp_path / "sys/fs/cgroup" / folder / path
        place.mkdir(parents=True, exist_ok=True)
        (place / names["max"]).write_text(f"{limit}\n")
        (place / names["used"]).write_text(f"{used * MIB}\n")
        (place / "memory.stat").write_text(f"anon 5\n{names['cache']} {cache * MIB}\n")

    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(f"7:pids:/x\n{entry}jobs/one\n")
    group("jobs/one", "max" if not folder else str((1 << 63) - 4096), 60, 0)
    # The group above is the one that binds: 400 MiB are left.
    group("jobs", str(500 * MIB), 140, 40)
    groups = compile_program("fake_groups.c", shared=True)
    info, warnings = by_hand(groups, FAKE_ROOT=str(tmp_path))
    assert info[1] == 256 * MIB + 400 * MIB // 10 * 9 and warnings == []
    info, warnings = by_hand(groups, FAKE_ROOT=str(tmp_path), DEEPUM_HOST_MEMORY=str(300 * MIB))
    assert info[1] == 556 * MIB and warnings == []
    info, warnings = by_hand(groups, FAKE_ROOT=str(tmp_path), DEEPUM_HOST_MEMORY=str(2000 * MIB))
    assert info[1] == 256 * MIB + 400 * MIB // 10 * 9
    assert len(warnings) == 1 and "2000 MiB" in warnings[0] and "360 MiB" in warnings[0]


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
