"""CUDA graphs, captured and made by hand, launched with more memory than the card has: right,
foreseen, and fetched for.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from deepum._core import lib
from finished_run import Ran

from deepum.core import EventLog, Execute, events

Run = Callable[..., Ran]
SMALL = ["--gpu-memory", "256MiB"]
ARRAYS = 24  # 480 MiB
HEAD = f"""
context_of(0)
arrays = Arrays({ARRAYS})
m, s = arrays.module, arrays.stream
"""
LAUNCHED = """
for _ in range(ROUNDS):
    for graph in graphs:
        ck(d.cuGraphLaunch(graph, s))
    arrays.wait()
arrays.check(ROUNDS)
"""
CAPTURED = (
    """
graphs = []
for first in range(0, 24, 6):
    ck(d.cuStreamBeginCapture(s, d.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
    for k in range(first, first + 6):
        arrays.double(k)
    graphs.append(ck(d.cuGraphInstantiate(ck(d.cuStreamEndCapture(s)), 0)))
"""
    + LAUNCHED
)
FORKED = (
    """
other, forked, joined = stream(), ck(d.cuEventCreate(2)), ck(d.cuEventCreate(2))
graphs = []
for first in range(0, 24, 4):
    ck(d.cuStreamBeginCapture(s, d.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
    ck(d.cuEventRecord(forked, s)); ck(d.cuStreamWaitEvent(other, forked, 0))
    for k in range(first, first + 4):
        arrays.double(k, other if k % 2 else s)
    ck(d.cuEventRecord(joined, other)); ck(d.cuStreamWaitEvent(s, joined, 0))
    graphs.append(ck(d.cuGraphInstantiate(ck(d.cuStreamEndCapture(s)), 0)))
"""
    + LAUNCHED
)
BY_HAND = (
    """
graphs = []
for first in range(0, 24, 4):
    graph, before = ck(d.cuGraphCreate(0)), []
    for k in range(first, first + 3):
        before = [ck(d.cuGraphAddKernelNode(graph, before or None, len(before), graph_kernel(m, "scale", arrays.at[k], COUNT, 2.0)))]
    child = ck(d.cuGraphCreate(0))
    ck(d.cuGraphAddKernelNode(child, None, 0, graph_kernel(m, "scale", arrays.at[first + 3], COUNT, 2.0)))
    ck(d.cuGraphAddChildGraphNode(graph, before, 1, child))
    graphs.append(ck(d.cuGraphInstantiate(graph, 0)))
    ck(d.cuGraphDestroy(graph)); ck(d.cuGraphDestroy(child))
"""
    + LAUNCHED
)
# One graph of one node, which is given another array before each launch.
CHANGED = """
graph = ck(d.cuGraphCreate(0))
node = ck(d.cuGraphAddKernelNode(graph, None, 0, graph_kernel(m, "scale", arrays.at[0], COUNT, 2.0)))
made = ck(d.cuGraphInstantiate(graph, 0))
for _ in range(ROUNDS):
    for pointer in arrays.at:
        ck(d.cuGraphExecKernelNodeSetParams(made, node, graph_kernel(m, "scale", pointer, COUNT, 2.0)))
        ck(d.cuGraphLaunch(made, s))
    arrays.wait()
arrays.check(ROUNDS)
"""
# The same by graphs that take each other's place.
UPDATED = """
def one(pointer):
    graph = ck(d.cuGraphCreate(0))
    ck(d.cuGraphAddKernelNode(graph, None, 0, graph_kernel(m, "scale", pointer, COUNT, 2.0)))
    return graph
made = ck(d.cuGraphInstantiate(one(arrays.at[0]), 0))
for _ in range(ROUNDS):
    for pointer in arrays.at:
        graph = one(pointer)
        ck(d.cuGraphExecUpdate(made, graph))
        ck(d.cuGraphDestroy(graph))
        ck(d.cuGraphLaunch(made, s))
    arrays.wait()
arrays.check(ROUNDS)
"""


@pytest.mark.parametrize(
    "program",
    [CAPTURED, FORKED, BY_HAND, CHANGED, UPDATED],
    ids=["captured", "forked", "hand", "changed", "updated"],
)
def test_launches_are_right_and_foreseen(driver: Run, program: str) -> None:
    ran = driver(SMALL, HEAD + program)
    assert ran.statistics["bytes_evicted"] > 8 * 200 << 20
    assert ran.statistics["launches_over_capacity"] == 0
    # The second half of the rounds: what graphs need is there before they start.
    assert ran.between_waits("faults", 4 + ARRAYS)[:4] == [0] * 4
    assert ran.statistics["prefetch_coverage"] > 0.95
    assert ran.core["predictions_right"] > 0.6 * ran.core["predictions"]


def graph_launches(log: Path) -> list[Execute]:
    return [
        e
        for e in events(EventLog.read(log).records)
        if isinstance(e, Execute) and e.flags & lib.DEEPUM_EXECUTE_GRAPH
    ]


def blocks(launch: Execute) -> list[tuple[int, int, int]]:
    return sorted(
        (r.slot, r.first, r.count) for r in (*launch.written, *launch.read, *launch.unknown)
    )


def test_a_node_that_is_changed_does_what_it_was_given_and_no_more(
    driver: Run, tmp_path: Path
) -> None:
    """Kernel, memset, copy, child graph; disabled and enabled again. What was given first comes
    back with its identity.
    """
    driver(
        ["--record", str(tmp_path / "log")],
        """
        context_of(0)
        arrays = Arrays(4)
        m, s, at = arrays.module, arrays.stream, arrays.at

        def fill(pointer):
            p = d.CUDA_MEMSET_NODE_PARAMS()
            p.dst, p.elementSize, p.width, p.height, p.value = pointer, 4, COUNT, 1, 0
            return p

        def copy(to, source):
            p = d.CUDA_MEMCPY3D()
            p.dstMemoryType = p.srcMemoryType = d.CUmemorytype.CU_MEMORYTYPE_DEVICE
            p.dstDevice, p.srcDevice, p.WidthInBytes, p.Height, p.Depth = to, source, 4 * COUNT, 1, 1
            return p

        def child(pointer):
            graph = ck(d.cuGraphCreate(0))
            ck(d.cuGraphAddKernelNode(graph, None, 0, graph_kernel(m, "scale", pointer, COUNT, 2.0)))
            return graph

        graph = ck(d.cuGraphCreate(0))
        kernel = ck(d.cuGraphAddKernelNode(graph, None, 0, graph_kernel(m, "scale", at[0], COUNT, 2.0)))
        memset = ck(d.cuGraphAddMemsetNode(graph, None, 0, fill(at[0]), arrays.context))
        memcpy = ck(d.cuGraphAddMemcpyNode(graph, None, 0, copy(at[0], at[0]), arrays.context))
        inner = ck(d.cuGraphAddChildGraphNode(graph, None, 0, child(at[0])))
        made = ck(d.cuGraphInstantiate(graph, 0))
        go = lambda: ck(d.cuGraphLaunch(made, s))
        go()
        ck(d.cuGraphExecKernelNodeSetParams(made, kernel, graph_kernel(m, "scale", at[1], COUNT, 2.0))); go()
        ck(d.cuGraphExecMemsetNodeSetParams(made, memset, fill(at[2]), arrays.context)); go()
        ck(d.cuGraphExecMemcpyNodeSetParams(made, memcpy, copy(at[1], at[2]), arrays.context)); go()
        ck(d.cuGraphExecChildGraphNodeSetParams(made, inner, child(at[3]))); go()
        ck(d.cuGraphNodeSetEnabled(made, inner, 0)); go()
        ck(d.cuGraphNodeSetEnabled(made, inner, 1)); go()
        for _ in range(2):
            p = d.CUgraphNodeParams(); p.type = d.CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMSET
            p.memset.dst, p.memset.elementSize, p.memset.width, p.memset.height = at[3], 4, COUNT, 1
            ck(d.cuGraphExecNodeSetParams(made, memset, p)); go()
        ck(d.cuGraphExecKernelNodeSetParams(made, kernel, graph_kernel(m, "scale", at[0], COUNT, 2.0)))
        ck(d.cuGraphExecMemsetNodeSetParams(made, memset, fill(at[0]), arrays.context))
        ck(d.cuGraphExecMemcpyNodeSetParams(made, memcpy, copy(at[0], at[0]), arrays.context))
        ck(d.cuGraphExecChildGraphNodeSetParams(made, inner, child(at[0]))); go()
        arrays.wait()
        """,
    )
    launches = graph_launches(tmp_path / "log")
    slots = [sorted({slot for slot, _, _ in blocks(launch)}) for launch in launches]
    assert slots == [
        [0],
        [0, 1],
        [0, 1, 2],
        [0, 1, 2],
        [1, 2, 3],
        [1, 2],
        [1, 2, 3],
        [1, 2, 3],
        [1, 2, 3],
        [0],
    ]
    assert not any(launch.flags & lib.DEEPUM_EXECUTE_PARTIAL for launch in launches)
    hashes = [launch.execution_hash for launch in launches]
    assert hashes[0] == hashes[-1] and hashes[4] == hashes[6] and hashes[7] == hashes[8]
    assert len(set(hashes)) == 7


def test_two_runs_give_graphs_the_same_identities(driver: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        driver([*SMALL, "--record", str(tmp_path / name)], HEAD + CHANGED)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert len({launch.execution_hash for launch in graph_launches(tmp_path / "a")}) == ARRAYS


TRAINING = """
import sys, torch
from torch import nn
torch.manual_seed(0)
mode = sys.argv[1]
def layers(): return [m for _ in range(2) for m in (nn.Linear(768, 3072), nn.GELU(), nn.Linear(3072, 768), nn.LayerNorm(768))]
parts = [nn.Sequential(*layers()).cuda() for _ in range(4)]
x = torch.randn(1024, 768, device="cuda", requires_grad=True)
optimizer = torch.optim.SGD([p for part in parts for p in part.parameters()], lr=1e-3, foreach=False)
if mode == "graphed callables":
    parts = torch.cuda.make_graphed_callables(tuple(parts), tuple((x,) for _ in parts))
def step():
    optimizer.zero_grad(set_to_none=mode != "graph")
    y = x
    for part in parts:
        y = part(y)
    y.square().mean().backward()
    optimizer.step()
if mode == "graph":
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
for _ in range(8):
    graph.replay() if mode == "graph" else step()
    torch.cuda.synchronize()
"""


@pytest.mark.torch
def test_pytorchs_graphed_callables_are_fetched_for(python: Run) -> None:
    """A capture's tensors die with it, and each replay uses their memory again: all of it is known,
    not just where they began.

    Its warm-up goes backwards from torch.empty_like of the outputs, so that kernels may read what
    was discarded: no error.
    """
    ran = python(SMALL, TRAINING, "graphed callables")
    assert [
        warning
        for warning in ran.statistics["warnings"]
        if "launches read memory that was discarded" not in warning
    ] == []
    assert ran.simulated["discarded_uses_sure"] == 0
    assert ran.statistics["bytes_evicted"] > 8 * 256 << 20
    assert ran.statistics["launches_over_capacity"] == 0
    assert ran.statistics["prefetch_coverage"] > 0.8


@pytest.mark.torch
def test_a_step_captured_whole_runs_where_it_fits_and_where_it_does_not(
    python: Run, tmp_path: Path
) -> None:
    """All of it is one launch. Where that needs more than the card has, the driver's faults serve
    it.
    """
    fits = python(["--gpu-memory", "2GiB", "--record", str(tmp_path / "log")], TRAINING, "graph")
    assert fits.between_waits("faults", 8) == [0] * 8
    replays = graph_launches(tmp_path / "log")
    assert len(replays) == 8 and len({replay.execution_hash for replay in replays}) == 1
    # Every block that its kernels touch: parameters, gradients, activations. 37.8 million
    # parameters are 144 MiB, gradients as much.
    assert sum(count for _, _, count in set(blocks(replays[0]))) > 2 * 72 + 40
    short = python(SMALL, TRAINING, "graph")
    assert short.statistics["kernels"] == fits.statistics["kernels"]
    assert short.statistics["launches_over_capacity"] == 8
    assert "8 launches alone needed more GPU memory than they may have; they ran" in short.err


@pytest.mark.parametrize(
    "program", [CAPTURED, FORKED, UPDATED], ids=["captured", "forked", "updated"]
)
def test_out_of_lock_step_a_graph_waits_at_its_gate_for_what_it_needs(
    driver: Run, program: str
) -> None:
    """How late decisions are depends on the machine: with gates 0.44 to 1 is in time there, without
    them 0.02 to 0.06.
    """
    ran = driver([*SMALL, "--no-sync"], HEAD + program)
    assert ran.statistics["bytes_evicted"] > 4 * 200 << 20
    without = driver([*SMALL, "--no-sync", "--tune", "gates=0"], HEAD + program)
    assert without.statistics["prefetch_coverage"] < 0.2 < ran.statistics["prefetch_coverage"]
