"""One process on several GPUs: each has a budget of its own, and what it needs is fetched to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from finished_run import MIB, SOFT, Ran

Run = Callable[..., Ran]
TWO = {"DEEPUM_SIM_DEVICES": "2"}
SWEEP = """
import json
sides = []
for ordinal in range(2):
    context_of(ordinal)
    sides.append(Arrays(20, first=100 * ordinal))
for _ in range(ROUNDS):
    for k in range(20):
        for side in sides:
            ck(d.cuCtxSetCurrent(side.context))
            side.double(k)
    for side in sides:
        side.wait()
memory = []
for side in sides:
    side.check(ROUNDS)
    memory.append(ck(d.cuMemGetInfo())[1])
print(json.dumps({"memory": memory}))
"""


def peaks(ran: Ran) -> list[int]:
    return [int(device["peak_resident_bytes"]) for device in ran.statistics["devices"]]


@pytest.mark.parametrize("env", [{}, SOFT], ids=["card", "budget"])
def test_each_keeps_its_own_budget_and_computes_right(driver: Run, env: dict[str, str]) -> None:
    ran = driver(["--gpu-memory", "256MiB,320MiB", "--host-memory", "1GiB"], SWEEP, env=env | TWO)
    assert ran.facts["memory"] == [(1024 + 256) * MIB, (1024 + 320) * MIB]
    assert 200 * MIB < peaks(ran)[0] <= 256 * MIB
    assert 270 * MIB < peaks(ran)[1] <= 320 * MIB
    assert ran.statistics["budget_overshoot_bytes"] == 0
    assert [device["memory_bytes"] for device in ran.statistics["devices"]] == (
        [256 * MIB, 320 * MIB] if not env else [16 << 30] * 2
    )
    # What was foreseen, on both: after the second round nothing is missed.
    assert ran.between_waits("faults", 2 * 5) == [0] * 10
    assert all(device["kernels"] == 20 * (1 + 8) for device in ran.statistics["devices"])
    assert all(device["bytes_prefetched"] > 400 * MIB for device in ran.statistics["devices"])


def test_one_size_is_each_ones(driver: Run) -> None:
    ran = driver(["--gpu-memory", "256MiB"], SWEEP, env=TWO)
    assert all(200 * MIB < peak <= 256 * MIB for peak in peaks(ran))


def test_pressure_on_one_moves_nothing_of_the_other(driver: Run) -> None:
    ran = driver(["--gpu-memory", "256MiB,1GiB"], SWEEP, env=TWO)
    first, second = ran.statistics["devices"]
    assert first["bytes_evicted"] > 400 * MIB
    # What was read back at the end came by the copies; nothing left before.
    assert (second["bytes_evicted"], second["bytes_prefetched"], second["bytes_h2d"]) == (0, 0, 0)
    assert peaks(ran)[1] == 400 * MIB


def test_the_summary_tells_of_each(driver: Run) -> None:
    ran = driver(["--gpu-memory", "256MiB,320MiB"], SWEEP, env=TWO)
    lines = [line for line in ran.err.splitlines() if line.startswith("deepum: GPU ")]
    assert [line[: line.index(" kernels")] for line in lines] == [
        "deepum: GPU 0: 180",
        "deepum: GPU 1: 180",
    ]
    assert lines[0].endswith("of 256.0 MiB") and lines[1].endswith("of 320.0 MiB")


def test_with_one_the_summary_tells_of_none(driver: Run) -> None:
    ran = driver(
        ["--gpu-memory", "256MiB"],
        "context_of(0); arrays = Arrays(4); arrays.wait(); arrays.check(0)",
    )
    assert "GPU 0" not in ran.err
    assert len(ran.statistics["devices"]) == 1


def test_each_reads_and_copies_the_others_memory(driver: Run) -> None:
    driver(
        ["--gpu-memory", "256MiB"],
        """
        context_of(0); here = Arrays(16, first=1)
        context_of(1); there = Arrays(16, first=101)
        there.wait(); here.wait()
        for k in range(0, 16, 2):
            ck(here.module.add(here.stream, here.at[k], there.at[k], here.at[k + 1], COUNT))
        here.wait()
        for k in range(0, 16, 2):
            ck(d.cuMemcpyPeer(there.at[k + 1], there.context, here.at[k + 1], here.context, 4 * COUNT))
            ck(d.cuCtxSetCurrent(there.context)); ck(d.cuMemcpyDtoD(there.at[k], here.at[k], 4 * COUNT))
        for k in range(0, 16, 2):
            for side in (here, there):
                ck(d.cuCtxSetCurrent(side.context))
                assert (get(side.at[k], COUNT) == 1 + k).all(), k
                assert (get(side.at[k + 1], COUNT) == (1 + k) + (101 + k)).all(), k
        """,
        env=TWO,
    )


@pytest.mark.torch
def test_a_model_that_is_spread_over_two_is_fetched_for_on_both(python: Run) -> None:
    """Each half gives memory back that the other's launches never used: its content is dropped
    without waiting for these.
    """
    script = """
        import torch
        torch.manual_seed(0)
        halves = [torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(8)]).to(f"cuda:{i}") for i in range(2)]
        optimizer = torch.optim.SGD([p for half in halves for p in half.parameters()], lr=1e-3, foreach=False)
        x = torch.randn(256, 2048, device="cuda:0")
        for _ in range(8):
            optimizer.zero_grad()
            halves[1](halves[0](x).to("cuda:1")).square().mean().backward()
            optimizer.step()
            torch.cuda.synchronize(0); torch.cuda.synchronize(1)
        """
    ran, watched = (
        python(["--gpu-memory", "256MiB,192MiB", "--policy", policy], script, env=TWO)
        for policy in ("correlation", "on-demand")
    )
    assert peaks(ran)[0] <= 256 * MIB and peaks(ran)[1] <= 192 * MIB
    assert all(device["bytes_prefetched"] > 200 * MIB for device in ran.statistics["devices"])
    assert ran.statistics["warnings"] == []
    assert ran.statistics["gpu_time_s"] < watched.statistics["gpu_time_s"] / 2
    # Each waits for the discards of the other, too.
    assert ran.statistics["faults"] < watched.statistics["faults"] / 2


@pytest.mark.parametrize(
    "text", ["256MiB,", "256MiB,1MiB", ",".join(["256MiB"] * 17), "256MiB;1GiB"]
)
def test_budgets_that_are_none_stop_the_run(deepum: Callable[..., Any], text: str) -> None:
    done = deepum("run", "--device", "sim", "--gpu-memory", text, "--", "true")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("deepum: error: --gpu-memory: ")
