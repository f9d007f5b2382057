"""A program's streams end with work under way, with their context, or while another thread waits
for the context.
"""

from __future__ import annotations

from collections.abc import Callable

from finished_run import Ran

Run = Callable[..., Ran]


def test_a_context_is_waited_for_with_the_work_of_streams_that_have_ended(driver: Run) -> None:
    driver(
        [],
        """
        context_of(0)
        arrays = Arrays(1)
        arrays.wait()
        for _ in range(2):
            ended, done = ck(d.cuStreamCreate(1)), ck(d.cuEventCreate(2))
            for _ in range(50):
                arrays.double(0, ended)
            ck(d.cuEventRecord(done, ended))
            ck(d.cuStreamDestroy(ended))
            ck(d.cuCtxSynchronize())
            assert d.cuEventQuery(done)[0] == 0
        arrays.check(100)
        """,
    )


def test_a_context_that_was_reset_is_waited_for_without_its_earlier_streams(driver: Run) -> None:
    driver(
        [],
        """
        context_of(0)
        left = [stream() for _ in range(3)]
        module = Module()
        ck(module.set(left[0], device(COUNT), COUNT, 1.0))
        ck(d.cuDevicePrimaryCtxReset(0))
        context_of(0)
        arrays = Arrays(1)
        arrays.double(0)
        ck(d.cuCtxSynchronize())
        arrays.check(1)
        """,
    )


def test_streams_may_end_while_another_thread_waits_for_the_context(driver: Run) -> None:
    driver(
        [],
        """
        import threading
        context = context_of(0)
        arrays = Arrays(1)
        arrays.wait()
        ends = threading.Event()

        def come_and_go():
            ck(d.cuCtxSetCurrent(context))
            while not ends.is_set():
                ck(d.cuStreamDestroy(ck(d.cuStreamCreate(1))))

        threads = [threading.Thread(target=come_and_go) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(4000):
                ck(d.cuCtxSynchronize())
        finally:
            ends.set()
            for thread in threads:
                thread.join()
        """,
    )
