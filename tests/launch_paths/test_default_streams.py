"""Programs that launch on default streams: one a thread (CUDA_API_PER_THREAD_DEFAULT_STREAM), or
the one that all have in common.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from finished_run import MIB, Ran

from deepum.core import EventLog, Execute, events

FLAGS = {"own": ("-DCUDA_API_PER_THREAD_DEFAULT_STREAM",), "legacy": ()}


def launch_streams(log: Path) -> set[int]:
    return {
        event.stream for event in events(EventLog.read(log).records) if isinstance(event, Execute)
    }


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", list(FLAGS))
def test_numbers_are_right_and_memory_is_fetched(
    run: Callable[..., Ran],
    compile_program: Callable[..., Path],
    host_module: Path,
    tmp_path: Path,
    kind: str,
    threads: int,
) -> None:
    program = compile_program("path_default_streams.c", link_cuda=True, flags=FLAGS[kind])
    arrays = 24 // threads
    ran = run(
        ["--gpu-memory", "256MiB", "--record", str(tmp_path / "log")],
        program,
        host_module,
        threads,
        arrays,
        20,
        8,
    )
    assert ran.out == "all right\n"
    assert ran.statistics["kernels"] == threads * arrays * 8
    assert ran.simulated["peak_resident_bytes"] <= 256 * MIB
    assert ran.statistics["bytes_evicted"] > 8 * 200 * MIB
    assert len(launch_streams(tmp_path / "log")) == (threads if kind == "own" else 1)
    # How threads take turns is not the same in each run, so that launches of several are foreseen
    # less well.
    if threads == 1:
        assert ran.statistics["prefetch_coverage"] == 1
    else:
        assert ran.statistics["bytes_prefetched"] > 200 * MIB
