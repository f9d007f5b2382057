"""Order and time: streams, events, the default stream's rules, host functions, values in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Script = Callable[..., Any]

# A kernel that takes long in virtual time, so that what is queued beside it would finish first if
# nothing held it back.
LONG = 10**12


def test_a_stream_waits_for_an_event_of_another(script: Script) -> None:
    script(
        f"""
        module, a, b, n = Module(), stream(), stream(), 1024
        p, q, done = managed(n), managed(n), ck(d.cuEventCreate(0))
        ck(module.slow(a, {LONG}))
        ck(module.set(a, p, n, 5.0))
        ck(d.cuEventRecord(done, a))
        ck(d.cuStreamWaitEvent(b, done, 0))
        ck(d.cuMemcpyDtoDAsync(q, p, 4 * n, b))
        ck(d.cuStreamSynchronize(b))
        assert (get(q, n) == 5).all()
        """
    )


def test_a_stream_that_is_held_up_holds_up_no_other(script: Script) -> None:
    script(
        """
        module, a, b, n = Module(), stream(), stream(), 1024
        p, gate = managed(n), Gate()
        gate.hold(a)
        ck(module.set(a, p, n, 1.0))
        ck(module.set(b, p, n, 2.0))
        ck(d.cuStreamSynchronize(b))
        assert error(d.cuStreamQuery(a)) == "NOT_READY"
        gate.open()
        ck(d.cuCtxSynchronize())
        assert (get(p, n) == 1).all()
        """
    )


def test_the_default_stream_joins_blocking_streams_both_ways(script: Script) -> None:
    script(
        f"""
        module, blocking, n = Module(), stream(0), 1024
        p = managed(n)
        ck(module.slow(blocking, {LONG}))
        ck(module.set(blocking, p, n, 1.0))
        ck(module.set(0, p, n, 2.0))            # after the blocking stream's work
        ck(module.set(blocking, p, n, 3.0))     # after the default stream's
        ck(d.cuCtxSynchronize())
        assert (get(p, n) == 3).all()
        """
    )


def test_the_default_stream_passes_non_blocking_streams_by(script: Script) -> None:
    script(
        """
        module, free, n = Module(), stream(1), 1024
        p, gate = managed(n), Gate()
        gate.hold(free)
        ck(module.set(free, p, n, 1.0))
        ck(module.set(0, p, n, 2.0))
        ck(d.cuStreamSynchronize(0))
        gate.open()
        ck(d.cuCtxSynchronize())
        assert (get(p, n) == 1).all()
        """
    )


def test_work_queued_on_a_destroyed_stream_still_runs_and_joins(script: Script) -> None:
    script(
        f"""
        module, s, n = Module(), stream(0), 1024
        p = managed(n)
        ck(module.slow(s, {LONG}))
        ck(module.set(s, p, n, 1.0))
        ck(d.cuStreamDestroy(s))
        ck(module.set(0, p, n, 2.0))
        ck(d.cuCtxSynchronize())
        assert (get(p, n) == 2).all()
        assert error(d.cuStreamSynchronize(s)) == "INVALID_HANDLE"
        """
    )


def test_a_wait_for_the_context_is_for_work_of_destroyed_streams_too(script: Script) -> None:
    script(
        f"""
        module, s, n = Module(), stream(1), 1024
        p = managed(n)
        ck(module.slow(s, {LONG}))
        ck(module.set(s, p, n, 1.0))
        behind = ck(d.cuEventCreate(0))
        ck(d.cuEventRecord(behind, s))
        ck(d.cuStreamDestroy(s))
        assert error(d.cuEventQuery(behind)) == "NOT_READY"
        ck(d.cuCtxSynchronize())
        ck(d.cuEventQuery(behind))
        assert (get(p, n) == 1).all()
        """
    )


def test_each_thread_has_a_default_stream_of_its_own(script: Script) -> None:
    script(
        """
        import threading
        own = d.CUstream(2)
        ids = [ck(d.cuStreamGetId(own))]
        def other():
            ck(d.cuCtxSetCurrent(ctx))
            ids.append(ck(d.cuStreamGetId(own)))
            ids.append(ck(d.cuStreamGetId(0)))
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert len(set(ids)) == 3
        """
    )


def test_a_threads_own_stream_ends_with_its_context_and_is_not_taken_for_one_that_lies_where_it_was(
    script: Script,
) -> None:
    script(
        """
        own = d.CUstream(2)
        for _ in range(5):
            was = ck(d.cuStreamGetId(own))
            ck(d.cuDevicePrimaryCtxRelease(0))
            context()
            ids = {ck(d.cuStreamGetId(stream())) for _ in range(16)}
            assert len(ids) == 16 and ck(d.cuStreamGetId(own)) not in ids | {was}
        """
    )


def test_events_answer_in_virtual_time(script: Script) -> None:
    script(
        f"""
        import time
        module, s = Module(), stream()
        start, end, never = (ck(d.cuEventCreate(0)) for _ in range(3))
        ck(d.cuEventRecord(start, s))
        before = time.monotonic()
        for _ in range(20):
            ck(module.slow(s, {LONG}))
        ck(d.cuEventRecord(end, s))
        assert error(d.cuEventQuery(end)) == "NOT_READY"
        assert error(d.cuEventElapsedTime(start, end)) == "NOT_READY"
        ck(d.cuEventQuery(never))
        assert error(d.cuEventElapsedTime(start, never)) == "INVALID_HANDLE"
        ck(d.cuEventSynchronize(end))
        milliseconds = ck(d.cuEventElapsedTime(start, end))
        assert milliseconds > 20 * {LONG} / 16e12 * 1e3          # the card's peak is below 16 TFLOP/s
        assert milliseconds > (time.monotonic() - before) * 1e3  # and nobody waited for it
        """
    )


def test_polling_makes_time_pass(script: Script) -> None:
    script(
        f"""
        module, s = Module(), stream()
        ck(module.slow(s, {LONG // 100}))
        polls = 0
        while error(d.cuStreamQuery(s)) == "NOT_READY":
            polls += 1
        assert polls > 10
        """
    )


def test_host_functions_run_in_stream_order_without_the_drivers_lock(
    run_sim: Script, compile_program: Script, sim_module: Any
) -> None:
    program = compile_program("sim_host_functions.c", link_cuda=True)
    for line in run_sim(program, sim_module).out.splitlines():
        assert line.endswith(": yes"), line


def test_stream_waits_for_a_value_that_another_stream_writes(script: Script) -> None:
    script(
        f"""
        module, a, b, n = Module(), stream(), stream(), 1024
        p = managed(n)
        flag = ck(d.cuMemHostAlloc(8, 0))
        doorbell = ck(d.cuMemHostGetDevicePointer(flag, 0))
        ctypes.c_uint32.from_address(flag).value = 0
        ck(d.cuStreamWaitValue32(b, doorbell, 7, d.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ.value))
        ck(module.set(b, p, n, 2.0))
        ck(module.slow(a, {LONG}))
        ck(module.set(a, p, n, 1.0))
        ck(d.cuStreamWriteValue32(a, doorbell, 7, 0))
        ck(d.cuStreamSynchronize(b))
        assert (get(p, n) == 2).all()
        assert ctypes.c_uint32.from_address(flag).value == 7
        assert error(d.cuStreamWriteValue32(a, p, 7, 0)) == "INVALID_VALUE"  # managed memory is not accepted
        """
    )


def test_stream_waits_for_a_value_that_the_host_writes(script: Script) -> None:
    script(
        """
        import threading, time
        module, s, n = Module(), stream(), 1024
        p = managed(n)
        flag = ck(d.cuMemHostAlloc(8, 0))
        word = ctypes.c_uint64.from_address(flag)
        word.value = 1
        ck(d.cuStreamWaitValue64(s, flag, 2, d.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_EQ.value))
        ck(module.set(s, p, n, 2.0))
        assert error(d.cuStreamQuery(s)) == "NOT_READY"
        def ring():
            time.sleep(0.05)
            word.value = 2
        thread = threading.Thread(target=ring)
        thread.start()
        ck(d.cuStreamSynchronize(s))
        thread.join()
        assert (get(p, n) == 2).all()
        """
    )


def test_synchronising_does_not_wait_for_a_helper_threads_moves(script: Script) -> None:
    script(
        """
        import threading
        module, n = Module(), 64 << 20
        p, q = managed(n), managed(n)
        ck(module.set(0, p, n, 1.0))
        ck(d.cuCtxSynchronize())
        ck(d.cuMemPrefetchAsync(p, 4 * n, CPU, 0, 0))
        ck(d.cuCtxSynchronize())
        done = []
        def helper():
            ck(d.cuCtxSetCurrent(ctx))
            s, e = stream(), ck(d.cuEventCreate(2))
            ck(d.cuMemPrefetchAsync(p, 4 * n, GPU, 0, s))
            ck(d.cuEventRecord(e, s))
            done.extend((s, e))
        thread = threading.Thread(target=helper)
        thread.start()
        thread.join()
        s = ck(d.cuStreamCreate(1))
        start, end = ck(d.cuEventCreate(0)), ck(d.cuEventCreate(0))
        ck(d.cuEventRecord(start, s))
        ck(module.set(s, q, 1024, 1.0))
        ck(d.cuEventRecord(end, s))
        ck(d.cuCtxSynchronize())
        assert ck(d.cuEventElapsedTime(start, end)) < 5.0        # 256 MiB over the link take some 20 ms
        assert error(d.cuEventQuery(done[1])) == "NOT_READY"
        """
    )
