"""Stream capture and graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Script = Callable[..., Any]

BEGIN = """
        M = d.CUstreamCaptureMode
        GLOBAL, THREAD, RELAXED = M.CU_STREAM_CAPTURE_MODE_GLOBAL, M.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, M.CU_STREAM_CAPTURE_MODE_RELAXED
        module, s, n = Module(), stream(), 1024
        p, q = managed(n), managed(n)
        def capture(work, mode=GLOBAL):
            ck(d.cuStreamBeginCapture(s, mode))
            work()
            return ck(d.cuStreamEndCapture(s))
        def nodes(graph):
            count = ck(d.cuGraphGetNodes(graph))[1]
            return ck(d.cuGraphGetNodes(graph, count))[0]
        def run(graph, times=1):
            exe = ck(d.cuGraphInstantiate(graph, 0))
            for _ in range(times):
                ck(d.cuGraphLaunch(exe, s))
            ck(d.cuStreamSynchronize(s))
            return exe
"""


def test_captured_work_runs_at_each_launch_and_not_before(script: Script) -> None:
    ran = script(
        BEGIN
        + """
        put(p, np.ones(n))
        def work():
            ck(module.scale(s, p, n, 2.0))
            ck(d.cuMemcpyDtoDAsync(q, p, 4 * n, s))
            ck(d.cuMemsetD8Async(p, 0, 4, s))
        graph = capture(work)
        ck(d.cuCtxSynchronize())
        assert (get(p, n) == 1).all()
        assert [ck(d.cuGraphNodeGetType(x)).value for x in nodes(graph)] == [0, 1, 2]
        run(graph, 3)
        assert (get(q, n)[1:] == 8).all() and get(p, n)[0] == 0
        """
    )
    assert ran.statistics[0]["kernels"] == 3


def test_capture_runs_across_streams_by_events(script: Script) -> None:
    script(
        BEGIN
        + """
        other, fork, join = stream(), ck(d.cuEventCreate(2)), ck(d.cuEventCreate(2))
        def work():
            ck(module.set(s, p, n, 1.0))
            ck(d.cuEventRecord(fork, s))
            ck(d.cuStreamWaitEvent(other, fork, 0))
            assert ck(d.cuStreamIsCapturing(other)) == d.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE
            ck(d.cuMemcpyDtoDAsync(q, p, 4 * n, other))
            ck(d.cuEventRecord(join, other))
            ck(d.cuStreamWaitEvent(s, join, 0))
            ck(module.scale(s, p, n, 5.0))
        graph = capture(work)
        assert ck(d.cuStreamIsCapturing(other)) == d.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE
        a, b, c = nodes(graph)
        assert int(ck(d.cuGraphNodeGetDependencies(b, 5))[0][0]) == int(a)
        assert {int(x) for x in ck(d.cuGraphNodeGetDependencies(c, 2))[0]} == {int(a), int(b)}
        run(graph, 2)
        assert (get(q, n) == 1).all() and (get(p, n) == 5).all()
        """
    )


def test_work_of_another_stream_that_is_not_joined_fails_the_capture(script: Script) -> None:
    script(
        BEGIN
        + """
        other, fork = stream(), ck(d.cuEventCreate(2))
        ck(d.cuStreamBeginCapture(s, GLOBAL))
        ck(d.cuEventRecord(fork, s))
        ck(d.cuStreamWaitEvent(other, fork, 0))
        ck(module.set(other, p, n, 1.0))
        assert error(d.cuStreamEndCapture(s)) == "STREAM_CAPTURE_UNJOINED"
        ck(module.set(other, p, n, 1.0))
        ck(d.cuCtxSynchronize())
        """
    )


def test_calls_that_cannot_be_captured_spoil_the_capture(script: Script) -> None:
    script(
        BEGIN
        + """
        def refused(call, name):
            ck(d.cuStreamBeginCapture(s, GLOBAL))
            ck(module.set(s, p, n, 1.0))
            assert error(call()) == name, (error(call()), name)
            assert error(module.set(s, p, n, 1.0)) == "STREAM_CAPTURE_INVALIDATED"
            assert error(d.cuStreamEndCapture(s)) == "STREAM_CAPTURE_INVALIDATED"
        blocking = stream(0)
        refused(lambda: d.cuMemPrefetchAsync(p, 4096, GPU, 0, s), "STREAM_CAPTURE_UNSUPPORTED")
        refused(lambda: d.cuMemDiscardBatchAsync([p], [4096], 1, 0, s), "STREAM_CAPTURE_UNSUPPORTED")
        refused(lambda: d.cuStreamSynchronize(s), "STREAM_CAPTURE_UNSUPPORTED")
        refused(lambda: d.cuStreamQuery(s), "STREAM_CAPTURE_UNSUPPORTED")
        refused(lambda: d.cuCtxSynchronize(), "STREAM_CAPTURE_UNSUPPORTED")
        refused(lambda: d.cuMemAlloc(1024), "STREAM_CAPTURE_UNSUPPORTED")
        outside = ck(d.cuEventCreate(2))
        ck(d.cuEventRecord(outside, blocking))
        refused(lambda: d.cuStreamWaitEvent(s, outside, 0), "STREAM_CAPTURE_ISOLATION")
        """
    )


def test_a_relaxed_thread_allocates_during_capture(script: Script) -> None:
    script(
        BEGIN
        + """
        def work():
            ck(d.cuMemAlloc(1024))
            ck(module.set(s, p, n, 2.0))
        run(capture(work, RELAXED))
        ck(d.cuStreamBeginCapture(s, GLOBAL))
        assert ck(d.cuThreadExchangeStreamCaptureMode(RELAXED)) == GLOBAL
        ck(d.cuMemAlloc(1024))
        assert ck(d.cuThreadExchangeStreamCaptureMode(GLOBAL)) == RELAXED
        ck(module.set(s, q, n, 3.0))
        run(ck(d.cuStreamEndCapture(s)))
        assert (get(p, n) == 2).all() and (get(q, n) == 3).all()
        """
    )


def test_the_default_stream_may_not_be_used_while_a_blocking_stream_captures(
    script: Script,
) -> None:
    script(
        BEGIN
        + """
        s = stream(0)
        ck(d.cuStreamBeginCapture(s, GLOBAL))
        assert error(module.set(0, p, n, 1.0)) == "STREAM_CAPTURE_IMPLICIT"
        assert error(d.cuStreamEndCapture(s)) == "STREAM_CAPTURE_INVALIDATED"
        assert error(d.cuStreamBeginCapture(0, GLOBAL)) == "ILLEGAL_STATE"
        """
    )


def test_graphs_built_by_hand(script: Script) -> None:
    script(
        BEGIN
        + """
        graph = ck(d.cuGraphCreate(0))
        def kernel(name, *values):
            node = d.CUDA_KERNEL_NODE_PARAMS()
            node.func = module.functions[name]
            node.gridDimX = node.gridDimY = node.gridDimZ = node.blockDimX = node.blockDimY = node.blockDimZ = 1
            node.kernelParams = module.values(name, *values)
            return node
        set_ = ck(d.cuGraphAddKernelNode(graph, [], 0, kernel("set", p, n, 3.0)))
        empty = ck(d.cuGraphAddEmptyNode(graph, [set_], 1))
        scale = ck(d.cuGraphAddKernelNode(graph, [empty], 1, kernel("scale", p, n, 2.0)))
        fill = d.CUDA_MEMSET_NODE_PARAMS()
        fill.dst, fill.elementSize, fill.value, fill.width, fill.height = int(q), 4, 0, n, 1
        memset = ck(d.cuGraphAddMemsetNode(graph, [], 0, fill, ctx))
        add = ck(d.cuGraphAddKernelNode(graph, [memset], 1, kernel("add", q, p, q, n)))
        ck(d.cuGraphAddDependencies(graph, [scale], [add], None, 1))
        exe = run(graph)
        assert (get(q, n) == 6).all()
        back = ck(d.cuGraphKernelNodeGetParams(scale))
        assert int(back.func) == int(module.functions["scale"]) and back.gridDimX == 1
        # A launched graph is changed by its nodes, the graph it came from is not.
        ck(d.cuGraphExecKernelNodeSetParams(exe, scale, kernel("scale", p, n, 4.0)))
        ck(d.cuGraphLaunch(exe, s)); ck(d.cuStreamSynchronize(s))
        assert (get(q, n) == 12).all()
        run(graph)
        assert (get(q, n) == 6).all()
        # An update takes a graph of the same shape.
        ck(d.cuGraphKernelNodeSetParams(set_, kernel("set", p, n, 5.0)))
        ck(d.cuGraphExecUpdate(exe, graph))
        ck(d.cuGraphLaunch(exe, s)); ck(d.cuStreamSynchronize(s))
        assert (get(q, n) == 10).all()
        twin = ck(d.cuGraphClone(graph))
        assert len(nodes(twin)) == 5 and int(ck(d.cuGraphNodeFindInClone(add, twin))) != int(add)
        ck(d.cuGraphDestroy(graph))
        run(twin)
        assert (get(q, n) == 10).all()
        parent = ck(d.cuGraphCreate(0))
        child = ck(d.cuGraphAddChildGraphNode(parent, [], 0, twin))
        ck(d.cuGraphAddKernelNode(parent, [child], 1, kernel("scale", q, n, 10.0)))
        run(parent)
        assert (get(q, n) == 100).all()
        cycle = nodes(parent)
        ck(d.cuGraphAddDependencies(parent, [cycle[1]], [cycle[0]], None, 1))
        assert error(d.cuGraphInstantiate(parent, 0)) == "INVALID_VALUE"
        """
    )


def test_branches_run_side_by_side(script: Script) -> None:
    """The second branch is not held up by the first, whose gate is opened by the second's end."""
    script(
        BEGIN
        + """
        other, fork, join, gate = stream(), ck(d.cuEventCreate(2)), ck(d.cuEventCreate(2)), Gate()
        def work():
            ck(d.cuEventRecord(fork, s))
            ck(d.cuStreamWaitEvent(other, fork, 0))
            gate.hold(s)
            ck(module.set(s, p, n, 1.0))
            ck(module.set(other, p, n, 2.0))
            ck(d.cuStreamWriteValue32(other, gate.address, 1, 0))
            ck(d.cuEventRecord(join, other))
            ck(d.cuStreamWaitEvent(s, join, 0))
        run(capture(work))
        assert (get(p, n) == 1).all()
        """
    )


def test_a_graph_costs_the_host_one_call(script: Script) -> None:
    script(
        BEGIN
        + """
        def work():
            for _ in range(500):
                ck(module.slow(s, 1))
        def time_of(call):
            start, end = ck(d.cuEventCreate(0)), ck(d.cuEventCreate(0))
            ck(d.cuEventRecord(start, s))
            call()
            ck(d.cuEventRecord(end, s))
            ck(d.cuStreamSynchronize(s))
            return ck(d.cuEventElapsedTime(start, end))
        exe = ck(d.cuGraphInstantiate(capture(work), 0))
        in_a_graph, one_by_one = time_of(lambda: ck(d.cuGraphLaunch(exe, s))), time_of(work)
        assert in_a_graph < 0.7 * one_by_one, (in_a_graph, one_by_one)
        """
    )


def test_a_joined_stream_may_be_destroyed_before_the_capture_ends(script: Script) -> None:
    script(
        BEGIN
        + """
        for join in (True, False):
            other, fork, joined = stream(), ck(d.cuEventCreate(2)), ck(d.cuEventCreate(2))
            ck(d.cuStreamBeginCapture(s, GLOBAL))
            ck(d.cuEventRecord(fork, s))
            ck(d.cuStreamWaitEvent(other, fork, 0))
            ck(module.set(other, p, n, 4.0))
            if join:
                ck(d.cuEventRecord(joined, other))
                ck(d.cuStreamWaitEvent(s, joined, 0))
                ck(module.scale(s, p, n, 2.0))
            ck(d.cuStreamDestroy(other))
            if join:
                run(ck(d.cuStreamEndCapture(s)))
                assert (get(p, n) == 8).all()
            else:
                assert error(d.cuStreamEndCapture(s)) == "STREAM_CAPTURE_UNJOINED"
        """
    )


def test_a_capture_ends_for_all_when_its_first_stream_is_destroyed(script: Script) -> None:
    script(
        BEGIN
        + """
        first, other, fork = stream(), stream(), ck(d.cuEventCreate(2))
        ck(d.cuStreamBeginCapture(first, GLOBAL))
        ck(d.cuEventRecord(fork, first))
        ck(d.cuStreamWaitEvent(other, fork, 0))
        ck(module.set(other, p, n, 4.0))
        ck(d.cuStreamDestroy(first))
        assert ck(d.cuStreamIsCapturing(other)) == d.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE
        assert error(d.cuStreamWaitEvent(other, fork, 0)) == "STREAM_CAPTURE_INVALIDATED"
        ck(d.cuMemAlloc(1024))
        ck(module.set(other, p, n, 5.0))
        ck(d.cuStreamSynchronize(other))
        assert (get(p, n) == 5).all()
        """
    )


def test_events_and_children_are_changed_in_place(script: Script) -> None:
    script(
        BEGIN
        + """
        old, new, gone = (ck(d.cuEventCreate(0)) for _ in range(3))
        ck(d.cuEventDestroy(gone))
        graph, child, empty = (ck(d.cuGraphCreate(0)) for _ in range(3))
        def fill(graph, value):
            f = d.CUDA_MEMSET_NODE_PARAMS()
            f.dst, f.elementSize, f.value, f.width, f.height = int(p), 1, value, 4 * n, 1
            return ck(d.cuGraphAddMemsetNode(graph, [], 0, f, ctx))
        first = fill(child, 1)
        inner = ck(d.cuGraphAddChildGraphNode(graph, [], 0, child))
        record = ck(d.cuGraphAddEventRecordNode(graph, [inner], 1, old))
        wait = ck(d.cuGraphAddEventWaitNode(graph, [record], 1, old))
        assert error(d.cuGraphAddEventWaitNode(graph, [], 0, gone)) == "INVALID_VALUE"
        exe = run(graph)
        byte = lambda: get(p, 1).tobytes()[0]
        assert byte() == 1 and ck(d.cuEventQuery(old)) is None
        ck(d.cuGraphExecEventRecordNodeSetEvent(exe, record, new))
        ck(d.cuGraphExecEventWaitNodeSetEvent(exe, wait, new))
        later = ck(d.cuGraphCreate(0))
        fill(later, 2)
        ck(d.cuGraphExecChildGraphNodeSetParams(exe, inner, later))
        assert error(d.cuGraphExecChildGraphNodeSetParams(exe, inner, empty)) == "INVALID_VALUE"   # of another shape
        assert error(d.cuGraphExecEventRecordNodeSetEvent(exe, record, gone)) == "INVALID_VALUE"
        ck(d.cuGraphLaunch(exe, s)); ck(d.cuStreamSynchronize(s))
        assert byte() == 2 and ck(d.cuEventElapsedTime(old, new)) > 0
        ck(d.cuGraphEventRecordNodeSetEvent(record, new)); ck(d.cuGraphEventWaitNodeSetEvent(wait, new))
        assert int(ck(d.cuGraphEventRecordNodeGetEvent(record))) == int(new) == int(ck(d.cuGraphEventWaitNodeGetEvent(wait)))
        """
    )


def test_host_functions_in_graphs(
    run_sim: Script, compile_program: Script, sim_module: Any
) -> None:
    for line in run_sim(
        compile_program("sim_graph_host.c", link_cuda=True), sim_module
    ).out.splitlines():
        assert line.endswith(": yes"), line


def test_user_objects_live_as_long_as_what_needs_them(
    run_sim: Script, compile_program: Script
) -> None:
    lines = run_sim(compile_program("sim_user_objects.c", link_cuda=True)).out.splitlines()
    assert len(lines) > 8
    assert [line for line in lines if not line.endswith(": yes")] == []
